"""A square heat map of pairs, with the colour legend below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.model.frozen import Frozen
from seatrial.model.units import Unit
from seatrial.report.charts.heat import (
    LEGEND_HEIGHT,
    LEGEND_WIDTH,
    HeatScale,
    Place,
    cells,
    heat_scale,
    legend,
    number,
    rectangle,
    svg,
    text,
    values_in_cells,
)
from seatrial.report.pages.svg import Svg

CELL_WITH_LABEL = 14.0
"""The smallest side of a cell that leaves room for a row label."""
_SIDE = 544.0
_LARGEST_CELL = 46.0
_CELL_WITH_NUMBER = 30.0
_SPARSE = 0.5
_LEFT, _TOP = 76.0, 40.0


class Matrix(Frozen):
    """`values` of the pairs of `count` items, in SI; places without a value stay blank.

    If less than half of the pairs have a value, each cell is drawn at least `least_mark` wide. `better` states which
    end of the scale is better.
    """

    values: Mapping[Place, float]
    count: int
    unit: Unit
    better: str
    least_mark: float
    has_diagonal: bool = False
    """Whether each item also has a value with itself, which is drawn as a number without a colour."""

    @property
    def side(self) -> float:
        """The side of a cell."""
        return min(_LARGEST_CELL, _SIDE / self.count)

    @property
    def edge(self) -> float:
        """The side of the whole square."""
        return self.side * self.count

    @property
    def scale(self) -> HeatScale:
        """From the smallest to the largest value of pairs of two different items."""
        pairs = [value for (row, column), value in self.values.items() if row != column]
        return heat_scale(pairs or list(self.values.values()), self.unit)

    def drawn(self, ident: str, title: str, caption: str, marks: Iterable[str], over: Iterable[str] = ()) -> Svg:
        """The picture. `marks` (borders and labels) and then `over` are drawn on the cells, with the square's corner as
        origin; the frame of the square is between them."""
        side, edge, scale = self.side, self.edge, self.scale
        own = {place: value for place, value in self.values.items() if place[0] == place[1]}
        others = {place: value for place, value in self.values.items() if place not in own}
        has_numbers = side >= _CELL_WITH_NUMBER
        pairs = self.count * (self.count if self.has_diagonal else self.count - 1)
        parts = [
            rectangle(0, 0, edge, edge, "ground"),
            self._diagonal(),
            cells(others, scale, side, side, self.least_mark if len(self.values) < _SPARSE * pairs else 0.0),
            values_in_cells(others, scale, side, side) if has_numbers else "",
            *(self._own_number(place, value) for place, value in own.items() if has_numbers),
            *marks,
            rectangle(0, 0, edge, edge, "frame"),
            *over,
            legend(scale, 0, edge + 16, self.better, len(self.values) < pairs),
        ]
        content = f'<g transform="translate({number(_LEFT)} {number(_TOP)})">{"".join(parts)}</g>'
        width = _LEFT + max(edge + 2, LEGEND_WIDTH)
        return Svg(svg(ident, width, _TOP + edge + 20 + LEGEND_HEIGHT, title, caption, content))

    def _own_number(self, place: Place, value: float) -> str:
        at = (place[0] + 0.5) * self.side
        return text(at, at + 4, self.scale.spelled(value), "tick")

    def _diagonal(self) -> str:
        length = number(self.side)
        starts = (number(n * self.side) for n in range(self.count))
        squares = "".join(f"M{start} {start}h{length}v{length}h-{length}z" for start in starts)
        return f'<path class="self" d="{squares}"/>'
