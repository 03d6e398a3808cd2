"""Over time: MPI against everything else, of all ranks together and rank by rank, and input and output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.model.spelling import NO_VALUE, display_scale, show, show_percent
from seatrial.profiler.profile import OverTime
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.charts.pair_matrix import (
    CLASSES,
    LEGEND_HEIGHT,
    LEGEND_WIDTH,
    HeatScale,
    cells,
    legend,
    number,
    rectangle,
    svg,
    text,
)
from seatrial.report.charts.vega import SERIES_COLOURS, SERIES_DASHES, STROKE_LEGEND, Chart, layer, render
from seatrial.report.pages.templating import Cell, Column, Svg, Table, headings, right

_WIDTH, _HEIGHT = 620, 190
_LEFT, _TOP = 90.0, 12.0
_LANES_WIDTH = 560.0
_LANE_TALLEST, _LANES_HEIGHT = 16.0, 420.0
_LABEL = 14.0
_TICKS = 5


def share_over_time(time: OverTime, ident: str) -> Chart | None:
    """The share of MPI of all ranks as a line, least and most of a rank as a band. None with fewer than two bins."""
    if len(time.mpi_s) < 2:
        return None
    scale, unit = display_scale([time.width_s * len(time.mpi_s)], "s")
    rows: list[dict[str, Any]] = []
    for k, share in enumerate(time.shares):
        if share is not None:
            least, most = time.least[k], time.most[k]
            row = {"x": (k + 0.5) * time.width_s / scale, "y": min(100.0, share * 100)}
            ends = {} if least is None or most is None else {"low": least * 100, "high": min(100.0, most * 100)}
            rows.append({**row, **ends})
    title = "MPI over time"
    caption = "The line is the share over all ranks, the band the range over ranks; "
    caption += f"bins of {show(time.width_s, 's')}."
    x = {
        "field": "x",
        "type": "quantitative",
        "title": f"{unit} since the first rank was started",
        "axis": {"grid": False},
    }
    x["scale"] = {"domain": [0, time.width_s * len(time.mpi_s) / scale], "nice": False}
    y = {"field": "y", "type": "quantitative", "title": "% of wall time in MPI", "scale": {"domain": [0, 100]}}
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    spec = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "area", "color": "var(--band)", "opacity": 1, "interpolate": "step"},
                "encoding": band,
            },
            layer("line", {"x": x, "y": y}, color=SERIES_COLOURS[0], strokeWidth=2, interpolate="step"),
        ],
    }
    return Chart(title, caption, render(spec, f"{ident}-over-time", title, caption), _numbers(time))


def _numbers(time: OverTime) -> Table:
    columns = headings(right("From"), *map(right, ("All ranks", "Least", "Most")))
    rows = []
    for k, share in enumerate(time.shares):
        values = (share, time.least[k], time.most[k])
        shares = [Cell(NO_VALUE if one is None else show_percent(one), one) for one in values]
        rows.append([Cell(show(k * time.width_s, "s"), k * time.width_s), *shares])
    return Table("Share of wall time in MPI by bin", columns, rows)


def lanes_over_time(time: OverTime, ident: str) -> Chart | None:
    """Rank by rank (or neighbours together) over time, coloured by the share of MPI. None for one lane."""
    if len(time.lanes) < 2 or len(time.mpi_s) < 2:
        return None
    bins, lanes = len(time.mpi_s), len(time.lanes)
    width, height = _LANES_WIDTH / bins, min(_LANE_TALLEST, _LANES_HEIGHT / lanes)
    edge = height * lanes
    scale = HeatScale("1", tuple(100 * k / CLASSES for k in range(CLASSES + 1)))
    values = {
        (row, k): share * 100
        for row, lane in enumerate(time.lanes)
        for k, share in enumerate(lane.shares)
        if share is not None
    }
    title = "MPI of each rank over time"
    grouped = any(lane.first != lane.last for lane in time.lanes)
    caption = "Colour is the share of wall time in MPI: a rank that differs computes more or less than the others."
    caption += " Neighbouring ranks are drawn together." if grouped else ""
    parts = [
        rectangle(0, 0, _LANES_WIDTH, edge, "ground"),
        cells(values, scale, width, height),
        rectangle(0, 0, _LANES_WIDTH, edge, "frame"),
        *_lane_names(time, height),
        *_moments(time, edge),
        legend(scale, 0, edge + 32, "% of wall time in MPI", len(values) < bins * lanes),
    ]
    content = f'<g transform="translate({number(_LEFT)} {number(_TOP)})">{"".join(parts)}</g>'
    whole = svg(
        f"{ident}-lanes",
        _LEFT + max(_LANES_WIDTH + 20, LEGEND_WIDTH),
        _TOP + edge + 36 + LEGEND_HEIGHT,
        title,
        caption,
        content,
    )
    return Chart(title, caption, Svg(whole), _lane_table(time))


def _lane_names(time: OverTime, height: float) -> list[str]:
    step = max(1, -(-round(_LABEL) // max(1, round(height))))
    return [
        text(-6, (row + 0.5) * height + 4, _lane_name(time, row), "tick", "end")
        for row in range(0, len(time.lanes), step)
    ]


def _lane_name(time: OverTime, row: int) -> str:
    lane = time.lanes[row]
    return f"{lane.first}" if lane.first == lane.last else f"{lane.first}-{lane.last}"


def _moments(time: OverTime, edge: float) -> list[str]:
    whole = time.width_s * len(time.mpi_s)
    at = [whole * k / _TICKS for k in range(_TICKS + 1)]
    return [text(moment / whole * _LANES_WIDTH, edge + 15, show(moment, "s"), "tick") for moment in at]


def _lane_table(time: OverTime) -> Table:
    columns = headings("Ranks", right("Lowest bin"), right("Highest bin"))
    rows = []
    for row, lane in enumerate(time.lanes):
        known = [share for share in lane.shares if share is not None]
        ends = (min(known), max(known)) if known else (None, None)
        rows.append([Cell(_lane_name(time, row)), *(Cell(NO_VALUE if e is None else show_percent(e), e) for e in ends)])
    return Table("Share of MPI by rank, in the lowest and highest bin", columns, rows)


_FILES_HEIGHT = 170
_MOST_RANKS = 12
_ASKED, _DEVICES, _DISKS, _NFS = (
    "requested by all ranks",
    "devices, for the ranks",
    "disks of the nodes, all processes",
    "NFS servers, for the nodes",
)
_KINDS = (("read", "Reads over time"), ("written", "Writes over time"))


def io_charts(io: ProfileIo, until_s: float, ident: str) -> list[Chart]:
    """Reading and writing, each with the ranks' own lines and those of their nodes. `until_s` is where the time axis
    ends: that of MPI over time. Empty where nothing is known over time."""
    if io.bins < 2 or not any(one.series for one in io.ranks):
        return []
    until_s = max(until_s, io.width_s * io.bins)
    return [_chart(io, what, title, until_s, f"{ident}-io-{what}") for what, title in _KINDS]


def _lines(io: ProfileIo, what: str) -> dict[str, tuple[float, ...]]:
    """Name -> bytes in each bin; the rank with most of it has a line of its own."""
    lines = {_ASKED: io.over_time(f"{what}_B")}
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
    told_apart: dict[str, Any] = {"field": "line", "type": "nominal", "sort": None, "title": None}
    legend = {**STROKE_LEGEND, "columns": 2}
    colours = {"domain": names, "range": list(SERIES_COLOURS[: len(names)])}
    dashes = {"domain": names, "range": list(SERIES_DASHES[: len(names)])}
    # The sum is drawn first and widest: a line that is all of it is seen upon it.
    widths = {"domain": names, "range": [4, *[2] * (len(names) - 1)]}
    x = {
        "field": "x",
        "type": "quantitative",
        "title": f"{unit} since the first rank was started",
        "axis": {"grid": False},
        "scale": {"domain": [0, until_s / scale], "nice": False},
    }
    y = {"field": "y", "type": "quantitative", "title": f"{rate_unit} {what}", "scale": {"domainMin": 0}}
    spec = {
        "width": _WIDTH,
        "height": _FILES_HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step"},
        "encoding": {
            "x": x,
            "y": y,
            "color": {**told_apart, "scale": colours, "legend": legend},
            "strokeDash": {**told_apart, "scale": dashes, "legend": legend},
            "strokeWidth": {**told_apart, "scale": widths, "legend": legend},
        },
    }
    caption = f"Rates in bins of {show(io.width_s, 's')}, on the time axis of MPI over time."
    return Chart(title, caption, render(spec, ident, title, caption), _file_numbers(io, title, lines))


def _file_numbers(io: ProfileIo, title: str, lines: dict[str, tuple[float, ...]]) -> Table:
    columns = [Column("From", numeric=True), *(Column(name.capitalize(), numeric=True) for name in lines)]
    rows = []
    for k in range(io.bins):
        values = [series[k] for series in lines.values()]
        at = k * io.width_s
        rows.append([Cell(show(at, "s"), at), *(Cell(show(value, "B"), value) for value in values)])
    return Table(f"{title}, bytes per bin", columns, rows)


def io_table(io: ProfileIo) -> Table | None:
    """The ranks that read and write most. None where nothing is known of any."""
    if not io.known:
        return None
    order = sorted(io.ranks, key=lambda one: -(one.totals.read_B + one.totals.written_B) if one.totals else 1)
    named = ("Read", "Calls", "From devices", "Written", "Calls", "To devices")
    columns = headings(right("Rank"), "Host", *map(right, named))
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
    return Table(f"Ranks by input and output{more}", columns, rows)
