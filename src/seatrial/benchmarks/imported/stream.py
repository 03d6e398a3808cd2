"""imported.stream: STREAM over MPI processes, or in single precision; other results of STREAM are `memory.stream`.

The aggregate of processes that may run on several machines is no measure of the memory of one.
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

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}


def _figure(name: str) -> Figure:
    return Figure(
        name,
        name,
        "B/s",
        Better.HIGHER,
        lambda sample: sample.work["bytes"] / sample.elapsed_s,
        f"{_ARRAYS[name]} elements read or written for each element of an array, as STREAM counts; best of all passes",
        memory_limit(ranks="ranks"),
    )


BENCHMARK = imported(
    "stream",
    "STREAM",
    "How fast did STREAM's processes together stream through memory?",
    (
        count_parameter("ranks", "MPI processes"),
        count_parameter("threads", "threads, of each process"),
        choice_parameter("precision", "precision of the elements", "fp64", "fp32"),
        size_parameter("array_B", "size of each of the three arrays, over all processes"),
    ),
    tuple(_figure(name) for name in _ARRAYS),
)
