from __future__ import annotations

import pytest

from seatrial.model.study.comparison import Verdict
from seatrial.stats.ratio import paired_ratio, verdict


@pytest.mark.parametrize(
    ("low", "high", "rate", "time"),
    [
        (0.99, 1.01, Verdict.SAME, Verdict.SAME),
        (1 / 1.02, 1.02, Verdict.SAME, Verdict.SAME),
        (1.021, 1.05, Verdict.FASTER, Verdict.SLOWER),
        (0.9, 0.98, Verdict.SLOWER, Verdict.FASTER),
        (1.02, 1.05, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS),
        (0.99, 1.021, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS),
        (0.9, 1.1, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS),
        (0.98, 0.99, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS),  # 0.98 is below 1 / 1.02
        (None, None, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS),
    ],
)
def test_by_interval_and_direction(low: float | None, high: float | None, rate: Verdict, time: Verdict) -> None:
    assert verdict(low, high, 0.02, higher_is_better=True) is rate
    assert verdict(low, high, 0.02, higher_is_better=False) is time


@pytest.mark.parametrize("baseline", [1.0, 3.0, 0.1, 7e-9, 1.3e12])
def test_what_lies_on_the_edge_is_the_same_whatever_the_rounding(baseline: float) -> None:
    for candidate in (baseline * 1.02, baseline / 1.02):
        found = paired_ratio([(baseline, candidate)] * 8, 0.05)
        assert verdict(found.low, found.high, 0.02, higher_is_better=True) is Verdict.SAME


def test_without_a_margin_any_sure_difference_counts() -> None:
    assert verdict(1.0001, 1.0002, 0.0, higher_is_better=True) is Verdict.FASTER
    assert verdict(1.0, 1.0, 0.0, higher_is_better=True) is Verdict.SAME
    assert verdict(1.0, 1.0001, 0.0, higher_is_better=True) is Verdict.AMBIGUOUS


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ((0.99, 1.025), (0.99, 1.02), Verdict.EQUIVALENT),
        ((0.99, 1.01), (0.995, 1.005), Verdict.EQUIVALENT),
        ((0.99, 1.03), (0.99, 1.021), Verdict.AMBIGUOUS),
        ((1.019, 1.05), (1.021, 1.04), Verdict.AMBIGUOUS),  # a difference needs the wide one
        ((1.021, 1.05), (1.03, 1.04), Verdict.FASTER),
    ],
)
def test_equivalence_is_read_from_the_narrow_interval_and_a_difference_from_the_wide(
    wide: tuple[float, float], narrow: tuple[float, float], expected: Verdict
) -> None:
    assert verdict(*wide, 0.02, higher_is_better=True, narrow=narrow) is expected
