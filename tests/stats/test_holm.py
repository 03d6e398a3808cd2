from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.stats.max_t import holm

families = st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=12)


def test_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_smallest_counts_for_all_and_what_follows_is_never_smaller() -> None:
    assert holm([0.02, 0.02, 0.03]) == pytest.approx([0.06, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_none_stays_none_and_does_not_count() -> None:
    assert holm([None, 0.01, None, 0.02]) == pytest.approx([None, 0.02, None, 0.02])
    assert holm([]) == []
    assert holm([None]) == [None]


@given(families)
def test_between_the_plain_value_and_bonferroni_in_the_same_order(family: list[float | None]) -> None:
    adjusted = holm(family)
    tested = [(p, q) for p, q in zip(family, adjusted, strict=True) if p is not None and q is not None]
    assert len(tested) == sum(p is not None for p in family)
    for p, q in tested:
        assert p <= q <= min(1.0, len(tested) * p) * (1.0 + 1e-12) or q == p
    assert all(q1 <= q2 for p1, q1 in tested for p2, q2 in tested if p1 < p2)


@given(families, st.sampled_from([0.01, 0.05, 0.2]))
def test_rejects_what_the_procedure_rejects(family: list[float | None], alpha: float) -> None:
    tested = sorted(p for p in family if p is not None)
    rejected = 0
    while rejected < len(tested) and (len(tested) - rejected) * tested[rejected] <= alpha:
        rejected += 1
    assert sum(q is not None and q <= alpha for q in holm(family)) == rejected


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="p-value"):
        holm([0.5, wrong])
