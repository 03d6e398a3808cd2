"""A scale of eight colours for numbers, and the parts of an SVG that are drawn with it.

The colours are CSS variables of the page (`--heat-1` to `--heat-8` in templates/style.css): lightness rises or falls
evenly from class to class, so that the order is visible without distinguishing hues, in light and dark mode and on
paper. Cells that were not measured have no colour.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape

from seatrial.model.frozen import Frozen
from seatrial.model.units import Unit
from seatrial.report.units import display_scale

CLASSES = 8
_LOG_FROM = 4.0
"""From this ratio of largest to smallest, classes have equal ratios, not equal differences."""
_SWATCH_WIDTH, _SWATCH_HEIGHT = 46, 12
LEGEND_HEIGHT = 34
LEGEND_WIDTH = _SWATCH_WIDTH * CLASSES + 170

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


def svg(ident: str, width: float, height: float, title: str, description: str, content: str) -> str:
    """A whole picture. `ident` must be unique on the page; title and description are its alternative text."""
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    named = f'role="img" aria-labelledby="{ident}-title {ident}-desc"'
    alternative = (
        f'<title id="{ident}-title">{escape(title)}</title><desc id="{ident}-desc">{escape(description)}</desc>'
    )
    return f'<svg class="heat" {size} {named}>{alternative}{content}</svg>'
