"""imported.castep: elapsed times of CASTEP."""

from __future__ import annotations

from seatrial.benchmarks.imported.application_runs import RUN_PARAMETERS
from seatrial.benchmarks.imported.declarations import imported, time_figure

BENCHMARK = imported(
    "castep",
    "CASTEP",
    "How long did CASTEP take?",
    RUN_PARAMETERS,
    (
        time_figure("wall", "elapsed time of the whole run"),
        time_figure("calculation", "elapsed time between initialisation and finalisation"),
    ),
)
