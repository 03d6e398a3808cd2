"""imported.mechanical: the time that Ansys Mechanical APDL took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, text_parameter, time_figure

BENCHMARK = imported(
    "mechanical",
    "Ansys Mechanical APDL",
    "How long did Ansys Mechanical take?",
    (
        count_parameter("cores", "cores, in all"),
        count_parameter("ranks", "processes"),
        count_parameter("threads", "threads per process"),
        count_parameter("nodes", "machines"),
        text_parameter("equation_solver", "solver of the equations, as named in the file"),
    ),
    (
        time_figure("wall", "elapsed time of the whole run, in whole seconds"),
        time_figure("solution_time", "elapsed time of computing the solution"),
    ),
)
