"""imported.qe: elapsed times of Quantum ESPRESSO."""

from __future__ import annotations

from seatrial.benchmarks.imported.application_runs import RUN_PARAMETERS
from seatrial.benchmarks.imported.declarations import imported, time_figure

BENCHMARK = imported(
    "qe",
    "Quantum ESPRESSO",
    "How long did Quantum ESPRESSO take?",
    RUN_PARAMETERS,
    (time_figure("wall", "elapsed time of the whole run (PWSCF, WALL)"),),
)
