"""Samples from printed results: a time, a rate, or a rate with its work."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from decimal import Decimal

from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Sample

_NO_POINT: Mapping[str, Value] = {}


def in_SI(value: float, unit: float) -> float:
    """`value` x `unit` (the unit in SI), rounded once: 66.3936 GB/s is 66393600000.0 B/s."""
    return float(Decimal(repr(value)) * Decimal(repr(unit)))


def rate_sample(
    series: str, rate: float, *, i: int = 0, point: Mapping[str, Value] = _NO_POINT, resolution: float = 0.0
) -> Sample:
    """A rate (SI, per second) as the work of one second, so that the figure is exactly this number. `resolution` is the
    step of the printed digits as a share of it; 0: printed in full, or unknown."""
    return Sample(series, i, 1.0, {"amount": rate}, point=dict(point), extra=stated(resolution))


def time_sample(
    series: str, seconds: float, *, i: int = 0, point: Mapping[str, Value] = _NO_POINT, resolution: float = 0.0
) -> Sample:
    """A time in seconds. `resolution` as for a rate."""
    return Sample(series, i, seconds, point=dict(point), extra=stated(resolution))


def stated(resolution: float) -> dict[str, float]:
    """The resolution as a sample states it."""
    return {"resolution": resolution} if resolution else {}


def sample_at_rate(series: str, counted: str, work: float, rate: float, *, resolution: float = 0.0) -> Sample:
    """`work` (counted as `counted`) done at `rate`, with work / time exactly equal to `rate`.

    The time is work / rate, which is more exact than the rounded time that the tool prints. If no double gives the rate
    exactly, the work changes in its last bits.
    """
    time_s = work / rate
    for amount, elapsed_s in itertools.product(_around(work), _around(time_s)):
        if amount / elapsed_s == rate:
            return Sample(series, 0, elapsed_s, {counted: amount}, extra=stated(resolution))
    return Sample(series, 0, 1.0, {counted: rate}, extra=stated(resolution))


def _around(value: float) -> list[float]:
    """A number and the doubles next to it, the number first."""
    below, above = math.nextafter(value, 0.0), math.nextafter(value, math.inf)
    return [value, below, above, math.nextafter(below, 0.0), math.nextafter(above, math.inf)]
