"""imported.namd: how fast NAMD simulated."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import imported, text_parameter, time_figure
from seatrial.benchmarks.imported.molecular_dynamics import PARAMETERS, time_per_ns_figure

BENCHMARK = imported(
    "namd",
    "NAMD",
    "How fast did NAMD simulate?",
    (
        text_parameter("input", "configuration file"),
        text_parameter("build", "platform that NAMD was built for (Linux-x86_64-multicore)"),
        *PARAMETERS,
    ),
    (
        time_per_ns_figure("ns_time", "elapsed time of a simulated nanosecond, by the last `Benchmark time` line"),
        time_figure("step", "elapsed time of a step, by the last `Benchmark time` line"),
        time_figure("wall", "elapsed time of the whole run, with its start (WallClock)"),
    ),
)
