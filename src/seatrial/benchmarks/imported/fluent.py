"""imported.fluent: the time that Ansys Fluent took for its iterations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure

BENCHMARK = imported(
    "fluent",
    "Ansys Fluent",
    "How long did Fluent take for these iterations?",
    (
        count_parameter("timer", "number of the performance timer in the transcript, from 1"),
        count_parameter("ranks", "solver processes, which Fluent calls compute nodes"),
        count_parameter("iterations", "iterations that the timer covers"),
    ),
    (
        time_figure("wall", "elapsed time of all iterations of the timer"),
        time_figure("step", "mean elapsed time of an iteration"),
    ),
)
