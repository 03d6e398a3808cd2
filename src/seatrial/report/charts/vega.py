"""Charts as Vega-Lite specifications: the parts that all share, and the shapes of points."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any
from xml.etree import ElementTree

from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import FigureResult
from seatrial.printable import SPACES, printable
from seatrial.report.blocks import Chart, Svg, Table
from seatrial.report.charts.renderer import NotDrawnError, draw

_log = logging.getLogger(__name__)

Spec = Mapping[str, Any]

SERIES_COLOURS = tuple(f"var(--series-{number})" for number in range(1, 7))
"""Distinct in light and dark; charts that use more than one also vary shape or dash."""

SERIES_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 2])
"""Dashes that distinguish the same series without colours."""

STROKE_LEGEND: dict[str, Any] = {
    "orient": "bottom",
    "columns": 2,
    "symbolType": "stroke",
    "symbolSize": 400,
    "columnPadding": 60,
}
"""The legend of lines, below a chart."""

_FONT_PX = 12
_FEWEST_TICKS = 4
_LEGIBLE = {"labelFontSize": _FONT_PX, "titleFontSize": _FONT_PX, "titleFontWeight": "normal"}
_CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "background": None,
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        **_LEGIBLE,
        "labelColor": "var(--muted)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--rule)",
        "domainColor": "var(--axis)",
        "tickColor": "var(--axis)",
        "tickSize": 4,
    },
    "axisLeft": {"titlePadding": 10},  # browsers draw labels wider than the renderer reserves
    "header": {"labelColor": "var(--ink)", "labelFontSize": _FONT_PX, "labelAnchor": "start", "labelOrient": "top"},
    "legend": {**_LEGIBLE, "labelColor": "var(--ink)", "titleColor": "var(--muted)", "labelLimit": 420},
}

_ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath"})
_ATTRIBUTES = frozenset(
    {"class", "id", "width", "height", "viewBox", "transform", "clip-path", "opacity"}
    | {"d", "x", "y", "x1", "y1", "x2", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry"}
    | {"fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-dashoffset"}
    | {"stroke-linecap", "stroke-linejoin", "stroke-miterlimit"}
    | {"text-anchor", "font-size", "font-weight", "font-style"}
)
_LOCAL = re.compile(r"url\(#([\w-]+)\)")


def decade_ticks(low: float, high: float) -> list[float]:
    """Ticks for a logarithmic axis: powers of ten, or 1, 2, 5, 10, ..., or even steps; the first with at least four."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for factors in ((1,), (1, 2, 5)):
        # Via text: 2 * 10.0 ** -9 has a rounding error that a label would show.
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _FEWEST_TICKS:
            return ticks
    power = math.floor(math.log10(high - low)) if high > low else 0
    for step, scale in ((1, power), (5, power - 1), (2, power - 1), (1, power - 1)) if high > low else ():
        size = float(f"{step}e{scale}")
        even = [float(f"{k * step}e{scale}") for k in range(math.ceil(low / size), math.floor(high / size) + 1)]
        if len(even) >= _FEWEST_TICKS:
            return even
    return ticks


def named_ticks(ticks: Sequence[float], name_of: Callable[[float], str]) -> dict[str, Any]:
    """The ticks of an axis with the names that this package gives to their values."""
    names = [f"datum.value == {tick!r} ? '{name_of(tick)}'" for tick in ticks]
    return {"values": list(ticks), "labelExpr": " : ".join([*names, "''"])}


def quantity(field: str, title: str | None, **more: Any) -> dict[str, Any]:
    """The encoding of a number; `more`: its scale, axis, ..."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def logarithmic(field: str, title: str, low: float, high: float) -> dict[str, Any]:
    """The encoding of a number on a logarithmic axis."""
    axis = {"values": decade_ticks(low, high), "format": "~g"}
    return quantity(field, title, scale={"type": "log", "domain": [low, high], "nice": False}, axis=axis)


def series(field: str, names: Sequence[str], first: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """The encodings of a line's name by colour and by dash, from the first ones on; with a legend if there are
    several."""
    legend = STROKE_LEGEND if len(names) > 1 else None
    by_name = {"field": field, "type": "nominal", "sort": None, "title": None, "legend": legend}
    ranges = (SERIES_COLOURS, SERIES_DASHES)
    colour, dash = ({"domain": names, "range": list(one[first : first + len(names)])} for one in ranges)
    return {**by_name, "scale": colour}, {**by_name, "scale": dash}


def between(x: Mapping[str, Any], y: Mapping[str, Any]) -> dict[str, Any]:
    """The encoding of a vertical line from the field `low` to `high`."""
    return {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}


def ends_of(figure: FigureResult, scale: float) -> dict[str, float]:
    """The ends of a figure's interval for `between`; both are the median if there is none."""
    low, high = figure.ci95 or (figure.median, figure.median)
    return {"low": low / scale, "high": high / scale}


def layer(
    mark: str, encoding: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None, **style: Any
) -> dict[str, Any]:
    """A mark for each row of the data (None: those of the chart); `style` are properties of the mark."""
    data = {} if rows is None else {"data": {"values": rows}}
    return {**data, "mark": {"type": mark, **style}, "encoding": encoding}


def text_layers(
    rows: Sequence[Mapping[str, Any]], mark: Mapping[str, Any], x: Mapping[str, Any], y: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Text labels: each of `rows` has `text` and the fields of `x` and `y`. A light rim separates them from lines."""
    encoding = {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}}
    base = {"type": "text", "fontSize": _FONT_PX, **mark}
    rim = {**base, "fill": "var(--paper)", "stroke": "var(--paper)", "strokeWidth": 4, "strokeJoin": "round"}
    return [{"data": {"values": list(rows)}, "mark": made, "encoding": encoding} for made in (rim, base)]


def render(spec: Spec, ident: str, title: str, description: str) -> Svg:
    """The chart as inline SVG. `ident` must be unique on the page; `title` and `description` are its alternative
    text. A chart that cannot be drawn is a sentence that says so."""
    try:
        raw = draw(_printable({**spec, "config": {**_CONFIG, **spec.get("config", {})}}))
        drawn = ElementTree.fromstring(raw)  # noqa: S314  our own renderer's output, not a file from outside
    except (NotDrawnError, ElementTree.ParseError) as error:
        _warn_once(f"charts are not drawn, only their numbers are on the page: {error}")
        return Svg(f'<p class="note">Not drawn: {escape(str(error))}. The numbers are in the table.</p>', False)
    root = _clean(drawn, ident)
    root.set("role", "img")
    root.set("aria-labelledby", f"{ident}-title {ident}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{ident}-{tag}"})
        element.text = _printable(text)
        root.insert(position, element)
    return Svg(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


@cache
def _warn_once(text: str) -> None:
    _log.warning(text)


def _printable(value: Any) -> Any:
    """The same specification with "?" in place of characters that cannot be printed: names from outside may contain
    some that XML does not allow, which end the renderer and with it our process."""
    if isinstance(value, str):
        return printable(value, f"\n{SPACES}")
    if isinstance(value, Mapping):
        return {_printable(name): _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value


def _clean(element: ElementTree.Element, ident: str) -> ElementTree.Element:
    """A copy without namespaces that has only allowed elements and attributes, with `ident` as a prefix of its ids."""
    copy = ElementTree.Element(_local(element.tag))
    for name, value in element.attrib.items():
        if _local(name) == "href" and value.startswith("#"):
            copy.set("href", f"#{ident}-{value[1:]}")
        elif _local(name) in _ATTRIBUTES and value != "":
            value = _LOCAL.sub(rf"url(#{ident}-\1)", value)
            copy.set(_local(name), f"{ident}-{value}" if name == "id" else value)
    copy.text, copy.tail = element.text, element.tail
    for child in element:
        if _local(child.tag) in _ELEMENTS and child.get("display") != "none":
            copy.append(_clean(child, ident))
    return copy


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def chart(spec: Spec, ident: str, title: str, caption: str, table: Table, words: str = "") -> Chart:
    """The chart of a specification; `words` state its content for those who do not see it."""
    return Chart(title, caption, cache(lambda: render(spec, ident, title, f"{caption} {words}".strip())), table)


def cpu_pair(figure: FigureResult) -> tuple[int, int] | None:
    """The two CPUs (numbered by the operating system) between which it was measured, or None."""
    return _two(figure, "cpu_a", "cpu_b")


def file_and_record(figure: FigureResult) -> tuple[int, int] | None:
    """(size of the file, size of each record) in bytes, or None."""
    return _two(figure, "file_B", "record_B")


def working_set(figure: FigureResult) -> int | None:
    """The size in bytes of the data that the program accessed repeatedly, if the figure is a latency; else None."""
    size = _whole(figure.point.get("working_set_B"))
    return size if figure.unit == "s" and size is not None and size > 0 else None


def has_its_own_panel(figure: FigureResult) -> bool:
    """Whether another panel of the page shows figures of this shape, so that they need no line chart."""
    from seatrial.analysis.pairs import pair_of  # charts of profiles do without

    shapes = (cpu_pair(figure), pair_of(figure.point), _two(figure, "source", "target"), working_set(figure))
    return any(shape is not None for shape in shapes)


def _two(figure: FigureResult, one: str, other: str) -> tuple[int, int] | None:
    a, b = _whole(figure.point.get(one)), _whole(figure.point.get(other))
    return None if a is None or b is None else (a, b)


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
