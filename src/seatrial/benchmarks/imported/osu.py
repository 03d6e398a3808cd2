"""imported.osu: the programs of the OSU micro-benchmarks without a counterpart in seatrial."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)
from seatrial.benchmarks.mpi.ranks import BUFFERS, RANKS
from seatrial.benchmarks.nodes import NODES

BENCHMARK = imported(
    "osu",
    "OSU micro-benchmarks",
    "What did a program of the OSU micro-benchmarks measure?",
    (
        text_parameter("program", "title that the program prints, such as MPI Barrier Latency"),
        RANKS,
        NODES,
        count_parameter("pairs", "pairs of ranks that send at once"),
        count_parameter("window", "messages in flight"),
        BUFFERS,
        text_parameter("datatype", "MPI datatype of the elements"),
        text_parameter("window_creation", "how a one-sided program creates its window"),
        text_parameter("synchronization", "how a one-sided program synchronizes"),
    ),
    (
        time_figure("time", "one operation, as defined by the program; mean over ranks"),
        time_figure("time_min", "one operation on the fastest rank"),
        time_figure("time_max", "one operation on the slowest rank"),
        rate_figure("bandwidth", "B/s", "bytes as the program counts them (1 MB is 10^6 B)"),
        rate_figure("message_rate", "op/s", "messages of all pairs"),
        time_figure("overall", "a non-blocking operation with the computation that overlaps it"),
        time_figure("compute", "the overlapping computation"),
        time_figure("communication", "the operation alone, without overlap"),
        rate_figure("overlap", "1", "share of the operation hidden by computation"),
    ),
)
