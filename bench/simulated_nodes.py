"""Screens of 64 simulated nodes: how often one is named that is within the spread of all, and how often a slow one is
found, by the first stage and by the second."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import median
from typing import Any

from simulated_noise import Noise

from seatrial.analysis.outliers import REPEATS, measure_again
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.study.screen import FALSE_ALARM_RATE, Item, ItemFigure
from seatrial.stats.far_values import far_values

MARGIN = 0.02
NODES = 64


def equal(source: random.Random) -> float:
    """Nodes without a difference."""
    return 0.0


def normal_spread(source: random.Random) -> float:
    """Nodes that differ by a normal 1 %."""
    return source.gauss(0.0, 0.01)


def exponential_spread(source: random.Random) -> float:
    """Nodes that are slower by 1 % on average, exponentially."""
    return 0.01 * source.expovariate(1.0)


def two_kinds(source: random.Random) -> float:
    """Three of ten nodes are 20 % slower."""
    return math.log(1.2) if source.random() < 0.3 else 0.0


FLEETS = {fleet.__name__: fleet for fleet in (equal, normal_spread, exponential_spread, two_kinds)}


def _row(noise: Noise, fleet: str, repeats: int, shares: Sequence[float]) -> dict[str, Any]:
    names = ("any_named", "found_5_percent", "found_20_percent")
    return {"noise": noise.__name__, "fleet": fleet, "repeats": repeats, **dict(zip(names, shares, strict=True))}


def outliers(noise: Noise, source: random.Random, trials: int, fleet: str, repeats: int) -> dict[str, Any]:
    """How often any node is named that is within the fleet's own spread, beyond a margin of 2 %; and how often one more
    node is found that is 5 or 20 % slower."""
    names = found_5 = found_20 = 0
    for _ in range(trials):
        levels = [FLEETS[fleet](source) for _ in range(NODES)]
        nodes = [[math.exp(level + log) for log in noise(source, repeats)] for level in levels]
        names += bool(_named(nodes))
        usual = [math.exp(median(levels) + log) for log in noise(source, repeats)]
        for slow in (1.05, 1.2):
            found = NODES in _named([*nodes, [slow * value for value in usual]])
            found_5, found_20 = found_5 + (found and slow < 1.1), found_20 + (found and slow > 1.1)
    return _row(noise, fleet, repeats, [number / trials for number in (names, found_5, found_20)])


def measured_again(noise: Noise, source: random.Random, trials: int, fleet: str, repeats: int) -> dict[str, Any]:
    """As `outliers`, of a second stage with 10 new repeats of the farthest nodes and of the controls."""
    names = found_5 = found_20 = 0
    for _ in range(trials):
        levels = [FLEETS[fleet](source) for _ in range(NODES)]
        names += bool(_confirmed(noise, source, levels, repeats))
        for slow in (0.05, 0.2):
            found = NODES in _confirmed(noise, source, [*levels, median(levels) + math.log1p(slow)], repeats)
            found_5, found_20 = found_5 + (found and slow < 0.1), found_20 + (found and slow > 0.1)
    return _row(noise, fleet, repeats, [number / trials for number in (names, found_5, found_20)])


def _confirmed(noise: Noise, source: random.Random, levels: Sequence[float], repeats: int) -> set[int]:
    def measure(node: int, n: int) -> list[float]:
        return [math.exp(levels[node] + log) for log in noise(source, n)]

    first = [measure(node, repeats) for node in range(len(levels))]
    items = tuple(Item(str(node)) for node in range(len(levels)))
    again = measure_again([ItemFigure("", str(source.random()), "s", Better.LOWER, items, first)])
    if again is None:
        return set()
    nodes = [int(name) for name in (*again.suspects, *again.controls)]
    found = _named([measure(node, REPEATS) for node in nodes])
    return {nodes[place] for place in found if place < len(again.suspects)}


def _named(nodes: Sequence[Sequence[float]]) -> set[int]:
    return {one.index for one in far_values(nodes, FALSE_ALARM_RATE, MARGIN)[0]}
