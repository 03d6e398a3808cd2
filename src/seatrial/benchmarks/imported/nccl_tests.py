"""imported.nccl-tests: collective operations between GPUs, by nccl-tests or rccl-tests.

Bus bandwidth is algorithm bandwidth times the minimum data movement of the operation, such as 2(n-1)/n for an
all-reduce of n ranks (nccl-tests, doc/PERFORMANCE.md). Reductions in the network may exceed it, so no limit is given.
"""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    choice_parameter,
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)

OPERATIONS = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv"),
    *("gather", "scatter", "sendrecv", "hypercube"),
)

BENCHMARK = imported(
    "nccl-tests",
    "nccl-tests or rccl-tests",
    "How fast are collective operations between GPUs?",
    (
        choice_parameter("op", "the collective operation", *OPERATIONS),
        count_parameter("ranks", "ranks, each with a GPU"),
        count_parameter("nodes", "nodes that the ranks run on"),
        text_parameter("datatype", "element type, as named by NCCL"),
        text_parameter("redop", "reduction operation, as named by NCCL; none: no reduction"),
        text_parameter("root", "root rank; none: the operation has no root"),
    ),
    (
        time_figure("time", "one operation"),
        rate_figure("algbw", "B/s", "bytes of the operation (size_B) over its time"),
        rate_figure("busbw", "B/s", "minimum bytes that each link must move, as nccl-tests counts, over the time"),
    ),
)
