"""The ranks side by side: computing and MPI, bytes sent and received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.units import Unit
from seatrial.profiler.profile import Profile, RankTotals
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.vega import SERIES_COLOURS, STROKE_LEGEND, render
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import display_scale, show

_WIDTH, _HEIGHT = 620, 170
_MOST_BARS = 128
_MOST_ROWS = 64
_MOST_TICKS = 20


def rank_charts(profile: Profile, ident: str) -> list[Chart]:
    """Time and point-to-point bytes of each rank. Empty with fewer than two ranks."""
    ranks = profile.per_rank
    if len(ranks) < 2:
        return []
    table = _table(ranks)
    together = (
        ""
        if len(ranks) <= _MOST_BARS
        else f" Each mark is the mean of {-(-len(ranks) // _MOST_BARS)} neighbouring ranks."
    )
    times = {"computing": [one.compute_s for one in ranks], "MPI": [one.mpi_s for one in ranks]}
    caption = f"Load imbalance makes ranks wait: see whether ranks with little computing spend long in MPI.{together}"
    charts = [_chart("Time of each rank", caption, times, "s", ranks, f"{ident}-rank-time", table, stacked=True)]
    traffic = {"sent": [float(one.sent_B) for one in ranks], "received": [float(one.received_B) for one in ranks]}
    if any(map(any, traffic.values())):
        caption = f"Point-to-point payload only.{together}"
        charts.append(_chart("Bytes of each rank", caption, traffic, "B", ranks, f"{ident}-rank-bytes", table))
    return charts


def _chart(
    title: str,
    caption: str,
    series: Mapping[str, Sequence[float]],
    unit: Unit,
    ranks: Sequence[RankTotals],
    ident: str,
    table: Table,
    *,
    stacked: bool = False,
) -> Chart:
    scale, unit_name = display_scale([value for values in series.values() for value in values], unit)
    step = -(-len(ranks) // _MOST_BARS)
    rows = []
    for begin in range(0, len(ranks), step):
        group = ranks[begin : begin + step]
        base = 0.0
        for name, values in series.items():
            mean = sum(values[begin : begin + step]) / len(group) / scale
            ends = {"x": group[0].rank - 0.5, "x2": group[-1].rank + 0.5, "y": base, "y2": base + mean}
            rows.append({"part": name, **ends})
            base += mean if stacked else 0.0
    names = list(series)
    colours = [SERIES_COLOURS[2], SERIES_COLOURS[0]] if stacked else [SERIES_COLOURS[0], SERIES_COLOURS[1]]
    x: dict[str, Any] = {
        "field": "x",
        "type": "quantitative",
        "title": "rank",
        "axis": {"grid": False, "format": "d", "values": _ticks(ranks[0].rank, ranks[-1].rank)},
    }
    x["scale"] = {"domain": [ranks[0].rank - 0.5, ranks[-1].rank + 0.5], "nice": False}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": unit_name, "axis": {"tickCount": 5}}
    y["scale"] = {"zero": True}
    colour: dict[str, Any] = {"field": "part", "type": "nominal", "title": None}
    colour["scale"] = {"domain": names, "range": colours}
    colour["legend"] = {**STROKE_LEGEND, "symbolType": "square", "symbolSize": 120}
    spec: dict[str, Any] = {"width": _WIDTH, "height": _HEIGHT, "data": {"values": rows}}
    if stacked:
        spec["mark"] = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5 if len(ranks) < _MOST_BARS else 0}
        spec["encoding"] = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}, "color": colour}
    else:  # the two are often equal, and one bar would cover the other
        middle = {**x, "field": "middle"}
        spec["transform"] = [{"calculate": "(datum.x + datum.x2) / 2", "as": "middle"}]
        shape = {**colour, "scale": {"domain": names, "range": ["circle", "cross"]}}
        shape["legend"] = colour["legend"] = {"orient": "bottom"}
        spec["mark"] = {"type": "point", "filled": False, "size": 44, "opacity": 1}
        spec["encoding"] = {"x": middle, "y": {**y, "field": "y2"}, "color": colour, "shape": shape}
    return Chart(title, caption, render(spec, ident, title, caption), table)


def _ticks(first: int, last: int) -> list[int]:
    """Integer ranks at round steps: the default ticks of an axis that begins at half a rank are between ranks."""
    step = 1
    while (last - first) / step > _MOST_TICKS:
        step *= 2
    return list(range(-(-first // step) * step, last + 1, step))


def _table(ranks: Sequence[RankTotals]) -> Table:
    numeric = ("Wall", "Computing", "MPI", "Calls", "Sent", "Received", "In collectives")
    columns = [Column("Rank", numeric=True), Column("Host"), *(Column(name, numeric=True) for name in numeric)]
    columns.append(Column("State"))
    order = sorted(ranks, key=lambda one: -one.compute_s)
    shown = order if len(order) <= _MOST_ROWS else [*order[: _MOST_ROWS // 2], *order[-_MOST_ROWS // 2 :]]
    rows = []
    for one in shown:
        times = [Cell(show(value, "s", 4), value) for value in (one.wall_s, one.compute_s, one.mpi_s)]
        sizes = [Cell(show(value, "B"), value) for value in (one.sent_B, one.received_B, one.collective_B)]
        cells = [Cell(str(one.rank), one.rank), Cell(one.host), *times, Cell(str(one.calls), one.calls), *sizes]
        rows.append([*cells, Cell(one.state.value)])
    title = "Ranks by compute time"
    if len(shown) < len(order):
        title += f": the first and the last {_MOST_ROWS // 2} of {len(order)}"
    return Table(title, columns, rows)
