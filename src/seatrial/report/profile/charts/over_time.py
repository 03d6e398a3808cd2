"""Over time: MPI against everything else, of all ranks together and rank by rank, and input and output."""

from __future__ import annotations

from typing import Any

from seatrial.model.spelling import NO_VALUE, display_scale, show
from seatrial.profiler.profile import OverTime
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.blocks import Cell, Cells, Chart, Table, always, right
from seatrial.report.charts import heat, vega

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
    x = _since_start(time.width_s * len(time.mpi_s) / scale, unit)
    y = vega.quantity("y", "% of wall time in MPI", scale={"domain": [0, 100]})
    band = vega.layer("area", vega.between(x, y), color="var(--band)", opacity=1, interpolate="step")
    spec = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [
            {**band, "transform": [{"filter": "isValid(datum.low)"}]},
            vega.layer("line", {"x": x, "y": y}, color=vega.SERIES_COLOURS[0], strokeWidth=2, interpolate="step"),
        ],
    }
    return vega.chart(spec, f"{ident}-over-time", title, caption, _numbers(time))


def _since_start(until: float, unit: str) -> dict[str, Any]:
    """The axis of time."""
    scale = {"domain": [0, until], "nice": False}
    return vega.quantity(
        "x", f"{unit} since the first rank was started", axis={"grid": False, "tickCount": 8}, scale=scale
    )


def _numbers(time: OverTime) -> Table:
    rows: list[Cells] = []
    for k, share in enumerate(time.shares):
        shares = [Cell.share(one) for one in (share, time.least[k], time.most[k])]
        rows.append([Cell.amount(k * time.width_s, "s"), *shares])
    return Table.of("Share of wall time in MPI by bin", right("From", "All ranks", "Least", "Most"), rows)


def lanes_over_time(time: OverTime, ident: str) -> Chart | None:
    """Rank by rank (or neighbours together) over time, coloured by the share of MPI. None for one lane."""
    if len(time.lanes) < 2 or len(time.mpi_s) < 2:
        return None
    bins, lanes = len(time.mpi_s), len(time.lanes)
    width, height = _LANES_WIDTH / bins, min(_LANE_TALLEST, _LANES_HEIGHT / lanes)
    edge = height * lanes
    scale = heat.HeatScale("1", tuple(100 * k / heat.CLASSES for k in range(heat.CLASSES + 1)))
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
        heat.rectangle(0, 0, _LANES_WIDTH, edge, "ground"),
        heat.cells(values, scale, width, height),
        heat.rectangle(0, 0, _LANES_WIDTH, edge, "frame"),
        *_lane_names(time, height),
        *_moments(time, edge),
        heat.legend(scale, 0, edge + 32, "% of wall time in MPI", len(values) < bins * lanes),
    ]
    size = (_LEFT + max(_LANES_WIDTH + 20, heat.LEGEND_WIDTH), _TOP + edge + 36 + heat.LEGEND_HEIGHT)
    picture = heat.svg(f"{ident}-lanes", size, title, caption, parts, (_LEFT, _TOP))
    return Chart(title, caption, always(picture), _lane_table(time))


def _lane_names(time: OverTime, height: float) -> list[str]:
    step = max(1, -(-round(_LABEL) // max(1, round(height))))
    return [
        heat.text(-6, (row + 0.5) * height + 4, _lane_name(time, row), "tick", "end")
        for row in range(0, len(time.lanes), step)
    ]


def _lane_name(time: OverTime, row: int) -> str:
    lane = time.lanes[row]
    return f"{lane.first}" if lane.first == lane.last else f"{lane.first}-{lane.last}"


def _moments(time: OverTime, edge: float) -> list[str]:
    whole = time.width_s * len(time.mpi_s)
    at = [whole * k / _TICKS for k in range(_TICKS + 1)]
    return [heat.text(moment / whole * _LANES_WIDTH, edge + 15, show(moment, "s"), "tick") for moment in at]


def _lane_table(time: OverTime) -> Table:
    rows: list[Cells] = []
    for row, lane in enumerate(time.lanes):
        known = [share for share in lane.shares if share is not None]
        rows.append([_lane_name(time, row), *(Cell.share(end(known, default=None)) for end in (min, max))])
    caption = "Share of MPI by rank, in the lowest and highest bin"
    return Table.of(caption, ["Ranks", *right("Lowest bin", "Highest bin")], rows)


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
    """Name -> bytes in each bin; the rank with most of it has its own line."""
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
    fullest = max((max(values, default=0.0) for values in lines.values()), default=0.0) / io.width_s
    rate, rate_unit = display_scale([fullest], "B/s")
    rows = [
        {"x": (k + 0.5) * io.width_s / scale, "y": value / io.width_s / rate, "line": name}
        for name, values in lines.items()
        for k, value in enumerate(values)
    ]
    colour, dash = ({**one, "legend": vega.STROKE_LEGEND} for one in vega.series("line", names))
    # The sum is drawn first and widest: a line that is all of it is seen upon it.
    width = {**colour, "scale": {"domain": names, "range": [4, *[2] * (len(names) - 1)]}}
    x = _since_start(until_s / scale, unit)
    y = vega.quantity("y", f"{rate_unit} {what}", scale={"domainMin": 0})
    spec = {
        "width": _WIDTH,
        "height": _FILES_HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step"},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "strokeWidth": width},
    }
    caption = f"Rates in bins of {show(io.width_s, 's')}, on the time axis of MPI over time."
    return vega.chart(spec, ident, title, caption, _file_numbers(io, title, lines))


def _file_numbers(io: ProfileIo, title: str, lines: dict[str, tuple[float, ...]]) -> Table:
    rows = [
        [Cell.amount(k * io.width_s, "s"), *(Cell.amount(values[k], "B") for values in lines.values())]
        for k in range(io.bins)
    ]
    return Table.of(f"{title}, bytes per bin", right("From", *map(str.capitalize, lines)), rows)


def io_table(io: ProfileIo) -> Table | None:
    """The ranks that read and write most. None where nothing is known of any."""
    if not io.known:
        return None
    order = sorted(io.ranks, key=lambda one: -(one.totals.read_B + one.totals.written_B) if one.totals else 1)
    named = ("Read", "Calls", "From devices", "Written", "Calls", "To devices")
    rows: list[Cells] = []
    for one in order[:_MOST_RANKS]:
        values: Cells = [NO_VALUE for _ in named]
        if one.totals is not None:
            t = one.totals
            reads = [Cell.amount(t.read_B, "B"), Cell.number(t.read_calls), Cell.amount(t.device_read_B, "B")]
            values = [
                *reads,
                Cell.amount(t.written_B, "B"),
                Cell.number(t.write_calls),
                Cell.amount(t.device_written_B, "B"),
            ]
        rows.append([Cell.number(one.rank), one.host, *values])
    more = f", the first {len(rows)} of {len(io.ranks)}" if len(io.ranks) > len(rows) else ""
    return Table.of(f"Ranks by input and output{more}", [*right("Rank"), "Host", *right(*named)], rows)
