from __future__ import annotations

import math
import random

import pytest

from seatrial.stats import ranks as sums
from seatrial.stats.ranks import count_sums, doubled_placements, ordered_sums, table_size


def _table(a: list[float], b: list[float], triangle: bool) -> list[float]:
    return sorted(x + y for i, x in enumerate(a) for j, y in enumerate(b) if j >= i or not triangle)


def _kinds(source: random.Random, n: int) -> list[list[float]]:
    return [
        sorted(source.gauss(0.0, 1.0) for _ in range(n)),
        sorted(source.choice((0.0, 0.1, 0.3)) for _ in range(n)),
        [0.0] * n,
        sorted(math.exp(source.uniform(-300.0, 300.0)) for _ in range(n)),
        sorted([*(1e-9 * source.random() for _ in range(n - 1)), 1e9]),
    ]


@pytest.mark.parametrize("listed", [30_000, 8])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_every_rank_is_that_of_the_whole_table(monkeypatch: pytest.MonkeyPatch, listed: int, n: int) -> None:
    """`listed` = 8 has the search do what it otherwise does for many values only."""
    monkeypatch.setattr(sums, "LISTED", listed)
    source = random.Random(3)
    for a in _kinds(source, n):
        for b in _kinds(source, n + 2):
            whole = _table(a, b, triangle=False)
            assert len(whole) == table_size(n, n + 2, triangle=False)
            ranks = sorted({0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1} & set(range(len(whole))))
            assert ordered_sums(a, b, ranks, triangle=False) == [whole[rank] for rank in ranks]
        whole = _table(a, a, triangle=True)
        assert len(whole) == table_size(n, n, triangle=True)
        every = range(len(whole))
        assert ordered_sums(a, a, every, triangle=True) == whole


@pytest.mark.parametrize("triangle", [False, True])
def test_counts_are_those_of_the_whole_table(triangle: bool) -> None:
    source = random.Random(4)
    for a in _kinds(source, 12):
        b = a if triangle else sorted(source.gauss(0.0, 1.0) for _ in range(9))
        whole = _table(a, b, triangle)
        for bound in [*whole[::7], -1e300, 1e300, 0.05]:
            expected = (sum(value < bound for value in whole), sum(value <= bound for value in whole))
            assert count_sums(a, b, bound, triangle=triangle) == expected


def test_placements_of_rows_and_columns_are_those_of_the_whole_table() -> None:
    source = random.Random(5)
    for a in _kinds(source, 9):
        b = sorted(source.choice((0.0, 0.1, 0.4)) for _ in range(6))
        bound = a[4] + b[3]
        rows, columns = doubled_placements(a, b, bound)
        assert rows == [sum(2 * (x + y < bound) + (x + y == bound) for y in b) for x in a]
        assert columns == [sum(2 * (x + y < bound) + (x + y == bound) for x in a) for y in b]
