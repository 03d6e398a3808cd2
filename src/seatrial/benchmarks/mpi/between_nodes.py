"""The least bytes that each node sends and receives together, in what a program with ranks on several nodes measured.

Warm-up and verification come on top. Ranks fill the nodes one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.results.sample import Sample


def exchanged_in_pairs(params: Params, samples: Sequence[Sample]) -> list[float]:
    """Rank p and rank p + n of 2n exchange the bytes of the samples, equally in all pairs."""
    ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
    each, pairs = ranks // nodes, ranks // 2
    total = sum(sample.work["bytes"] for sample in samples if sample.series == "bandwidth")
    found = [0.0] * nodes
    for pair in range(pairs):
        for rank in (pair, pair + pairs):
            found[rank // each] += total / pairs
    return found


def exchanged_in_turns(series: Sequence[str]) -> Callable[[Params, Sequence[Sample]], list[float]]:
    """Two ranks on two nodes exchange `ops` messages of size_B in each sample of these series."""

    def exchanged(params: Params, samples: Sequence[Sample]) -> list[float]:
        own = [sample for sample in samples if sample.series in series]
        return [sum(sample.work["ops"] * whole(sample.point.get("size_B", 0)) for sample in own)] * 2

    return exchanged


def exchanged_in_tournament(params: Params, samples: Sequence[Sample]) -> list[float]:
    """Ranks a and b of each sample exchange its bytes."""
    nodes = whole(params["nodes"])
    each = whole(params["ranks"]) // nodes
    found = [0.0] * nodes
    for sample in samples:
        a, b = whole(sample.point["a"]) // each, whole(sample.point["b"]) // each
        if a != b:
            found[a] += sample.work["bytes"]
            found[b] += sample.work["bytes"]
    return found


def exchanged_together(moved: Callable[[int, int], float]) -> Callable[[Params, Sequence[Sample]], list[float]]:
    """In each of the `ops` calls of a sample, `moved(ranks, nodes)` times size_B pass the links of each node. Both
    directions together are at least what one carries without a network that reduces."""

    def exchanged(params: Params, samples: Sequence[Sample]) -> list[float]:
        ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
        own = [sample for sample in samples if sample.series == "time_max"]
        calls_B = sum(sample.work["ops"] * whole(sample.point.get("size_B", 0)) for sample in own)
        return [calls_B * moved(ranks, nodes)] * nodes

    return exchanged
