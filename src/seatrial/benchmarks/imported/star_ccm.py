"""imported.star-ccm: the time that Simcenter STAR-CCM+ took for its iterations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure

BENCHMARK = imported(
    "star-ccm",
    "STAR-CCM+",
    "How long did STAR-CCM+ take for an iteration?",
    (count_parameter("ranks", "processes"), count_parameter("iterations", "iterations of the run")),
    (
        time_figure("step", "mean elapsed time of an iteration, without the first one of the table"),
        time_figure("wall", "elapsed time of the solver from the first iteration on (Total Solver Elapsed Time)"),
    ),
)
