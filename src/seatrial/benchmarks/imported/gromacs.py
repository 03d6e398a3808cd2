"""imported.gromacs: how fast GROMACS simulated."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import imported, time_figure
from seatrial.benchmarks.imported.molecular_dynamics import PARAMETERS, time_per_ns_figure

BENCHMARK = imported(
    "gromacs",
    "GROMACS",
    "How fast did GROMACS simulate?",
    PARAMETERS,
    (
        time_per_ns_figure("ns_time", "elapsed time of a simulated nanosecond, since the counters were last reset"),
        time_figure("step", "elapsed time of a step"),
        time_figure("time", "elapsed time since the counters were last reset (Wall t)"),
    ),
)
