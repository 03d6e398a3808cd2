"""Where the wall time of an MPI program goes: computing, each call with its time above the best, and message sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.model.spelling import NO_VALUE, show, show_percent
from seatrial.profiler.profile import Profile, SizeTotals
from seatrial.report.charts.vega import SERIES_COLOURS, STROKE_LEGEND, Chart, layer, render
from seatrial.report.pages.templating import Cell, Column, Table, headings, right
from seatrial.report.profile.place_words import share_words
from seatrial.report.profile.words import BOUND_WORDS, size_words, spread_words, typical_size, waiting_words

_WIDTH = 620
_ROW = 26
_MOST = 8
_PIXELS_OF_A_CHARACTER = 7.8
_BEST, _BEYOND = "best", "above the best: waiting or contention"


def wall_time_chart(profile: Profile, ident: str) -> Chart | None:
    """Computing and MPI as shares of wall time, each with a line from the minimum to the maximum over ranks."""
    ranks = [one for one in profile.per_rank if one.wall_s > 0]
    if not ranks or profile.wall_s <= 0:
        return None
    waiting = min(1.0, profile.waiting_s / profile.mpi_s) if profile.mpi_s > 0 else 0.0
    kinds = {
        "computing": [one.compute_s / one.wall_s for one in ranks],
        "MPI": [one.mpi_s / one.wall_s for one in ranks],
    }
    means = {"computing": sum(one.compute_s for one in ranks) / profile.wall_s, "MPI": profile.mpi_share}
    bars = [
        {"row": "computing", "part": "computing", "x": means["computing"] * 100},
        {"row": "MPI", "part": _BEST, "x": means["MPI"] * (1 - waiting) * 100},
        {"row": "MPI", "part": _BEYOND, "x": means["MPI"] * waiting * 100},
    ]
    spans = [{"row": kind, "x": min(shares) * 100, "x2": max(shares) * 100} for kind, shares in kinds.items()]
    title = "Wall time"
    caption = (
        "Means over ranks; the line spans the minimum to the maximum. The time above the best is an estimate: other "
        "ranks arrived late, or the fabric was shared."
    )
    columns = headings("Part", right("Of wall"), right("Range over ranks"))
    shares = [("MPI above the best", means["MPI"] * waiting), *means.items()]
    rows = [
        [
            Cell(kind),
            Cell(show_percent(share), share),
            Cell(
                f"{show_percent(min(kinds[kind]))} to {show_percent(max(kinds[kind]))}" if kind in kinds else NO_VALUE
            ),
        ]
        for kind, share in reversed(shares)
    ]
    svg = render(_spec(bars, spans, list(kinds), "% of wall time"), f"{ident}-wall", title, caption)
    return Chart(title, caption, svg, Table(title, columns, rows))


def calls_chart(profile: Profile, ident: str) -> Chart | None:
    """The calls with the most time, as bars of shares of wall time. None if there are none."""
    shown = [one for one in profile.calls[:_MOST] if one.time_s > 0]
    if not shown or profile.wall_s <= 0:
        return None
    scale = 100 / profile.wall_s
    bars = []
    for one in shown:
        waiting = min(one.waiting_s, one.time_s)
        bars.append({"row": one.call, "part": _BEST, "x": (one.time_s - waiting) * scale})
        bars.append({"row": one.call, "part": _BEYOND, "x": waiting * scale})
    title = "Time by call"
    caption = "Share of wall time, over all ranks. Best: if every call took as long as the shortest of its size."
    left = len(profile.calls) - len(shown)
    caption += " Where waiting was measured, it replaces the estimate." if profile.measured_calls[0] else ""
    caption += f" {left} more calls are in the table." if left else ""
    svg = render(_spec(bars, [], [one.call for one in shown], "% of wall time"), f"{ident}-calls", title, caption)
    return Chart(title, caption, svg, calls_table(profile))


def calls_table(profile: Profile, most: int | None = None) -> Table:
    """Every call with both shares, count, typical size and what it is bound by; the first `most` of them."""
    numeric = ("Of wall", "Of MPI", "Time", "Calls", "Mean", "Bytes", "Range over ranks")
    measured = bool(profile.measured_calls[0])
    columns = headings("Call", *map(right, numeric))
    columns += [Column("Waiting, measured", numeric=True)] * measured
    columns += headings("Size", "Bound by")
    rows = []
    for one in profile.calls[:most]:
        of_wall = one.time_s / profile.wall_s if profile.wall_s > 0 else 0.0
        of_mpi = one.time_s / profile.mpi_s if profile.mpi_s > 0 else 0.0
        rows.append(
            [
                Cell(one.call),
                Cell(share_words(of_wall), of_wall),
                Cell(share_words(of_mpi), of_mpi),
                Cell(show(one.time_s, "s"), one.time_s),
                Cell(str(one.count), one.count),
                Cell(show(one.mean_s, "s"), one.mean_s),
                Cell(show(one.bytes, "B"), one.bytes),
                Cell(spread_words([one.least_rank_s, one.most_rank_s])),
                *[Cell(waiting_words(one) or NO_VALUE)] * measured,
                Cell(typical_size(profile.sizes, one) or NO_VALUE),
                Cell(BOUND_WORDS[one.bound]),
            ]
        )
    return Table("Calls by time", columns, rows)


def _spec(bars: list[dict[str, Any]], spans: list[dict[str, Any]], order: list[str], x_title: str) -> dict[str, Any]:
    # The renderer does not know the width of the browser's font: reserve space for the longest name.
    axis = {"labelLimit": 260, "minExtent": _PIXELS_OF_A_CHARACTER * max(map(len, order)) + 8}
    y = {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": axis}
    x = {"field": "x", "type": "quantitative", "title": x_title, "stack": "zero"}
    parts = list(dict.fromkeys(bar["part"] for bar in bars))
    colours = {"computing": SERIES_COLOURS[2], _BEST: SERIES_COLOURS[0], _BEYOND: SERIES_COLOURS[1]}
    colour = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "scale": {"domain": parts, "range": [colours[part] for part in parts]},
        "legend": {**STROKE_LEGEND, "symbolType": "square", "symbolSize": 120, "columns": 3},
    }
    place = {"field": "place", "type": "quantitative"}
    layers: list[dict[str, Any]] = [
        layer(
            "bar",
            {"x": x, "y": y, "color": colour, "order": place},
            [{**bar, "place": parts.index(bar["part"])} for bar in bars],
            size=14,
        )
    ]
    if spans:
        across = {"x": {"field": "x", "type": "quantitative"}, "x2": {"field": "x2"}, "y": y}
        rim = {"type": "rule", "color": "var(--paper)", "strokeWidth": 4}
        line = {"type": "rule", "color": "var(--ink)", "strokeWidth": 1.5}
        layers += [{"data": {"values": spans}, "mark": mark, "encoding": across} for mark in (rim, line)]
    return {"width": _WIDTH, "height": _ROW * len(order), "layer": layers}


_HEIGHT = 180
_MOST_CALLS = 5
_MOST_ROWS = 60
_OTHERS = "other calls"


def sizes_charts(profile: Profile, ident: str) -> list[Chart]:
    """Two charts over the size: share of MPI time, and number of calls. Empty where no call has a size."""
    sizes = [one for one in profile.sizes if one.largest_B and one.count]
    if not sizes or not profile.trust.has_sizes:
        return []
    named = list(dict.fromkeys(one.call for one in sizes))[:_MOST_CALLS]
    table = _table(profile, sizes)
    caption = "Sizes as passed by the caller, in powers of two: a bar covers its size up to the next."
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
    numeric = ("Size", "Of MPI", "Calls", "Bytes", "Mean", "Best")
    columns = headings("Call", *map(right, numeric), "Bound by")
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
