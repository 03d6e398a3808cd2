"""Maps of colours as SVG: the scale of colours, parts of a picture, and the matrix of pairs of equal things.

A scale of eight colours for numbers, and the parts of an SVG that are drawn with it.

The colours are CSS variables of the page (`--heat-1` to `--heat-8` in templates/style.css): lightness rises or falls
evenly from class to class, so that the order is visible without distinguishing hues, in light and dark mode and on
paper. Cells that were not measured have no colour.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from seatrial.model.frozen import Frozen
from seatrial.model.spelling import display_scale
from seatrial.model.units import Unit
from seatrial.report.blocks import Svg

CLASSES = 8
_LOG_FROM = 4.0
"""From this ratio of largest to smallest, classes have equal ratios, not equal differences."""
_SWATCH_WIDTH, _SWATCH_HEIGHT = 46, 12
LEGEND_HEIGHT = 34
LEGEND_WIDTH = _SWATCH_WIDTH * CLASSES + 170

_GRID_TOP = 44.0
Place = tuple[int, int]
"""(row, column) of a cell, from 0."""


class HeatScale(Frozen):
    """`bounds` ascend, in SI; class k (from 1) goes from bounds[k - 1] to bounds[k]."""

    unit: Unit
    bounds: tuple[float, ...]

    @property
    def classes(self) -> int:
        """The number of colours: one if all values are equal."""
        return len(self.bounds) - 1

    def class_of(self, value: float) -> int:
        """The class of a value, from 1; values beyond the ends belong to the class at that end."""
        return max(1, min(bisect_right(self.bounds, value), self.classes))

    def spelled(self, value: float) -> str:
        """The value with the prefix of the scale, without its unit: "24.8"."""
        return short(value / display_scale(self.bounds, self.unit)[0])

    @property
    def unit_name(self) -> str:
        """The unit of the values of `spelled`: "ns"."""
        return display_scale(self.bounds, self.unit)[1]


def heat_scale(values: Sequence[float], unit: Unit) -> HeatScale:
    """The scale from the smallest to the largest of some values (at least one, all finite)."""
    low, high = min(values), max(values)
    if high <= low:
        return HeatScale(unit, (low, high))
    if low > 0 and high / low >= _LOG_FROM:
        ratio = high / low
        inner = [low * math.pow(ratio, k / CLASSES) for k in range(1, CLASSES)]
    else:
        inner = [low + (high - low) * k / CLASSES for k in range(1, CLASSES)]
    return HeatScale(unit, (low, *inner, high))


def short(value: float) -> str:
    """Three digits at most, two below one: "112", "24.8", "3.12", "0.90", "0.045"."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.0995 or size == 0:
        return f"{value:.2f}"
    return f"{value:.{1 - math.floor(math.log10(size))}f}"


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "middle") -> str:
    """A line of text; `kind` is a class of the style sheet."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{escape(content)}</text>'


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A rectangle of a class of the style sheet."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" {size}/>'


def number(value: float) -> str:
    """A coordinate, rounded to hundredths."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def cells(values: Mapping[Place, float], scale: HeatScale, width: float, height: float, mark: float = 0.0) -> str:
    """One path for each class, so that ten thousand cells stay small.

    `mark` is the minimum side of a drawn cell; if it is positive, cells also get a rim.
    """
    paths: dict[int, list[str]] = {}
    rim = " rimmed" if mark else ""
    drawn_width, drawn_height = max(width, mark), max(height, mark)
    for (row, column), value in values.items():
        x = (column + 0.5) * width - drawn_width / 2
        y = (row + 0.5) * height - drawn_height / 2
        square = f"M{number(x)} {number(y)}h{number(drawn_width)}v{number(drawn_height)}h{number(-drawn_width)}z"
        paths.setdefault(scale.class_of(value), []).append(square)
    return "".join(f'<path class="h{k}{rim}" d="{"".join(paths[k])}"/>' for k in sorted(paths))


def values_in_cells(values: Mapping[Place, float], scale: HeatScale, width: float, height: float) -> str:
    """The number in each cell, in a colour that is legible on the cell."""
    return "".join(
        text(
            (column + 0.5) * width,
            (row + 0.5) * height + 4,
            scale.spelled(value),
            "on-low" if scale.class_of(value) <= CLASSES // 2 else "on-high",
        )
        for (row, column), value in values.items()
    )


class Axis(Frozen):
    """One axis of a grid: its name, and the label of each row or column."""

    name: str
    labels: Sequence[str]


class Grid(Frozen):
    """A map over two axes: `values` by (row, column), in SI; `frame` is a cell that is marked."""

    title: str
    rows: Axis
    columns: Axis
    values: Mapping[Place, float]
    frame: Place | None = None
    left: float = 70.0
    cell: tuple[float, float] = (58.0, 26.0)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, with the labels."""
        return self.left + self.cell[0] * len(self.columns.labels), _GRID_TOP + self.cell[1] * len(self.rows.labels)

    @property
    def has_blanks(self) -> bool:
        """Whether some cells have no value."""
        return len(self.values) < len(self.rows.labels) * len(self.columns.labels)

    def drawn(self, scale: HeatScale, x: float = 0.0) -> str:
        """The SVG; rows are named on the left, columns above. Cells that are too small have no numbers, and not all
        names fit."""
        across, down = self.cell
        width, height = across * len(self.columns.labels), down * len(self.rows.labels)
        step = max(1, math.ceil(CELL_WITH_LABEL / down))
        parts = [
            rectangle(0, 0, width, height, "ground"),
            cells(self.values, scale, across, down),
            values_in_cells(self.values, scale, across, down) if step == 1 else "",
            rectangle(0, 0, width, height, "frame"),
            text(0, -24, self.title, "heading", "start"),
            text(-6, -8, self.rows.name, "tick", "end"),
            *(
                text(-6, (n + 0.5) * down + 4, name, "tick", "end")
                for n, name in enumerate(self.rows.labels)
                if n % step == 0
            ),
            *(text((n + 0.5) * across, -8, name, "tick") for n, name in enumerate(self.columns.labels)),
            text(width, -24, self.columns.name, "tick", "end") if len(self.columns.labels) > 1 else "",
        ]
        if self.frame is not None:
            parts += framed(self.frame[1] * across, self.frame[0] * down, across, down)
        return f'<g transform="translate({number(x + self.left)} {number(_GRID_TOP)})">{"".join(parts)}</g>'


_GRID_GAP = 34.0


def grids(found: Sequence[Grid], unit: Unit, better: str, ident: str, title: str, caption: str) -> Svg:
    """Grids side by side with one scale of colours; `better` states which end of it is better."""
    scale = heat_scale([value for grid in found for value in grid.values.values()], unit)
    drawn, x = [], 0.0
    for grid in found:
        drawn.append(grid.drawn(scale, x))
        x += grid.size[0] + _GRID_GAP
    tallest = max(grid.size[1] for grid in found)
    drawn.append(legend(scale, found[0].left, tallest + 14, better, any(grid.has_blanks for grid in found)))
    size = max(x - _GRID_GAP + 2, found[0].left + LEGEND_WIDTH), tallest + 18 + LEGEND_HEIGHT
    return svg(ident, size, title, caption, drawn)


def legend(scale: HeatScale, x: float, y: float, note: str, unmeasured: bool) -> str:
    """The colours with the bounds between them and the unit; LEGEND_HEIGHT tall. `note` states which end is better."""
    parts = [
        rectangle(x + k * _SWATCH_WIDTH, y, _SWATCH_WIDTH, _SWATCH_HEIGHT, f"h{k + 1}") for k in range(scale.classes)
    ]
    under = y + _SWATCH_HEIGHT + 14
    bounds = scale.bounds if scale.classes > 1 else scale.bounds[:1]
    parts += [text(x + k * _SWATCH_WIDTH, under, scale.spelled(bound), "tick") for k, bound in enumerate(bounds)]
    end = x + scale.classes * _SWATCH_WIDTH + 24
    parts.append(text(end, y + 10, f"{scale.unit_name}, {note}".removeprefix(", "), "tick", "start"))
    if unmeasured:
        parts.append(rectangle(end, under - 10, 12, 12, "blank"))
        parts.append(text(end + 18, under, "not measured", "tick", "start"))
    return "".join(parts)


def svg(
    ident: str,
    size: tuple[float, float],
    title: str,
    description: str,
    parts: Iterable[str],
    corner: tuple[float, float] | None = None,
) -> Svg:
    """A whole picture. `ident` must be unique on the page; title and description are its alternative text. `corner` is
    the origin of the parts."""
    width, height = map(number, size)
    sized = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    named = f'role="img" aria-labelledby="{ident}-title {ident}-desc"'
    alternative = (
        f'<title id="{ident}-title">{escape(title)}</title><desc id="{ident}-desc">{escape(description)}</desc>'
    )
    content = "".join(parts)
    if corner is not None:
        content = f'<g transform="translate({number(corner[0])} {number(corner[1])})">{content}</g>'
    return Svg(f'<svg class="heat" {sized} {named}>{alternative}{content}</svg>')


def borders(hosts: Sequence[str], side: float, edge: float) -> Iterator[str]:
    """Lines between rows and columns of different hosts."""
    for n in range(1, min(len(hosts), round(edge / side))):
        if hosts[n] != hosts[n - 1]:
            yield f'<path class="border-node" {across(n * side, edge)}/>'


def across(at: float, edge: float) -> str:
    """The path of a vertical and a horizontal line over the whole square."""
    return f'd="M{number(at)} 0V{number(edge)}M0 {number(at)}H{number(edge)}"'


def names_of_hosts(hosts: Sequence[str], count: int, side: float, y: float) -> Iterator[str]:
    """The names of hosts above their columns, where there are several and they fit."""
    starts = [n for n in range(min(count, len(hosts))) if n == 0 or hosts[n] != hosts[n - 1]]
    for start, end in pairwise([*starts, count] if len(set(hosts)) > 1 else []):
        if (end - start) * side > 7.5 * len(hosts[start]):
            yield text((start + end) / 2 * side, y, hosts[start], "tick")


def framed(x: float, y: float, width: float, height: float) -> list[str]:
    """A dark frame with a light rim, visible on any colour."""
    return [rectangle(x, y, width, height, kind) for kind in ("slow-rim", "slow")]


def step_of_labels(side: float, room: float) -> int:
    """The smallest power of two of which cells leave room for a label."""
    step = 1
    while step * side < room:
        step *= 2
    return step


CELL_WITH_LABEL = 14.0
"""The smallest side of a cell that leaves room for a row label."""
_SIDE = 544.0
_LARGEST_CELL = 46.0
_CELL_WITH_NUMBER = 30.0
_SPARSE = 0.5
_LEFT, _TOP = 76.0, 40.0


class HeatMatrix(Frozen):
    """`values` of the pairs of `count` items, in SI; cells without a value stay blank.

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
        size = (_LEFT + max(edge + 2, LEGEND_WIDTH), _TOP + edge + 20 + LEGEND_HEIGHT)
        return svg(ident, size, title, caption, parts, (_LEFT, _TOP))

    def _own_number(self, place: Place, value: float) -> str:
        at = (place[0] + 0.5) * self.side
        return text(at, at + 4, self.scale.spelled(value), "tick")

    def _diagonal(self) -> str:
        length = number(self.side)
        starts = (number(n * self.side) for n in range(self.count))
        squares = "".join(f"M{start} {start}h{length}v{length}h-{length}z" for start in starts)
        return f'<path class="self" d="{squares}"/>'
