"""imported.opensbli: the time of OpenSBLI's iterations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure

BENCHMARK = imported(
    "opensbli",
    "OpenSBLI",
    "How long did OpenSBLI take for its iterations?",
    (
        count_parameter("ranks", "processes"),
        count_parameter("edge", "grid points in each direction"),
        count_parameter("iterations", "time iterations"),
    ),
    (
        time_figure("wall", "elapsed time of all iterations, without the start"),
        time_figure("step", "elapsed time of an iteration, on average"),
    ),
)
