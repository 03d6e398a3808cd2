"""imported.abaqus: the time that an Abaqus job took, and its increments and iterations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import choice_parameter, count_parameter, imported, time_figure
from seatrial.model.benchmark import Better, Figure


def _count_figure(name: str, work: str) -> Figure:
    return Figure(name, name, "1", Better.LOWER, lambda sample: sample.work["amount"], work, is_secondary=True)


BENCHMARK = imported(
    "abaqus",
    "Abaqus",
    "How long did this Abaqus job take?",
    (
        choice_parameter("file", "the job's file that the figures come from", "dat", "msg", "sta", "log"),
        count_parameter("nodes", "hosts"),
        count_parameter("ranks", "processes of the solver"),
        count_parameter("threads", "threads per process"),
        count_parameter("elements", "elements of the mesh"),
        count_parameter("variables", "variables of the model"),
        count_parameter("equations", "equations of the solver"),
    ),
    (
        time_figure("wall", "elapsed time of the analysis, in whole seconds (WALLCLOCK TIME)"),
        time_figure("process_time", "from the start of the analysis program to its end, by the dates of the log"),
        _count_figure("increments", "increments that converged"),
        _count_figure("iterations", "iterations, also of attempts that did not converge"),
    ),
)
