"""imported.wrf: the time of a step of WRF."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, text_parameter, time_figure

BENCHMARK = imported(
    "wrf",
    "WRF",
    "How long did WRF take for a step of the outermost domain?",
    (
        count_parameter("nx", "cells from west to east, outermost domain"),
        count_parameter("ny", "cells from south to north, outermost domain"),
        count_parameter("domains", "the outermost domain and its nests"),
        text_parameter("timestep", "simulated time of a step"),
        count_parameter("ranks", "processes that compute"),
    ),
    (
        time_figure("step", "mean elapsed time of a step, without the first one and without files"),
        time_figure("step_median", "median elapsed time of a step, without the first one and without files"),
    ),
)
