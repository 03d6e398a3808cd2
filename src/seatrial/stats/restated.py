"""Whether one figure restates another: nanoseconds per day and seconds per step are one measurement in two units."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SAME = 5e-4
"""Largest relative change of the ratio (or product) of two figures that restate each other: printed digits round."""
_FEWEST = 3
_LEAST_CHANGE = 40 * _SAME
"""Figures that vary less than this could agree by chance."""


def restates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the ratio or the product of two figures is the same at all points; `one` and `other` have their values
    at the same points."""
    values = (*one, *other)
    if len(one) != len(other) or len(one) < _FEWEST or not all(math.isfinite(v) and v > 0 for v in values):
        return False
    a, b = ([math.log(value) for value in values] for values in (one, other))
    if _range(a) < _LEAST_CHANGE:
        return False
    return any(_range([x + sign * y for x, y in zip(a, b, strict=True)]) < _SAME for sign in (-1, 1))


def without_restated(series: Sequence[tuple[object, object, Sequence[float]]]) -> dict[int, int]:
    """The position of each series that restates an earlier one -> that of the earlier one. A series is what it has in
    common with those that it may restate (the points of its values), what it does not (unit and direction: two rates in
    one unit are two measurements), and its values."""
    found: dict[int, int] = {}
    for place, (points, kind, own) in enumerate(series):
        alike = (k for k in range(place) if k not in found and series[k][0] == points and series[k][1] != kind)
        earlier = (k for k in alike if restates(series[k][2], own))
        if (first := next(earlier, None)) is not None:
            found[place] = first
    return found


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)
