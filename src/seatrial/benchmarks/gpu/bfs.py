"""gpu.bfs: breadth-first search in a random graph of mean degree 2, the sizes of SHOC's BFS."""

from __future__ import annotations

from seatrial.benchmarks.gpu import device

_SIZES = {"1": 1_000, "2": 10_000, "3": 100_000, "4": 1_000_000, "large": 16_000_000}
"""Vertices: SHOC's classes, and one whose graph (192 MB, and as much to work with) is beyond the caches of today."""


_EDGES = "edges visited, each from both ends, over the time of whole searches, in which the host checks every 6 levels"
_BYTES = "8 B per edge visited, 20 B per vertex reached, 4 B per vertex"

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.bfs",
    question="How fast does a device search a graph breadth first?",
    parameters=(
        device.mode_among("S", "EP"),
        device.size_class(
            _SIZES, "1 to 4: SHOC's 1, 10, 100 and 1000 thousand vertices; large: 16 million", "--vertices"
        ),
    ),
    figures=(
        *device.rates("edges", "op/s", _EDGES, series="search"),
        *device.rates("bandwidth", "B/s", _BYTES, series="search"),
    ),
    error="vertices whose level differs from a search on the host",
    estimate_s=lambda params: 2.0 + device.chosen_size(_SIZES, params) * 1e-6,  # the host searches once
)
"""No limit: accesses of 4 B at random move whole sectors of memory, how many depends on the graph."""
