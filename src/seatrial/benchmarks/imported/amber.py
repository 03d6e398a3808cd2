"""imported.amber: how fast AMBER's sander or pmemd simulated."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import choice_parameter, imported, text_parameter, time_figure
from seatrial.benchmarks.imported.molecular_dynamics import PARAMETERS, time_per_ns_figure

BENCHMARK = imported(
    "amber",
    "AMBER",
    "How fast did AMBER simulate?",
    (
        choice_parameter("program", "sander or pmemd", "sander", "pmemd"),
        text_parameter("input", "topology file"),
        *PARAMETERS,
    ),
    (
        time_per_ns_figure("ns_time", "elapsed time of a simulated nanosecond, all steps"),
        time_per_ns_figure("ns_time_last", "elapsed time of a simulated nanosecond, the last steps alone"),
        time_figure("step", "elapsed time of a step, all steps"),
        time_figure("wall", "elapsed time of all steps, without the set-up"),
    ),
)
