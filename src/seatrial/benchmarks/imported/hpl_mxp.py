"""imported.hpl-mxp: the rate at which HPL-MxP solved a dense system of linear equations in mixed precision."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.imported.declarations import (
    choice_parameter,
    count_parameter,
    given_limit,
    imported,
    rate_figure,
    time_figure,
)

_WORK = "2/3 n^3 + 3/2 n^2 flop, as HPL counts"

BENCHMARK = imported(
    "hpl-mxp",
    "HPL-MxP",
    "How fast did HPL-MxP solve a dense system of linear equations in mixed precision?",
    (
        count_parameter("n", "order of the matrix"),
        count_parameter("nb", "block size"),
        count_parameter("p", "rows of the process grid"),
        count_parameter("q", "columns of the process grid"),
        count_parameter("ranks", "processes, p x q: one per GPU"),
        choice_parameter("precision", "low precision of the factorisation", "fp8", "fp16"),
    ),
    (
        rate_figure("rate", "flop/s", f"{_WORK}, over factorisation and iterative refinement", given_limit("flop/s")),
        replace(rate_figure("lu_rate", "flop/s", f"{_WORK}, over the factorisation alone"), is_secondary=True),
        time_figure("time", "time to factor and refine"),
    ),
)
