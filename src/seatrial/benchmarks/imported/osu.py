"""imported.osu: the programs of the OSU micro-benchmarks that no benchmark of ours is the same as."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)
from seatrial.benchmarks.mpi.ranks import BUFFERS, NODES, RANKS

BENCHMARK = imported(
    "osu",
    "OSU micro-benchmarks",
    "What did a program of the OSU micro-benchmarks measure?",
    (
        text_parameter("program", "what the program calls itself, such as MPI Barrier Latency"),
        RANKS,
        NODES,
        count_parameter("pairs", "pairs of ranks that send at once"),
        count_parameter("window", "messages that are under way at once"),
        BUFFERS,
        text_parameter("datatype", "MPI datatype of the elements"),
        text_parameter("window_creation", "how a one-sided program made its window"),
        text_parameter("synchronization", "how a one-sided program synchronizes"),
    ),
    (
        time_figure("time", "one operation, as the program defines it; of several ranks, the mean"),
        time_figure("time_min", "one operation on the fastest rank"),
        time_figure("time_max", "one operation on the slowest rank"),
        rate_figure("bandwidth", "B/s", "bytes as the program counts them, 10^6 B a MB"),
        rate_figure("message_rate", "op/s", "messages of all pairs"),
        time_figure("overall", "a non-blocking operation and the computation that it overlaps with"),
        time_figure("compute", "the computation that overlaps with it"),
        time_figure("communication", "the operation alone, nothing overlapping"),
        rate_figure("overlap", "1", "share of the operation that computation hides"),
    ),
)
