"""imported.hpcg: the rating of HPCG, preconditioned conjugate gradients on a sparse system."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    LimitOf,
    count_parameter,
    device_flops_limit,
    imported,
    rate_figure,
    time_figure,
)
from seatrial.model.benchmark import Figure

PARAMETERS = (
    count_parameter("ranks", "processes"),
    count_parameter("threads", "threads per process"),
    count_parameter("nx", "local problem of each process, x"),
    count_parameter("ny", "local problem of each process, y"),
    count_parameter("nz", "local problem of each process, z"),
)


def figures(limit: LimitOf) -> tuple[Figure, ...]:
    """The figures of a report; `limit` is that of the arithmetic."""
    return (
        rate_figure("rating", "flop/s", "all operations, over the total time with overheads", limit),
        # HPCG models these bytes, and caches may serve some of them, so the DRAM bandwidth is not a limit.
        rate_figure("bandwidth", "B/s", "bytes that HPCG's model counts, over the total time with overheads"),
        *(
            rate_figure(name, "flop/s", f"operations of {kernel}, raw", limit)
            for name, kernel in (("ddot", "DDOT"), ("waxpby", "WAXPBY"), ("spmv", "SpMV"), ("mg", "MG"))
        ),
        time_figure("time", "time of the timed sets"),
    )


BENCHMARK = imported(
    "hpcg",
    "HPCG",
    "How fast did HPCG solve a sparse linear system by conjugate gradients?",
    PARAMETERS,
    figures(device_flops_limit("ranks")),
)
