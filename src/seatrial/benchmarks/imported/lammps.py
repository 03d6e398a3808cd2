"""imported.lammps: how fast LAMMPS simulated."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import imported, text_parameter, time_figure
from seatrial.benchmarks.imported.molecular_dynamics import PARAMETERS, time_per_ns_figure

BENCHMARK = imported(
    "lammps",
    "LAMMPS",
    "How fast did LAMMPS simulate?",
    (text_parameter("pair", "pair style, with the suffix of its package"), *PARAMETERS),
    (
        time_figure("step", "elapsed time of a step of the last `run` (Loop time over steps)"),
        time_figure("loop", "elapsed time of the last `run` (Loop time)"),
        time_per_ns_figure("ns_time", "elapsed time of a simulated nanosecond, of units real and metal"),
    ),
)
