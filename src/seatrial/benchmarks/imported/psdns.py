"""imported.psdns: the time of a step of M-PSDNS."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure

BENCHMARK = imported(
    "psdns",
    "M-PSDNS",
    "How long did M-PSDNS take for a step of its turbulence?",
    (
        *(count_parameter(name, f"grid points, {name[1]}") for name in ("nx", "ny", "nz")),
        count_parameter("ranks", "processes"),
        count_parameter("p", "rows of the process grid"),
        count_parameter("q", "columns of the process grid"),
    ),
    (
        time_figure("step", "elapsed time of a step, slowest process; without the first step and those that write"),
        time_figure("wall", "elapsed time of the whole run"),
    ),
)
