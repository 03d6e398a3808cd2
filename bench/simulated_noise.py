"""Kinds of noise: each gives the logarithms of the times of n processes, in order of time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import median


def normal(source: random.Random, n: int) -> list[float]:
    """1 %, normal."""
    return [source.gauss(0.0, 0.01) for _ in range(n)]


def rough(source: random.Random, n: int) -> list[float]:
    """10 %, lognormal."""
    return [source.gauss(0.0, 0.1) for _ in range(n)]


def heavy_tails(source: random.Random, n: int) -> list[float]:
    """Student's t with 2 degrees of freedom, scale 1 %: no variance."""
    return [0.01 * source.gauss(0.0, 1.0) / math.sqrt(source.gammavariate(1.0, 1.0)) for _ in range(n)]


def delays(source: random.Random, n: int) -> list[float]:
    """Exponential with mean 2 %: disturbances can only make a program slower."""
    return [0.02 * source.expovariate(1.0) for _ in range(n)]


def spikes(source: random.Random, n: int) -> list[float]:
    """1 %, and one of twenty is 50 % slower on average."""
    return [
        source.gauss(0.0, 0.01) + (0.5 * source.expovariate(1.0) if source.random() < 0.05 else 0.0) for _ in range(n)
    ]


def two_levels(source: random.Random, n: int) -> list[float]:
    """Three of ten processes are 20 % slower, 1 % beside."""
    return [(math.log(1.2) if source.random() < 0.3 else 0.0) + source.gauss(0.0, 0.01) for _ in range(n)]


def far_levels(source: random.Random, n: int) -> list[float]:
    """Half of the processes take 2.5 times as long, 2 % beside."""
    return [(math.log(2.5) if source.random() < 0.5 else 0.0) + source.gauss(0.0, 0.02) for _ in range(n)]


def drift(source: random.Random, n: int) -> list[float]:
    """0.5 % slower with each process, 1 % beside."""
    return [0.005 * k + source.gauss(0.0, 0.01) for k in range(n)]


def strong_drift(source: random.Random, n: int) -> list[float]:
    """3 % slower with each process, 1 % beside."""
    return [0.03 * k + source.gauss(0.0, 0.01) for k in range(n)]


def autocorrelated(source: random.Random, n: int) -> list[float]:
    """AR(1): 0.9 of the previous process, 2 %."""
    return [0.02 * value for value in autoregressive(source, n, 0.9)]


def autocorrelated_samples(source: random.Random, n: int) -> list[float]:
    """The median of 30 samples that follow AR(1) 0.9 within a process, 2 %."""
    return [0.02 * median(autoregressive(source, 30, 0.9)) for _ in range(n)]


def unequal_spread(source: random.Random, n: int) -> list[float]:
    """1 % on the baseline, 4 % on the candidate."""
    return [source.gauss(0.0, (0.01, 0.04)[k % 2]) for k in range(n)]


Noise = Callable[[random.Random, int], list[float]]
KINDS: tuple[Noise, ...] = (
    normal, rough, heavy_tails, delays, spikes, two_levels, far_levels, drift, strong_drift, autocorrelated,
    autocorrelated_samples, unequal_spread,
)  # fmt: skip


def autoregressive(source: random.Random, n: int, correlation: float) -> list[float]:
    """AR(1) with variance 1."""
    value, found = source.gauss(0.0, 1.0), []
    for _ in range(n):
        found.append(value)
        value = correlation * value + math.sqrt(1.0 - correlation**2) * source.gauss(0.0, 1.0)
    return found
