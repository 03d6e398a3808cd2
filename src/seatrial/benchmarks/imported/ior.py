"""imported.ior: bandwidth of a parallel file system, by IOR."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    given_limit,
    imported,
    rate_figure,
    size_parameter,
    text_parameter,
)

BENCHMARK = imported(
    "ior",
    "IOR",
    "How fast did IOR write and read?",
    (
        text_parameter("api", "interface: POSIX, MPIIO, HDF5, ..."),
        text_parameter("access", "one shared file, or a file per process"),
        text_parameter("order", "order of the transfers in a file"),
        size_parameter("transfer_B", "size of a transfer (xfersize)"),
        size_parameter("block_B", "data of a process in a segment (blocksize)"),
        count_parameter("segments", "segments"),
        count_parameter("nodes", "hosts"),
        count_parameter("ranks", "processes"),
    ),
    tuple(
        figure
        for way in ("write", "read")
        for figure in (
            rate_figure(way, "B/s", "all bytes over the total time, with opening and closing", given_limit("B/s")),
            rate_figure(f"{way}_iops", "op/s", "transfers over the time of the transfers"),
        )
    ),
)
