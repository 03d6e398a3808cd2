"""Laws of scaling, fitted by least squares.

Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS 1967: a
fraction f of fixed work is serial, so 1/S = f + (1 - f)/p. Gustafson, "Reevaluating Amdahl's law", CACM 31 (1988): if
the work grows with p, S = p - f (p - 1). Both are straight lines through the point of the baseline, with f as the only
unknown and p relative to the baseline.

All points have the same relative error (weight S^2 for 1/S, 1/S^2 for S). Weights from the intervals are not used: the
error of a law exceeds the noise of a median, so one interval that is narrow by chance would dominate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_POINTS = 5
"""With fewer points (including the baseline), the residuals are meaningless."""


@dataclass(frozen=True, slots=True)
class SerialShare:
    """`share` is the fitted serial fraction; outside 0..1, the law does not describe the measurements.

    `residuals` are measured minus fitted speedups, in the order of the points.
    """

    share: float
    standard_error: float
    residuals: tuple[float, ...]


def amdahl(points: Sequence[tuple[float, float]]) -> SerialShare | None:
    """Amdahl's law for (workers over those of the baseline, speedup over it); None below five points.

    The point of the baseline itself, (1, 1), does not affect f but counts as a point. Raises ValueError for a
    speedup or a number of workers that is not positive and finite.
    """
    _check(points)
    lines = [(1.0 - 1.0 / p, 1.0 / s - 1.0 / p, s * s) for p, s in points]
    fitted = _through_origin(lines, len(points))
    if fitted is None:
        return None
    f, error = fitted
    return SerialShare(f, error, tuple(s - amdahl_speedup(p, f) for p, s in points))


def gustafson(points: Sequence[tuple[float, float]]) -> SerialShare | None:
    """Gustafson's law for (workers over those of the baseline, scaled speedup); as `amdahl`."""
    _check(points)
    lines = [(p - 1.0, p - s, 1.0 / (s * s)) for p, s in points]
    fitted = _through_origin(lines, len(points))
    if fitted is None:
        return None
    f, error = fitted
    return SerialShare(f, error, tuple(s - gustafson_speedup(p, f) for p, s in points))


def amdahl_speedup(p: float, f: float) -> float:
    """The speedup of fixed work; infinite if a negative f leaves no time."""
    time = f + (1.0 - f) / p
    return 1.0 / time if time > 0.0 else math.inf


def gustafson_speedup(p: float, f: float) -> float:
    """The speedup of work that grows with p."""
    return p - f * (p - 1.0)


def _check(points: Sequence[tuple[float, float]]) -> None:
    if not all(0.0 < value < math.inf for point in points for value in point):
        raise ValueError("workers and speedups must be positive and finite")


def _through_origin(lines: Sequence[tuple[float, float, float]], n: int) -> tuple[float, float] | None:
    """Slope of y over x with its standard error, for (x, y, weight); None below five points or if all x are 0."""
    weight = math.fsum(w * x * x for x, _, w in lines)
    if n < FEWEST_POINTS or weight <= 0.0:
        return None
    slope = math.fsum(w * x * y for x, y, w in lines) / weight
    informative = sum(1 for x, _, _ in lines if x != 0.0)
    rest = math.fsum(w * (y - slope * x) ** 2 for x, y, w in lines)
    return slope, math.sqrt(rest / max(informative - 1, 1) / weight)
