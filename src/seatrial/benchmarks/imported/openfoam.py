"""imported.openfoam: the time that a solver of OpenFOAM took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, text_parameter, time_figure

BENCHMARK = imported(
    "openfoam",
    "OpenFOAM",
    "How long did this solver of OpenFOAM take?",
    (
        text_parameter("solver", "the program"),
        text_parameter("case", "folder of the case"),
        count_parameter("ranks", "processes"),
        count_parameter("nodes", "hosts"),
    ),
    (
        time_figure("wall", "elapsed time of the whole run, in whole seconds (ClockTime)"),
        time_figure("step", "mean time of a step, without the first one"),
    ),
)
