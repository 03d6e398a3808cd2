"""imported.hpl: the rate at which HPL solved a dense system of linear equations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    device_flops_limit,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)

PARAMETERS = (
    count_parameter("n", "order of the matrix"),
    count_parameter("nb", "block size"),
    count_parameter("p", "rows of the process grid"),
    count_parameter("q", "columns of the process grid"),
    count_parameter("ranks", "processes, p x q"),
    text_parameter("variant", "algorithm, as HPL encodes it (WR11C2R4)"),
)
WORK = "2/3 n^3 + 3/2 n^2 flop, as HPL counts"

BENCHMARK = imported(
    "hpl",
    "HPL",
    "How fast did HPL solve a dense system of linear equations?",
    PARAMETERS,
    (
        rate_figure("rate", "flop/s", WORK, device_flops_limit("ranks")),
        time_figure("time", "time to factor and solve"),
    ),
)
