"""Charts: of one benchmark, of pairs of CPUs, of the whole trial. To add one, write a maker in a separate file.

A maker uses what the figures declare (points, units, directions, roles) and returns nothing if it does not apply.
No maker depends on the name of a benchmark.
"""

from __future__ import annotations

from seatrial.report.charts.core_to_core import CoreToCore, core_to_core
from seatrial.report.charts.devices import devices_side_by_side
from seatrial.report.charts.io_surface import io_surfaces
from seatrial.report.charts.ladder import ladders
from seatrial.report.charts.pairs import RankPairs, device_pairs, rank_pairs
from seatrial.report.charts.repeats import repeats_in_time
from seatrial.report.charts.roofline import roofline_charts
from seatrial.report.charts.sweep import over_a_number
from seatrial.report.charts.vega import Chart, ChartMaker

__all__ = [
    "Chart",
    "ChartMaker",
    "CoreToCore",
    "RankPairs",
    "core_to_core",
    "device_pairs",
    "devices_side_by_side",
    "io_surfaces",
    "ladders",
    "over_a_number",
    "rank_pairs",
    "repeats_in_time",
    "roofline_charts",
]
