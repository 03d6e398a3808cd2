"""The sizes of the calls: time and number of calls by powers of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.profiler.profile import Profile, SizeTotals
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.vega import SERIES_COLOURS, STROKE_LEGEND, render
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.profile.words import BOUND_WORDS, share_words, size_words
from seatrial.report.units import show

_WIDTH, _HEIGHT = 620, 180
_MOST_CALLS = 5
_MOST_ROWS = 60
_OTHERS = "other calls"


def sizes_charts(profile: Profile, ident: str) -> list[Chart]:
    """Two charts over the size: share of MPI time, and number of calls. Empty if no call has a size."""
    sizes = [one for one in profile.sizes if one.largest_B and one.count]
    if not sizes or not profile.trust.has_sizes:
        return []
    named = list(dict.fromkeys(one.call for one in sizes))[:_MOST_CALLS]
    table = _table(profile, sizes)
    caption = "Sizes as passed by the caller, in bins of powers of two; a bin is labelled with its smallest size."
    share = 100 / profile.mpi_s if profile.mpi_s > 0 else 0.0
    return [
        _chart(
            "Time by size", caption, "% of MPI time", sizes, named, lambda one: one.time_s * share, f"{ident}-t", table
        ),
        _chart("Calls by size", caption, "calls", sizes, named, lambda one: one.count, f"{ident}-n", table),
    ]


def _chart(
    title: str,
    caption: str,
    axis: str,
    sizes: list[SizeTotals],
    named: list[str],
    value: Callable[[SizeTotals], float],
    ident: str,
    table: Table,
) -> Chart:
    summed: dict[tuple[int, str], float] = {}
    for one in sizes:
        key = (one.size_B.bit_length(), one.call if one.call in named else _OTHERS)
        summed[key] = summed.get(key, 0.0) + value(one)
    powers = range(min(p for p, _ in summed), max(p for p, _ in summed) + 1)
    series = [*named, *([_OTHERS] if any(call == _OTHERS for _, call in summed) else [])]
    rows = [
        {"size": _name(power), "call": call, "y": total, "place": series.index(call)}
        for (power, call), total in summed.items()
    ]
    x: dict[str, Any] = {"field": "size", "type": "ordinal", "title": "size", "sort": None}
    x["scale"] = {"domain": [_name(power) for power in powers]}
    x["axis"] = {"labelAngle": -45, "labelOverlap": True}
    colours = [*SERIES_COLOURS[: len(named)], "var(--faint)"][: len(series)]
    colour = {
        "field": "call",
        "type": "nominal",
        "title": None,
        "scale": {"domain": series, "range": colours},
        "legend": {**STROKE_LEGEND, "symbolType": "square", "symbolSize": 120, "columns": 3},
    }
    y = {"field": "y", "type": "quantitative", "title": axis, "axis": {"tickCount": 5, "format": "~s"}}
    spec = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {"x": x, "y": y, "color": colour, "order": {"field": "place", "type": "quantitative"}},
    }
    return Chart(title, caption, render(spec, ident, title, caption), table)


def _name(power: int) -> str:
    size = 1 << (power - 1) if power else 0
    return show(size, "B", binary=size >= 1024)


def _table(profile: Profile, sizes: list[SizeTotals]) -> Table:
    numeric = ("Size", "Of MPI", "Calls", "Bytes", "Mean", "Minimum")
    columns = [Column("Call"), *(Column(name, numeric=True) for name in numeric), Column("Bound by")]
    rows = []
    for one in sizes[:_MOST_ROWS]:
        of_mpi = one.time_s / profile.mpi_s if profile.mpi_s > 0 else 0.0
        rows.append(
            [
                Cell(one.call),
                Cell(size_words(one), one.size_B),
                Cell(share_words(of_mpi), of_mpi),
                Cell(str(one.count), one.count),
                Cell(show(one.bytes, "B"), one.bytes),
                Cell(show(one.time_s / one.count, "s"), one.time_s / one.count),
                Cell(show(one.best_s, "s"), one.best_s),
                Cell(BOUND_WORDS[one.bound]),
            ]
        )
    left = len(sizes) - len(rows)
    return Table("Sizes by time" + (f", the first {len(rows)} of {len(sizes)}" if left > 0 else ""), columns, rows)
