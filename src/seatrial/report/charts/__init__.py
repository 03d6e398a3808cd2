"""Charts of one benchmark. To add one, write a maker in a file of its own and name it in `CHARTS`.

A maker looks at what the figures declare (their points, units and directions) and gives nothing where it does not fit;
it knows no benchmark by name.
"""

from __future__ import annotations

from seatrial.report.charts.chart import Chart, ChartMaker
from seatrial.report.charts.repeats import repeats_in_time
from seatrial.report.charts.sweep import over_a_number

CHARTS: tuple[ChartMaker, ...] = (over_a_number, repeats_in_time)

__all__ = ["CHARTS", "Chart", "ChartMaker"]
