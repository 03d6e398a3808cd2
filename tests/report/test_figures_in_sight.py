"""The visible rows of a long table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from seatrial.model.benchmark.benchmark import Better
from seatrial.report.pages.view import Judgement
from seatrial.report.panels.figure_table import _in_sight


def lines(figures: list[str], sizes: int, wrong: int | None = None) -> list[SimpleNamespace]:
    """The rows of sweeps, one after another."""
    return [
        SimpleNamespace(
            row=SimpleNamespace(
                figure=SimpleNamespace(name=name, median=1.0, better=Better.HIGHER),
                result=SimpleNamespace(id="one"),
                judgement=Judgement.DEFECT if number == wrong else Judgement.EXPECTED,
            )
        )
        for name in figures
        for number in range(sizes)
    ]


@pytest.mark.parametrize("figures", [["time_max", "time_mean"], ["a", "b", "c", "d"]])
def test_sweeps_side_by_side_show_the_same_sizes(figures: list[str]) -> None:
    rows = lines(figures, 23)
    seen = [{n - start for n in _in_sight(rows) if start <= n < start + 23} for start in range(0, len(rows), 23)]
    assert len(seen[0]) == 12 // len(figures) and {0, 22} <= seen[0]
    assert all(of == seen[0] for of in seen)


def test_what_is_wrong_is_in_sight() -> None:
    assert 7 in _in_sight(lines(["time"], 40, wrong=7))


def test_many_short_sweeps_are_thinned_as_one() -> None:
    assert len(_in_sight(lines([str(n) for n in range(30)], 2))) == 12


def test_where_nearly_all_is_unsteady_the_sweeps_are_seen_alike() -> None:
    rows = lines(["h2d", "d2h", "both", "h2d_all"], 30)
    for row in rows[1:]:
        row.row.judgement = Judgement.UNSTEADY
    rows[45].row.judgement = Judgement.DEFECT
    seen = _in_sight(rows)
    assert 45 in seen and len(seen) <= 12
    assert all(seen & set(range(start, start + 30)) for start in range(0, 120, 30))


def test_of_many_figures_the_best_of_each_is_in_sight() -> None:
    rows = lines([str(n) for n in range(9)], 10)
    for number, row in enumerate(rows):
        row.row.figure.median = (number * 7) % 10
        row.row.figure.better = Better.LOWER if number >= 80 else Better.HIGHER
    seen = _in_sight(rows)
    assert len(seen) == 9 and {rows[n].row.figure.median for n in seen if n < 80} == {9}
    assert rows[max(seen)].row.figure.median == 0
