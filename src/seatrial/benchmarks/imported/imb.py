"""imported.imb: the Intel MPI Benchmarks without a counterpart in seatrial."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)
from seatrial.benchmarks.mpi.ranks import RANKS
from seatrial.benchmarks.nodes import NODES

BENCHMARK = imported(
    "imb",
    "Intel MPI Benchmarks",
    "What did the Intel MPI Benchmarks measure?",
    (
        text_parameter("test", "benchmark as named by IMB, such as Sendrecv"),
        RANKS,
        NODES,
        count_parameter("groups", "groups of ranks that run it concurrently"),
        text_parameter("mode", "mode of a test that has several, such as AGGREGATE"),
    ),
    (
        time_figure("time", "one message or operation, as defined by IMB"),
        time_figure("time_mean", "one operation, mean over ranks"),
        time_figure("time_min", "one operation on the fastest rank"),
        time_figure("time_max", "one operation on the slowest rank"),
        time_figure("overall", "a non-blocking operation with the computation that overlaps it"),
        time_figure("compute", "the overlapping computation"),
        time_figure("communication", "the operation alone, without overlap"),
        rate_figure("overlap", "1", "share of the operation hidden by computation"),
        rate_figure("bandwidth", "B/s", "bytes as IMB counts them: of one message, two (Sendrecv) or four (Exchange)"),
        rate_figure("message_rate", "op/s", "messages of all ranks"),
    ),
)
