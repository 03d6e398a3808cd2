"""Where the wall time of an MPI program goes: computing, each call with its time above the best, and message sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.model.spelling import NO_VALUE, show, show_percent
from seatrial.profiler.profile import Profile, SizeTotals
from seatrial.report.blocks import Cell, Chart, Table, right
from seatrial.report.charts import vega
from seatrial.report.profile.place_words import share_words
from seatrial.report.profile.words import calls_table, file_share, sizes_table

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
    ranges = {kind: f"{show_percent(min(own))} to {show_percent(max(own))}" for kind, own in kinds.items()}
    beyond = "waiting in MPI (measured)" if profile.measured_calls[0] else "MPI above the best (estimated)"
    shares = [*means.items(), (beyond, means["MPI"] * waiting)]
    shares += [] if (files := file_share(profile)) is None else [("calls on files, outside MPI", files)]
    rows = [(kind, Cell(share_words(share), share), ranges.get(kind, NO_VALUE)) for kind, share in shares]
    numbers = Table.of(title, ["Part", *right("Of wall", "Range over ranks")], rows)
    return vega.chart(_spec(bars, spans, list(kinds)), f"{ident}-wall", title, caption, numbers)


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
    spec = _spec(bars, [], [one.call for one in shown])
    return vega.chart(spec, f"{ident}-calls", title, caption, calls_table(profile))


def _spec(bars: list[dict[str, Any]], spans: list[dict[str, Any]], order: list[str]) -> dict[str, Any]:
    # The renderer does not know the width of the browser's font: reserve space for the longest name.
    axis = {"labelLimit": 260, "minExtent": _PIXELS_OF_A_CHARACTER * max(map(len, order)) + 8}
    y = {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": axis}
    x = vega.quantity("x", "% of wall time", stack="zero")
    parts = list(dict.fromkeys(bar["part"] for bar in bars))
    colours = {"computing": vega.SERIES_COLOURS[2], _BEST: vega.SERIES_COLOURS[0], _BEYOND: vega.SERIES_COLOURS[1]}
    rows = [{**bar, "place": parts.index(bar["part"])} for bar in bars]
    layers = [
        vega.layer("bar", {"x": x, "y": y, **_stacked("part", parts, [colours[part] for part in parts])}, rows, size=14)
    ]
    if spans:
        across = {"x": {"field": "x", "type": "quantitative"}, "x2": {"field": "x2"}, "y": y}
        layers.append(vega.layer("rule", across, spans, color="var(--paper)", strokeWidth=4))
        layers.append(vega.layer("rule", across, spans, color="var(--ink)", strokeWidth=1.5))
    return {"width": _WIDTH, "height": _ROW * len(order), "layer": layers}


def _stacked(field: str, names: list[str], colours: list[str]) -> dict[str, Any]:
    """The encodings of the parts of a bar, in the order of their `place`."""
    legend = {**vega.STROKE_LEGEND, "symbolType": "square", "symbolSize": 120, "columns": 3}
    scale = {"domain": names, "range": colours}
    colour = {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": legend}
    return {"color": colour, "order": {"field": "place", "type": "quantitative"}}


_HEIGHT = 180
_MOST_CALLS = 5
_MOST_ROWS = 60
_OTHERS = "other calls"


def sizes_charts(profile: Profile, ident: str) -> list[Chart]:
    """Two charts over the size: share of MPI time, and number of calls. Empty where no call has a size."""
    sizes = [one for one in profile.sizes if one.largest_B and one.count]
    if not sizes or not profile.trust.has_sizes:
        return []
    numbers = sizes_table(profile, sizes, _MOST_ROWS)
    caption = "Sizes as passed by the caller, in powers of two: a bar covers its size up to the next."
    share = 100 / profile.mpi_s if profile.mpi_s > 0 else 0.0
    times = _sizes_spec("% of MPI time", sizes, lambda one: one.time_s * share)
    counts = _sizes_spec("calls", sizes, lambda one: one.count)
    return [
        vega.chart(times, f"{ident}-t", "Time by size", caption, numbers),
        vega.chart(counts, f"{ident}-n", "Calls by size", caption, numbers),
    ]


def _sizes_spec(axis: str, sizes: list[SizeTotals], value: Callable[[SizeTotals], float]) -> dict[str, Any]:
    named = list(dict.fromkeys(one.call for one in sizes))[:_MOST_CALLS]
    summed: dict[tuple[int, str], float] = {}
    for one in sizes:
        key = (one.size_B.bit_length(), one.call if one.call in named else _OTHERS)
        summed[key] = summed.get(key, 0.0) + value(one)
    powers = range(min(p for p, _ in summed), max(p for p, _ in summed) + 1)
    calls = [*named, *([_OTHERS] if any(call == _OTHERS for _, call in summed) else [])]
    rows = [
        {"size": _name(power), "call": call, "y": total, "place": calls.index(call)}
        for (power, call), total in summed.items()
    ]
    x: dict[str, Any] = {"field": "size", "type": "ordinal", "title": "size", "sort": None}
    x["scale"] = {"domain": [_name(power) for power in powers]}
    x["axis"] = {"labelAngle": -45, "labelOverlap": True}
    y = vega.quantity("y", axis, axis={"tickCount": 5, "format": "~s"})
    colours = [*vega.SERIES_COLOURS[: len(named)], "var(--faint)"][: len(calls)]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {"x": x, "y": y, **_stacked("call", calls, colours)},
    }


def _name(power: int) -> str:
    size = 1 << (power - 1) if power else 0
    return show(size, "B", binary=size >= 1024)
