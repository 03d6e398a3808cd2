"""The panels that are charts, each with a line on what it shows and what to see in it.

Which charts there are is the business of `report.charts`; a panel without any is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seatrial.report.charts import (
    ChartMaker,
    core_to_core,
    device_pairs,
    devices_side_by_side,
    io_surfaces,
    ladders,
    over_a_number,
    rank_pairs,
    repeats_in_time,
    roofline_charts,
)
from seatrial.report.pages.view import TrialView
from seatrial.report.panels.panel import Panel

_ROOFLINE = (
    "What memory and arithmetic allow together: a program of some intensity (flop for each byte that it moves) stays "
    "below the lower of the two roofs at its place. See which roof a point is near: that is what bounds it, and a gap "
    "to it is what tuning may win. Solid lines were measured here, dashed ones are limits of the hardware."
)
_LADDER = (
    "The time of one access that waits for the one before, over the size of what is gone through. Flat parts are a "
    "cache level or memory, steps are where a level is full. See whether a step comes before the cache is full (others "
    "use it too, or pages lie badly), and how far lines with and without huge pages part: that is the TLB."
)
_CORES = "The time of one trip of a cache line between two CPUs, which no message between ranks on them can beat."
_CORES_PICTURE = (
    " See which CPUs make a block: ranks that talk much belong into one. A row that stands out is a core that "
    "something disturbs."
)
_RANKS = (
    "Messages between every two ranks that were measured. See single cells, rows and columns, and blocks: a pair, a "
    "rank and a node that are slow, and hosts that are far from each other. What is framed is slow for its kind, by a "
    "test over all pairs at once."
)
_DEVICES = (
    "Copies from each device to each other one, and within each. See blocks: devices that reach each other over links "
    "of their own or below one switch, and those whose data cross the processor; and whether there and back are alike."
)
_EACH_DEVICE = (
    "Figures that were taken of each of several devices, which should be alike. See whether one device stands apart: a "
    "slower clock, a narrower link or another's work on it; and how far all of them fall behind when they work at "
    "once: that is what they share, such as an uplink or the host's memory."
)
_FILES = (
    "The rate of calls that read and write files, over the size of the file and of each record. See where the rate "
    "falls from one column to the next, which is a cache that the file no longer fits into, and from which record size "
    "on it no longer rises: smaller records cost calls. Each row of maps has a scale of its own."
)
_SETTINGS = (
    "Figures that were measured over several values of a number. See where a line leaves the ideal, and where it stops "
    "rising: what is added from there on is wasted."
)
_REPEATS = (
    "Each point is one repeat (one process); 0 is the median of its figure, the band is the 95 % interval, and the "
    "horizontal axis counts all repeats of the trial in order of time. See drift, steps and two levels: a median "
    "across them stands for neither."
)


def _of_each(maker: ChartMaker, about: str) -> Callable[[TrialView], Mapping[str, Any] | None]:
    """The context of a panel with the charts that `maker` gives of each benchmark."""

    def context(view: TrialView) -> Mapping[str, Any] | None:
        charts = [chart for benchmark in view.benchmarks for chart in maker(view, benchmark)]
        return {"about": about, "charts": charts} if charts else None

    return context


def _roofline(view: TrialView) -> Mapping[str, Any] | None:
    charts = list(roofline_charts(view))
    return {"about": _ROOFLINE, "charts": charts} if charts else None


def _cores(view: TrialView) -> Mapping[str, Any] | None:
    entries = [entry for benchmark in view.benchmarks for entry in core_to_core(view, benchmark)]
    picture = _CORES_PICTURE if any(entry.picture is not None for entry in entries) else ""
    return {"about": _CORES + picture, "entries": entries} if entries else None


def _ranks(view: TrialView) -> Mapping[str, Any] | None:
    entries = [entry for benchmark in view.benchmarks for entry in rank_pairs(view, benchmark)]
    return {"about": _RANKS, "entries": entries} if entries else None


ROOFLINE_PANEL = Panel("roofline", "Roofline: what memory and arithmetic allow", _roofline, "charts")
LADDER_PANEL = Panel("latency", "Latency: from the first cache to memory", _of_each(ladders, _LADDER), "charts")
CORES_PANEL = Panel("cores", "Core to core", _cores)
RANKS_PANEL = Panel("ranks", "Rank to rank", _ranks)
DEVICES_PANEL = Panel("devices", "Device to device", _of_each(device_pairs, _DEVICES), "charts")
EACH_DEVICE_PANEL = Panel("each-device", "Device by device", _of_each(devices_side_by_side, _EACH_DEVICE), "charts")
FILES_PANEL = Panel("files", "Files: rate over file and record size", _of_each(io_surfaces, _FILES), "charts")
SETTINGS_PANEL = Panel("sweeps", "Figures over their settings", _of_each(over_a_number, _SETTINGS), "charts")
REPEATS_PANEL = Panel("charts", "The repeats behind the figures", _of_each(repeats_in_time, _REPEATS))
