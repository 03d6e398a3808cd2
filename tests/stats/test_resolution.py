"""Rounded values: intervals that hold whatever the step, and verdicts that are never bought by a coarse timer."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.study.comparison import Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.ratio import RatioInterval, half_steps, is_too_coarse, widened, widened_ends, widened_margin
from seatrial.stats.sequential import ALPHA, LOOKS, are_decided_now, replay_curve

MARGIN = 0.02
Pairs = list[tuple[float, float]]


def _shown(pairs: Sequence[tuple[float, float]], step: float) -> tuple[Pairs, list[float]]:
    """The pairs as a timer of this step shows them, with their half steps."""
    shown = [(step * round(a / step), step * round(b / step)) for a, b in pairs]
    return shown, [half_steps(step / a, step / b) for a, b in shown]


def _normal(source: random.Random, n: int, level: float, ratio: float) -> Pairs:
    return [
        (level * math.exp(source.gauss(0, 0.01)), level * ratio * math.exp(source.gauss(0, 0.01))) for _ in range(n)
    ]


def test_half_steps_bound_the_change_of_the_ratio() -> None:
    source = random.Random(1)
    for _ in range(2000):
        a, b, step = (source.uniform(*ends) for ends in ((1.0, 3.0), (1.0, 3.0), (1e-6, 0.5)))
        ((first, second),), (by,) = _shown([(a, b)], step)
        assert abs(math.log(b / a) - math.log(second / first)) <= by + step**2  # to first order in the step
    assert half_steps(0.0, 0.0) == 0.0


def test_widening_moves_both_ends_and_leaves_the_rest() -> None:
    by = math.log1p(0.05)
    assert widened(RatioInterval(1.0, 0.9, 1.1), by) == RatioInterval(
        1.0, pytest.approx(0.9 / 1.05), pytest.approx(1.1 * 1.05)
    )
    assert widened(RatioInterval(1.0, None, None), by) == RatioInterval(1.0, None, None)
    assert widened(RatioInterval(1.0, 0.9, 1.1), 0.0) == RatioInterval(1.0, 0.9, 1.1)
    assert widened_margin(0.02, by) == pytest.approx(1.02 * 1.05 - 1.0) and widened_margin(0.02, 0.0) == 0.02
    assert widened_ends((-2.0, 4.0), 0.1) == (pytest.approx(-2.1), pytest.approx(4.2))
    assert widened_ends(None, 0.1) is None
    assert is_too_coarse(0.02, 0.02) and not is_too_coarse(0.02, 0.0198) and not is_too_coarse(0.0, 0.0)


@pytest.mark.parametrize(("step", "ratio"), [(0.1, 1.0), (0.1, 1.02), (0.1, 1.05), (0.01, 1.02), (0.01, 1.05)])
def test_a_coarse_timer_buys_no_verdict(step: float, ratio: float) -> None:
    """A step of 10 % gave `same` at a true 5 % in a third of all cases, and an interval that holds in 14 %."""
    source = random.Random(2)
    holds = wrong = wrong_if_ignored = 0
    for _ in range(60):
        shown, steps = _shown(_normal(source, 16, 1.0 + step * source.random(), ratio), step)
        (found,) = replay_curve([shown], MARGIN, False, 1, steps=[steps])
        (ignored,) = replay_curve([shown], MARGIN, False, 1)
        wrong += found.verdict is Verdict.SAME
        wrong_if_ignored += ignored.verdict is Verdict.SAME
        assert found.plain.low is not None and found.plain.high is not None
        holds += found.plain.low <= ratio <= found.plain.high
        assert found.half_steps == max(steps[: found.blocks])
    assert holds >= 59
    assert wrong == 0 or ratio == 1.0
    assert wrong_if_ignored > 15 or (step, ratio) not in {(0.1, 1.02), (0.1, 1.05)}


def test_fine_digits_cost_nothing() -> None:
    source = random.Random(3)
    for ratio, wanted in ((1.0, Verdict.SAME), (1.05, Verdict.SLOWER)):
        shown, steps = _shown(_normal(source, 24, 1.3, ratio), 1e-5)
        (found,) = replay_curve([shown], MARGIN, False, 1, steps=[steps])
        assert found.verdict is wanted


@given(
    st.lists(st.tuples(st.floats(0.8, 1.2), st.floats(0.8, 1.2)), min_size=6, max_size=30),
    st.floats(0.0, 0.2),
    st.sampled_from([0.0, 0.02, 0.1]),
)
def test_the_p_value_agrees_with_the_widened_interval(pairs: Pairs, by: float, margin: float) -> None:
    test = BlockTest(pairs, by)
    found, p = test.ratio(ALPHA), test.p_outside(margin)
    assert found.low is not None and found.high is not None and p is not None
    plain = BlockTest(pairs).ratio(ALPHA)
    assert (found.low, found.high) == (
        pytest.approx((plain.low or 0.0) * math.exp(-by)),
        pytest.approx((plain.high or 0.0) * math.exp(by)),
    )
    nearest = min(abs(math.log(found.low * (1 + margin))), abs(math.log(found.low / (1 + margin))),
                  abs(math.log(found.high * (1 + margin))), abs(math.log(found.high / (1 + margin))))  # fmt: skip
    if nearest > 1e-6:
        assert (p <= ALPHA) == (found.low > 1 + margin or found.high < 1 / (1 + margin))


def test_a_run_goes_on_while_the_steps_leave_it_open() -> None:
    source = random.Random(4)
    shown, steps = _shown(_normal(source, LOOKS[0], 1.0, 1.0), 0.1)
    assert are_decided_now([shown], MARGIN, False, 1)
    assert not are_decided_now([shown], MARGIN, False, 1, [steps])
