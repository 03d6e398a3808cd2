"""imported.cfx: the time that the Ansys CFX solver took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure
from seatrial.model.benchmark import Figure

_PER = {"iteration": "iteration of the outer loop", "time_step": "time step"}


def _mean(name: str, what: str) -> Figure:
    return time_figure(f"{name}_time", f"mean elapsed time of one {what}")


BENCHMARK = imported(
    "cfx",
    "Ansys CFX",
    "How long did the CFX solver take?",
    (count_parameter("ranks", "solver processes"),),
    (
        time_figure("time", "elapsed time of the solver, without reading and partitioning"),
        *(_mean(name, what) for name, what in _PER.items()),
    ),
)
