"""Logs of Simcenter STAR-CCM+, made up in the form that guides of sites show."""

from __future__ import annotations

from random import Random

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import mutant
from applications.result_texts import STAR_NAMES as _NAMES
from applications.result_texts import star_log as log
from applications.result_texts import star_table as table

from seatrial.errors import ParseError

LOG = log(table())


def test_the_steady_iteration_and_the_whole_run() -> None:
    assert figures("star-ccm", LOG) == {("step",): pytest.approx(1.5), ("wall",): pytest.approx(19.0)}
    assert stated("star-ccm", LOG) == {"iterations": 6, "ranks": 16}


def test_a_continued_simulation_has_no_time_of_the_whole_run() -> None:
    assert figures("star-ccm", log(table(first=501))) == {("step",): pytest.approx(1.5)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LOG.replace("exited with code 0", "goes on"), "not ended"),
        (LOG.replace("exited with code 0", "exited with code 139"), "failed"),
        (log(table() + table()), "two runs"),
        (log(table(names=(*_NAMES[:-1], "Cd"))), "no column"),
        (log(table().replace("   ", " ")), "no column"),
        (LOG.replace("2.000000e-04", "NaN", 1), "not a number"),
        (LOG.replace("1.600000e+01", "3.600000e+01"), "took"),
        (LOG.replace("processes : 16", "processes : 12"), "processes"),
        (log(""), "no table"),
        ("some other program\n", "another program"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("star-ccm", text)


def test_lost_rows_are_noticed() -> None:
    lines = LOG.splitlines(keepends=True)
    rows = [k for k, line in enumerate(lines) if line.strip()[:1] in "23456" and "e-03" in line]
    assert len(rows) == 5
    for k in rows[:-1]:
        assert "rows are missing" in refusal("star-ccm", "".join(lines[:k] + lines[k + 1 :]))


def test_no_damage_gives_another_time_of_an_iteration() -> None:
    """Nothing contradicts a digit of the first or last total but that iterations are alike."""
    for n in range(300):
        data = mutant(LOG.encode(), Random(n))
        try:
            found = figures("star-ccm", data)
        except ParseError:
            continue
        assert found.get(("step",), 1.5) == pytest.approx(1.5, rel=0.6), n
