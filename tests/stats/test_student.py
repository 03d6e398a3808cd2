"""The tail of t against tables and against what is known in closed form."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from seatrial.stats.ranks import student_tail


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 3.0, 12.0, 1e3, 1e8])
def test_one_and_two_degrees_have_closed_forms(t: float) -> None:
    assert student_tail(t, 1) == pytest.approx(math.atan2(1.0, t) / math.pi, rel=1e-9)
    root = math.sqrt(2.0 + t * t)
    assert student_tail(t, 2) == pytest.approx(1.0 / (root * (root + t)), rel=1e-9)  # (1 - t / root) / 2, without loss


@pytest.mark.parametrize(
    ("t", "df", "p"),
    [(12.924, 3, 0.0005), (2.571, 5, 0.025), (1.812, 10, 0.05), (3.646, 30, 0.0005), (3.090, 1e7, 0.001)],
)
def test_published_critical_values(t: float, df: float, p: float) -> None:
    assert student_tail(t, df) == pytest.approx(p, rel=2e-3)


def test_it_falls_with_t_and_reaches_far_out() -> None:
    tails = [student_tail(t / 4, 7) for t in range(400)]
    assert tails[0] == pytest.approx(0.5) and all(a > b > 0 for a, b in pairwise(tails))
    assert 0 < student_tail(30, 9998) < 1e-150 and student_tail(math.inf, 3) == 0
