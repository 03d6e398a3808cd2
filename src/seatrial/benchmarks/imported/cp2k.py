"""imported.cp2k: elapsed times of CP2K."""

from __future__ import annotations

from seatrial.benchmarks.imported.application_runs import RUN_PARAMETERS
from seatrial.benchmarks.imported.declarations import imported, time_figure

BENCHMARK = imported(
    "cp2k",
    "CP2K",
    "How long did CP2K take?",
    RUN_PARAMETERS,
    (time_figure("wall", "elapsed time of the whole run on its slowest rank"),),
)
