"""imported.stream: STREAM over MPI processes, or in single precision; other results of STREAM are `memory.stream`.

The aggregate rate of processes, which may run on several machines, does not measure the memory of one machine.
"""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    choice_parameter,
    count_parameter,
    imported,
    memory_limit,
    size_parameter,
)
from seatrial.model.benchmark import Better, Figure
from seatrial.model.quotients import WorkRate

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}


def _figure(name: str) -> Figure:
    return Figure(
        name,
        name,
        "B/s",
        Better.HIGHER,
        WorkRate("bytes"),
        f"{_ARRAYS[name]} elements read or written per array element, as STREAM counts; best pass",
        memory_limit(ranks="ranks"),
    )


BENCHMARK = imported(
    "stream",
    "STREAM",
    "What total memory bandwidth did STREAM's processes reach?",
    (
        count_parameter("ranks", "MPI processes"),
        count_parameter("threads", "threads per process"),
        choice_parameter("precision", "precision of the elements", "fp64", "fp32"),
        size_parameter("array_B", "size of each of the three arrays, over all processes"),
    ),
    tuple(_figure(name) for name in _ARRAYS),
)
