from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import pytest

from seatrial.stats import ranks
from seatrial.stats.ranks import critical, mann_whitney_tail, signed_rank_critical, signed_rank_tail


def mann_whitney_critical(n: int, m: int, alpha: float) -> int | None:
    return critical(lambda u: mann_whitney_tail(n, m, u), n * m // 2, alpha)


@pytest.mark.parametrize("n", range(1, 11))
def test_signed_rank_distribution_is_that_of_all_signs(n: int) -> None:
    sums = [sum(rank for rank, up in enumerate(signs, 1) if up) for signs in product((False, True), repeat=n)]
    for t in range(-1, n * (n + 1) // 2 + 2):
        assert signed_rank_tail(n, t) == float(Fraction(sum(value <= t for value in sums), 2**n))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 7), (3, 4), (4, 3), (5, 5), (2, 8), (6, 4)])
def test_mann_whitney_distribution_is_that_of_all_arrangements(n: int, m: int) -> None:
    counts = [sum(place - k for k, place in enumerate(places)) for places in combinations(range(n + m), n)]
    for u in range(-1, n * m + 2):
        expected = Fraction(sum(value <= u for value in counts), len(counts))
        assert mann_whitney_tail(n, m, u) == pytest.approx(float(expected), rel=1e-15)


def test_critical_values_of_published_tables_signed_rank() -> None:
    """Two-sided; McCornack, JASA 60 (1965), and Wilcoxon & Wilcox (1964)."""
    at_5_percent = {5: None, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25, 20: 52, 25: 89, 30: 137, 40: 264, 50: 434}
    at_1_percent = {7: None, 8: 0, 9: 1, 10: 3, 15: 15, 20: 37, 25: 68, 30: 109, 50: 373}
    assert {n: signed_rank_critical(n, 0.05) for n in at_5_percent} == at_5_percent
    assert {n: signed_rank_critical(n, 0.01) for n in at_1_percent} == at_1_percent


def test_critical_values_of_published_tables_mann_whitney() -> None:
    """Two-sided; Milton, JASA 59 (1964)."""
    at_5_percent = {(3, 4): None, (3, 5): 0, (4, 4): 0, (5, 5): 2, (6, 10): 11, (8, 8): 13, (10, 10): 23, (20, 20): 127}
    at_1_percent = {(4, 5): None, (5, 5): 0, (8, 12): 15, (10, 10): 16, (20, 20): 105}
    assert {size: mann_whitney_critical(*size, 0.05) for size in at_5_percent} == at_5_percent
    assert {size: mann_whitney_critical(*size, 0.01) for size in at_1_percent} == at_1_percent


def test_an_error_that_is_just_met_counts_as_met() -> None:
    assert signed_rank_critical(10, 2 * signed_rank_tail(10, 8)) == 8
    assert signed_rank_critical(6, 2 / 2**6) == 0


def test_sides_may_be_exchanged() -> None:
    assert all(mann_whitney_tail(6, 11, u) == mann_whitney_tail(11, 6, u) for u in range(70))


def test_the_normal_distribution_that_takes_over_is_close_and_never_less_careful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = [(6, 300), (30, 30), (79, 79)]
    exact_t = {alpha: signed_rank_critical(100, alpha) for alpha in (0.05, 0.01, 0.001, 0.0001)}
    exact_u = {(n, m, alpha): mann_whitney_critical(n, m, alpha) for n, m in sizes for alpha in (0.05, 0.01, 0.001)}
    monkeypatch.setattr(ranks, "_EXACT_SIGNED_RANK", 0)
    monkeypatch.setattr(ranks, "_EXACT_MANN_WHITNEY", 0)
    signed_rank_critical.cache_clear()
    try:
        for alpha, exact in exact_t.items():
            assert exact is not None
            assert exact - 25 <= signed_rank_critical(100, alpha) <= exact
        for (n, m, alpha), exact in exact_u.items():
            assert exact is not None
            assert exact - 0.05 * n * m <= mann_whitney_critical(n, m, alpha) <= exact
    finally:
        signed_rank_critical.cache_clear()


def test_where_the_normal_distribution_takes_over_there_is_no_jump() -> None:
    assert signed_rank_tail(100, 1900) == pytest.approx(signed_rank_tail(101, 1900 + 50), rel=0.1)
    assert signed_rank_tail(101, 101 * 102 // 4) == pytest.approx(0.5, abs=0.01)
    assert mann_whitney_tail(200, 200, 20000) == pytest.approx(0.5, abs=0.01)
