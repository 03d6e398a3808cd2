"""imported.thebandwidthbenchmark: memory bandwidth by the kernels of TheBandwidthBenchmark."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    flops_limit,
    imported,
    memory_limit,
    rate_figure,
    size_parameter,
)

_WORDS = {"init": 1, "sum": 1, "copy": 2, "update": 2, "triad": 3, "daxpy": 3, "striad": 4, "sdaxpy": 4}
_FLOP = {"sum": 1, "update": 1, "triad": 2, "daxpy": 2, "striad": 2, "sdaxpy": 2}

BENCHMARK = imported(
    "thebandwidthbenchmark",
    "TheBandwidthBenchmark",
    "What memory bandwidth did the kernels of TheBandwidthBenchmark reach?",
    (
        count_parameter("threads", "threads"),
        size_parameter("array_B", "size of each of the four arrays"),
    ),
    (
        *(
            rate_figure(name, "B/s", f"{words} words moved per element; best pass", memory_limit())
            for name, words in _WORDS.items()
        ),
        *(
            rate_figure(f"{name}_flops", "flop/s", f"{flop} flop per element; best pass", flops_limit())
            for name, flop in _FLOP.items()
        ),
    ),
)
