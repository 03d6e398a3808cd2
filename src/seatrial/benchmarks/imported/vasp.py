"""imported.vasp: elapsed times of VASP."""

from __future__ import annotations

from seatrial.benchmarks.imported.application_runs import RUN_PARAMETERS
from seatrial.benchmarks.imported.declarations import imported, time_figure

BENCHMARK = imported(
    "vasp",
    "VASP",
    "How long did VASP take?",
    RUN_PARAMETERS,
    (
        time_figure("wall", "elapsed time of the whole run"),
        time_figure("loop", "elapsed time of all ionic steps (LOOP+)"),
    ),
)
