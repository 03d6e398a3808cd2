"""The share of MPI over time: all ranks together, and rank by rank."""

from __future__ import annotations

from typing import Any

from seatrial.profiler.profile import OverTime
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.heat import (
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
from seatrial.report.charts.vega import SERIES_COLOURS, render
from seatrial.report.pages.svg import Svg
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, display_scale, show, show_percent

_WIDTH, _HEIGHT = 620, 190
_LEFT, _TOP = 90.0, 12.0
_LANES_WIDTH = 560.0
_LANE_TALLEST, _LANES_HEIGHT = 16.0, 420.0
_LABEL = 14.0
_TICKS = 5


def share_over_time(time: OverTime, ident: str) -> Chart | None:
    """The share of MPI of all ranks as a line, the range over ranks as a band. None with fewer than two bins."""
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
    caption = f"The line is all ranks together, the band is the range over ranks; bins of {show(time.width_s, 's')}."
    x = {
        "field": "x",
        "type": "quantitative",
        "title": f"{unit} since the start of the first rank",
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
            {
                "mark": {"type": "line", "color": SERIES_COLOURS[0], "strokeWidth": 2, "interpolate": "step"},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
    return Chart(title, caption, render(spec, f"{ident}-over-time", title, caption), _numbers(time))


def _numbers(time: OverTime) -> Table:
    columns = [Column("From", numeric=True), *(Column(n, numeric=True) for n in ("All ranks", "Minimum", "Maximum"))]
    rows = []
    for k, share in enumerate(time.shares):
        values = (share, time.least[k], time.most[k])
        shares = [Cell(NO_VALUE if one is None else show_percent(one), one) for one in values]
        rows.append([Cell(show(k * time.width_s, "s"), k * time.width_s), *shares])
    return Table("Share of wall time in MPI per bin", columns, rows)


def lanes_over_time(time: OverTime, ident: str) -> Chart | None:
    """Each rank (or group of neighbours) over time, coloured by the share of MPI. None for one lane."""
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
    caption = (
        "Colour is the share of wall time in MPI: a rank that differs throughout computes more or less than the others."
    )
    caption += " Neighbouring ranks are drawn together." if grouped else ""
    parts = [
        rectangle(0, 0, _LANES_WIDTH, edge, "ground"),
        cells(values, scale, width, height),
        rectangle(0, 0, _LANES_WIDTH, edge, "frame"),
        *_lane_names(time, height),
        *_time_labels(time, edge),
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


def _time_labels(time: OverTime, edge: float) -> list[str]:
    whole = time.width_s * len(time.mpi_s)
    at = [whole * k / _TICKS for k in range(_TICKS + 1)]
    return [text(moment / whole * _LANES_WIDTH, edge + 15, show(moment, "s"), "tick") for moment in at]


def _lane_table(time: OverTime) -> Table:
    columns = [Column("Ranks"), Column("Minimum over bins", numeric=True), Column("Maximum over bins", numeric=True)]
    rows = []
    for row, lane in enumerate(time.lanes):
        known = [share for share in lane.shares if share is not None]
        ends = (min(known), max(known)) if known else (None, None)
        rows.append([Cell(_lane_name(time, row)), *(Cell(NO_VALUE if e is None else show_percent(e), e) for e in ends)])
    return Table("Share of MPI of each lane, minimum and maximum over bins", columns, rows)
