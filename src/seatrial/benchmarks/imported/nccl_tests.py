"""imported.nccl-tests: collective operations between GPUs, by nccl-tests or rccl-tests.

Bus bandwidth is algorithm bandwidth times what the operation must move at least, such as 2(n-1)/n for an all-reduce of
n ranks (nccl-tests, doc/PERFORMANCE.md). A reduction in the network exceeds the bound of a ring, so there is no limit.
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
        count_parameter("nodes", "nodes that the ranks are on"),
        text_parameter("datatype", "type of the elements, as NCCL names it"),
        text_parameter("redop", "how elements are reduced, as NCCL names it; none: they are not"),
        text_parameter("root", "rank that the data comes from or goes to; none: there is no such rank"),
    ),
    (
        time_figure("time", "one operation"),
        rate_figure("algbw", "B/s", "bytes of the operation (size_B) over its time"),
        rate_figure("busbw", "B/s", "bytes that each link must move at least, as nccl-tests counts"),
    ),
)
