"""All repeats over time, relative to the median of their figure: shows drift, steps and two levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from seatrial.analysis.rules.expectation import relative_width
from seatrial.model.results.figure_result import FigureResult, RepeatValue
from seatrial.model.spelling import NO_VALUE, show_percent
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts.lines import restated_figures, restated_words
from seatrial.report.charts.vega import chart, layer, quantity
from seatrial.report.pages.view import BenchmarkView, Row, TrialView

_MOST_PANELS = 16
_MOST_POINTS = 240
"""Of a panel; of more repeats, evenly spaced ones are drawn, and the smallest and the largest."""
_COLUMNS = 4
_PANEL_WIDTH = 222
_PANEL_HEIGHT = 84
_LABEL_WIDTH = 0.88 * _PANEL_WIDTH
"""The renderer measures text in its own font; some browsers' fonts are wider."""
_LINE = 32
"""Characters that fit into a label."""
_LEAST_SPAN = 0.01
"""The axis shows at least +-1 %, so that noise of a tenth of a percent does not look large."""

Series = tuple[Row, FigureResult]


def repeats_in_time(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One small panel for each figure, all with the same axes. If there are more than sixteen, those with the largest
    spread."""
    restated = restated_figures(benchmark.measured)
    measured = ((row, figure) for row, figure in benchmark.measured if figure.name not in restated)
    drawable = [(row, figure) for row, figure in measured if figure.n_repeats > 1 and figure.median]
    if not drawable:
        return
    widest = sorted(drawable, key=lambda series: -(relative_width(series[1]) or 0.0))[:_MOST_PANELS]
    chosen = [series for series in drawable if any(series[1] is kept[1] for kept in widest)]
    caption = ""
    if len(chosen) < len(drawable):
        caption = f"The {len(chosen)} of {len(drawable)} series with the largest spread are shown."
    caption += restated_words(restated, {figure.name for _, figure in chosen})
    caption = f"{caption} {_selection(chosen)}".strip()
    ident, title = view.anchor(f"{benchmark.name}-repeats"), f"{benchmark.name}: all repeats over time"
    words = " ".join(
        f"{row.name}: {figure.n_repeats} repeats from {show_percent(min(figure.values) / figure.median, 3)} to "
        f"{show_percent(max(figure.values) / figure.median, 3)} of the median."
        for row, figure in chosen
    )
    yield chart(_spec(view, chosen), ident, title, caption, _table(view, benchmark, chosen), words)


def _spec(view: TrialView, chosen: Sequence[Series]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for (row, figure), label in zip(chosen, _labels(chosen), strict=True):
        interval = figure.ci95 or (figure.median, figure.median)
        for position, repeat in enumerate(drawn(figure)):
            rows.append(
                {
                    "series": label,
                    "order": view.order[row.result.id, repeat.repeat],
                    "relative": repeat.value / figure.median - 1,
                    "low": interval[0] / figure.median - 1,
                    "high": interval[1] / figure.median - 1,
                    "first": position == 0,
                }
            )
    domain = {"domain": [0, len(view.order) + 1], "nice": False}
    x = quantity("order", None, scale=domain, axis={"tickMinStep": 1, "tickCount": 5, "grid": False})
    axis = {"tickCount": 3, "minExtent": 46, "labelExpr": "datum.value == 0 ? '0' : format(datum.value, '+.1~%')"}
    y = quantity("relative", None, scale={"domain": _domain(rows), "nice": True}, axis=axis)
    header = {"labelLimit": _LABEL_WIDTH, "labelExpr": "split(datum.label, '\\n')", "labelLineHeight": 15}
    once = [{"filter": "datum.first"}]  # one band and one line for each panel, not one for each repeat
    return {
        "data": {"values": rows},
        "facet": {"field": "series", "type": "nominal", "sort": _labels(chosen), "title": None, "header": header},
        "columns": _COLUMNS,
        "spacing": {"row": 22, "column": 18},
        "spec": {
            "width": _PANEL_WIDTH,
            "height": _PANEL_HEIGHT,
            "layer": [
                {
                    **layer("rect", {"y": {**y, "field": "low"}, "y2": {"field": "high"}}, color="var(--band)"),
                    "transform": once,
                },
                {**layer("rule", {"y": {"datum": 0}}, color="var(--axis)"), "transform": once},
                layer("line", {"x": x, "y": y}, color="var(--faint)", strokeWidth=1),
                layer("point", {"x": x, "y": y}, filled=True, color="var(--accent)", size=26, opacity=1),
            ],
        },
    }


def drawn(figure: FigureResult) -> list[RepeatValue]:
    """The repeats that are drawn, in order of time: all, or evenly spaced ones with the smallest and the largest."""
    return [figure.repeats[place] for place in sorted(spaced(figure.values, _MOST_POINTS))]


def spaced(values: Sequence[float], most: int) -> set[int]:
    """The positions of all values; of more than `most`, so many evenly spaced ones, the smallest and the largest."""
    n = len(values)
    if n <= most:
        return set(range(n))
    ends = {min(range(n), key=values.__getitem__), max(range(n), key=values.__getitem__)}
    return ends | {place * (n - 1) // (most - 1) for place in range(most)}


def _selection(chosen: Sequence[Series]) -> str:
    """A sentence on the repeats that are not drawn, "" if all are."""
    most = max(figure.n_repeats for _, figure in chosen)
    if most <= _MOST_POINTS:
        return ""
    return (
        f"If a series has more than {_MOST_POINTS} repeats (the longest has {most}), {_MOST_POINTS} of them, evenly "
        "spaced in time, are drawn and listed, and the smallest and the largest; medians and intervals are of all."
    )


def _domain(rows: Sequence[dict[str, Any]]) -> list[float]:
    values = [row[key] for row in rows for key in ("relative", "low", "high")]
    return [min(-_LEAST_SPAN, *values) * 1.05, max(_LEAST_SPAN, *values) * 1.05]


def _labels(chosen: Sequence[Series]) -> list[str]:
    """Names of the panels: the figure at its point, on two lines if they are too long, below it the settings; equal
    names are numbered."""
    names = []
    for row, figure in chosen:
        between = " · " if len(figure.name) + len(row.point) < _LINE else "\n"
        heading = between.join(filter(None, (figure.name, row.point)))
        names.append(f"{heading}\n{row.settings}".strip())
    return [f"{name} #{number}" if names.count(name) > 1 else name for number, name in enumerate(names, start=1)]


def _table(view: TrialView, benchmark: BenchmarkView, chosen: Sequence[Series]) -> Table:
    rows: list[Cells] = []
    for row, figure in chosen:
        for repeat in drawn(figure):
            place = (row.result.id, repeat.repeat)
            seen, record = view.trial.seen.get(place, {}), view.record(*place)
            rows.append(
                [
                    str(view.order[place]),
                    moment(repeat.t0),
                    row.name,
                    Cell.amount(repeat.value, figure.unit, 4),
                    f"{(repeat.value / figure.median - 1) * 100:+.2f} %",
                    _number(seen.get("load_1m"), "{:.1f}"),
                    _number(seen.get("steal_share"), "{:.1%}"),
                    Cell(f"line {record.line}", href=record.href) if record else NO_VALUE,
                ]
            )
    numbers = right("Value", "Relative to median", "Load", "Steal")
    columns = headings("Repeat", "Started (UTC)", "Figure", *numbers, "Record")
    return Table.of(f"All drawn repeats of {benchmark.name}", columns, rows)


def moment(t0: float) -> str:
    """Seconds since the epoch as date and time in UTC, or as a number if it is outside the calendar's range."""
    try:
        return datetime.fromtimestamp(t0, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{t0:g} s"


def _number(value: object, form: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return form.format(value)
    return NO_VALUE
