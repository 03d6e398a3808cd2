"""imported.ls-dyna: the time that LS-DYNA took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import choice_parameter, count_parameter, imported, time_figure

BENCHMARK = imported(
    "ls-dyna",
    "LS-DYNA",
    "How long did LS-DYNA take?",
    (
        count_parameter("ranks", "processes (MPP)"),
        count_parameter("threads", "threads per process (SMP)"),
        choice_parameter("precision", "precision of the solver", "single", "double"),
    ),
    (
        time_figure("wall", "elapsed time of the whole run, with reading the input"),
        time_figure("solution_time", "elapsed time after the input was read, in whole seconds"),
        time_figure("step", "mean elapsed time of one cycle, after the input was read"),
        time_figure("zone_cycle_time", "elapsed time per element and cycle, as LS-DYNA computes it"),
    ),
)
