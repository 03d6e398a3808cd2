"""imported.hpcg: the rating of HPCG, preconditioned conjugate gradients on a sparse system."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    flops_limit,
    imported,
    rate_figure,
    time_figure,
)

BENCHMARK = imported(
    "hpcg",
    "HPCG",
    "How fast did HPCG solve a sparse system by conjugate gradients?",
    (
        count_parameter("ranks", "processes"),
        count_parameter("threads", "threads of each process"),
        count_parameter("nx", "local problem of each process, x"),
        count_parameter("ny", "local problem of each process, y"),
        count_parameter("nz", "local problem of each process, z"),
    ),
    (
        rate_figure("rating", "flop/s", "all operations, over all time with overheads", flops_limit(ranks="ranks")),
        # HPCG models these bytes; caches may serve some, so the rate of the DRAM is no limit of it.
        rate_figure("bandwidth", "B/s", "bytes that HPCG's model counts, over all time with overheads"),
        *(
            rate_figure(name, "flop/s", f"operations of {kernel}, raw", flops_limit(ranks="ranks"))
            for name, kernel in (("ddot", "DDOT"), ("waxpby", "WAXPBY"), ("spmv", "SpMV"), ("mg", "MG"))
        ),
        time_figure("time", "time of the timed sets"),
    ),
)
