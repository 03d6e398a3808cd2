"""Reading and writing of the ranks over time: as requested, and as transferred by devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.vega import SERIES_COLOURS, SERIES_DASHES, STROKE_LEGEND, render
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, display_scale, show

_WIDTH, _HEIGHT = 620, 170
_MOST_RANKS = 12
_REQUESTED, _DEVICES, _DISKS, _NFS = (
    "requested by all ranks",
    "devices, for the ranks",
    "disks of the nodes, all processes",
    "NFS of the nodes, all processes",
)
_KINDS = (("read", "Reading over time"), ("written", "Writing over time"))


def io_charts(io: ProfileIo, until_s: float, ident: str) -> list[Chart]:
    """Reading and writing, each with lines of the ranks and of their nodes. `until_s` is the end of the time axis of
    MPI over time. Empty if nothing is known over time."""
    if io.bins < 2 or not any(one.series for one in io.ranks):
        return []
    until_s = max(until_s, io.width_s * io.bins)
    return [_chart(io, what, title, until_s, f"{ident}-io-{what}") for what, title in _KINDS]


def _lines(io: ProfileIo, what: str) -> dict[str, tuple[float, ...]]:
    """Name -> bytes in each bin; the rank with the most bytes has a separate line."""
    lines = {_REQUESTED: io.over_time(f"{what}_B")}
    busiest = _busiest(io, f"{what}_B")
    if busiest is not None:
        lines[f"requested by rank {busiest[0]}"] = busiest[1]
    lines[_DEVICES] = io.over_time(f"device_{what}_B")
    for name, field in ((_DISKS, f"disk_{what}_B"), (_NFS, f"nfs_{what}_B")):
        series = io.of_nodes(field)
        if series:
            lines[name] = series
    return lines


def _busiest(io: ProfileIo, name: str) -> tuple[int, tuple[float, ...]] | None:
    ranked = [(sum(getattr(one.series, name)), one) for one in io.ranks if one.series is not None]
    if len(ranked) < 2:
        return None
    total, one = max(ranked, key=lambda pair: pair[0])
    return (one.rank, tuple(getattr(one.series, name))) if total > 0 else None


def _chart(io: ProfileIo, what: str, title: str, until_s: float, ident: str) -> Chart:
    lines = _lines(io, what)
    names = list(lines)
    scale, unit = display_scale([until_s], "s")
    fullest = max((max(series, default=0.0) for series in lines.values()), default=0.0) / io.width_s
    rate, rate_unit = display_scale([fullest], "B/s")
    rows = [
        {"x": (k + 0.5) * io.width_s / scale, "y": value / io.width_s / rate, "line": name}
        for name, series in lines.items()
        for k, value in enumerate(series)
    ]
    by_line: dict[str, Any] = {"field": "line", "type": "nominal", "sort": None, "title": None}
    legend = {**STROKE_LEGEND, "columns": 2}
    colours = {"domain": names, "range": list(SERIES_COLOURS[: len(names)])}
    dashes = {"domain": names, "range": list(SERIES_DASHES[: len(names)])}
    # The sum is drawn first and widest: a line that equals it stays visible on top.
    widths = {"domain": names, "range": [4, *[2] * (len(names) - 1)]}
    x = {
        "field": "x",
        "type": "quantitative",
        "title": f"{unit} since the start of the first rank",
        "axis": {"grid": False},
        "scale": {"domain": [0, until_s / scale], "nice": False},
    }
    y = {"field": "y", "type": "quantitative", "title": f"{rate_unit} {what}", "scale": {"domainMin": 0}}
    spec = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step"},
        "encoding": {
            "x": x,
            "y": y,
            "color": {**by_line, "scale": colours, "legend": legend},
            "strokeDash": {**by_line, "scale": dashes, "legend": legend},
            "strokeWidth": {**by_line, "scale": widths, "legend": legend},
        },
    }
    caption = f"Rates in bins of {show(io.width_s, 's')}, on the time axis of MPI over time."
    return Chart(title, caption, render(spec, ident, title, caption), _numbers(io, title, lines))


def _numbers(io: ProfileIo, title: str, lines: dict[str, tuple[float, ...]]) -> Table:
    columns = [Column("From", numeric=True), *(Column(name.capitalize(), numeric=True) for name in lines)]
    rows = []
    for k in range(io.bins):
        values = [series[k] for series in lines.values()]
        at = k * io.width_s
        rows.append([Cell(show(at, "s"), at), *(Cell(show(value, "B"), value) for value in values)])
    return Table(f"{title}, bytes per bin", columns, rows)


def io_table(io: ProfileIo) -> Table | None:
    """The ranks that read and write the most. None if nothing is known of any rank."""
    if not io.known:
        return None
    order = sorted(io.ranks, key=lambda one: -(one.totals.read_B + one.totals.written_B) if one.totals else 1)
    named = ("Read", "Read calls", "From devices", "Written", "Write calls", "To devices")
    columns = [Column("Rank", numeric=True), Column("Host"), *(Column(name, numeric=True) for name in named)]
    rows = []
    for one in order[:_MOST_RANKS]:
        if one.totals is None:
            values: Sequence[Cell] = [Cell(NO_VALUE) for _ in named]
        else:
            t = one.totals
            values = [
                *(Cell(show(t.read_B, "B"), t.read_B), Cell(str(t.read_calls), t.read_calls)),
                Cell(show(t.device_read_B, "B"), t.device_read_B),
                *(Cell(show(t.written_B, "B"), t.written_B), Cell(str(t.write_calls), t.write_calls)),
                Cell(show(t.device_written_B, "B"), t.device_written_B),
            ]
        rows.append([Cell(str(one.rank), one.rank), Cell(one.host), *values])
    more = f", the first {len(rows)} of {len(io.ranks)}" if len(io.ranks) > len(rows) else ""
    return Table(f"Ranks by bytes read and written{more}", columns, rows)
