"""imported.imb: what Intel MPI Benchmarks measure and no benchmark of ours does."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)
from seatrial.benchmarks.mpi.ranks import NODES, RANKS

BENCHMARK = imported(
    "imb",
    "Intel MPI Benchmarks",
    "What did the Intel MPI Benchmarks measure?",
    (
        text_parameter("test", "the benchmark as IMB names it, such as Sendrecv"),
        RANKS,
        NODES,
        count_parameter("groups", "groups of ranks that run it at once"),
        text_parameter("mode", "mode of a test that has several, such as AGGREGATE"),
    ),
    (
        time_figure("time", "one message or operation, as IMB defines it"),
        time_figure("time_mean", "one operation, mean over ranks"),
        time_figure("time_min", "one operation on the fastest rank"),
        time_figure("time_max", "one operation on the slowest rank"),
        time_figure("overall", "a non-blocking operation and the computation that it overlaps with"),
        time_figure("compute", "the computation that overlaps with it"),
        time_figure("communication", "the operation alone, nothing overlapping"),
        rate_figure("overlap", "1", "share of the operation that computation hides"),
        rate_figure("bandwidth", "B/s", "bytes that IMB counts: of one message, two (Sendrecv) or four (Exchange)"),
        rate_figure("message_rate", "op/s", "messages of all ranks"),
    ),
)
