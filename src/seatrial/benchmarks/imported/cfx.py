"""imported.cfx: the time that the Ansys CFX solver took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import choice_parameter, count_parameter, imported, time_figure

BENCHMARK = imported(
    "cfx",
    "Ansys CFX",
    "How long did the CFX solver take?",
    (
        count_parameter("ranks", "solver processes"),
        choice_parameter("simulation", "what a step is: an iteration (steady) or a time step", "steady", "transient"),
    ),
    (
        time_figure("wall", "elapsed time of the solver, without reading and partitioning"),
        time_figure("step", "mean elapsed time of one iteration of the outer loop, or of one time step"),
    ),
)
