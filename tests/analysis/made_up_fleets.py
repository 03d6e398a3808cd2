"""Made-up measurements of a cluster with planted faults, for the tests of screens."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.fact import FactValue
from seatrial.model.study.screen import Item, ItemFigure, PairFigure, ScreenInput

_FIGURES = (
    ("cpu.peak", "fma", "flop/s", 1e11, Better.HIGHER, 1.0),
    ("memory.stream", "triad", "B/s", 2e10, Better.HIGHER, 0.3),
    ("memory.latency", "load", "s", 1e-7, Better.LOWER, -0.2),
    ("io.file", "write", "B/s", 1e9, Better.HIGHER, 0.0),
)
"""Benchmark, figure, unit, usual value, direction, and the power of a node's quota that it is multiplied by."""


@dataclass(frozen=True)
class Planted:
    """Faults: the share that a node's CPUs, its link, the uplink of a switch or a pair of nodes has; facts of nodes."""

    quota: Mapping[str, float] = field(default_factory=dict)
    link: Mapping[str, float] = field(default_factory=dict)
    uplink: Mapping[str, float] = field(default_factory=dict)
    pair: Mapping[tuple[str, str], float] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, FactValue]] = field(default_factory=dict)


def fleet(
    source: random.Random, n: int, of_switch: int, planted: Planted = Planted(), repeats: int = 6, noise: float = 0.015
) -> ScreenInput:
    """Nodes n1, n2, ... on switches s1, s2, ... of so many nodes."""

    def noisy(value: float) -> list[float]:
        return [value * math.exp(source.gauss(0.0, noise)) for _ in range(repeats)]

    nodes = tuple(f"n{k + 1}" for k in range(n))
    switch = {node: f"s{k // of_switch + 1}" for k, node in enumerate(nodes)}
    figures = tuple(
        ItemFigure(
            benchmark,
            name,
            unit,
            better,
            tuple(map(Item, nodes)),
            tuple(noisy(usual * planted.quota.get(node, 1.0) ** power) for node in nodes),
        )
        for benchmark, name, unit, usual, better, power in _FIGURES
    )
    pairs = tuple(combinations(nodes, 2))
    times, rates = [], []
    for a, b in pairs:
        inside = switch[a] == switch[b]
        up = 1.0 if inside else min(planted.uplink.get(switch[a], 1.0), planted.uplink.get(switch[b], 1.0))
        share = min(planted.link.get(a, 1.0), planted.link.get(b, 1.0), up) * planted.pair.get((a, b), 1.0)
        rates.append(noisy(1e8 * share))
        times.append(noisy(2e-5 if inside else 2.8e-5))
    usual = {"memory": 64 << 30, "kernel": "6.1"}
    return ScreenInput(
        nodes,
        figures,
        (
            PairFigure("mpi.pairs", "latency", "s", Better.LOWER, pairs, tuple(times)),
            PairFigure("mpi.pairs", "bandwidth", "B/s", Better.HIGHER, pairs, tuple(rates)),
        ),
        facts={node: {**usual, **planted.facts.get(node, {})} for node in nodes},
        switch_of=switch,
    )
