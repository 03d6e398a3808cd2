"""imported.fio-json: data read and written by a fio job."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    given_limit,
    imported,
    rate_figure,
    size_parameter,
    text_parameter,
    time_figure,
)
from seatrial.model.parameter import Parameter, ParameterKind

BENCHMARK = imported(
    "fio-json",
    "fio",
    "How fast did fio read and write?",
    (
        text_parameter("job", "name of the job"),
        Parameter("clone", ParameterKind.INTEGER, 0, "index among entries of that name in the file, from 0"),
        text_parameter("rw", "pattern: read, write, randread, ..."),
        size_parameter("record_B", "size of a transfer (bs)"),
        size_parameter("file_B", "size of the file (size)"),
        Parameter("direct", ParameterKind.FLAG, False, "bypass the page cache"),
        text_parameter("ioengine", "I/O engine that issues the transfers"),
        count_parameter("iodepth", "transfers in flight per process"),
        count_parameter("numjobs", "processes"),
    ),
    tuple(
        figure
        for way in ("read", "write")
        for figure in (
            rate_figure(way, "B/s", "bytes over the run time of the job", given_limit("B/s")),
            rate_figure(f"{way}_iops", "op/s", "transfers over the run time of the job"),
            time_figure(f"{way}_latency", "mean time of a transfer, from submission to completion"),
        )
    ),
)
