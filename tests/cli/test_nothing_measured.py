"""The exit status and the message of a command that measured nothing."""

from __future__ import annotations

import pytest
from analysis.made_up_sweeps import figure, result

from seatrial.cli.run import exit_status, nothing_measured
from seatrial.interface.import_ import ImportResult
from seatrial.model.outcome import Outcome, Stage

OK, SKIPPED = Outcome.ok(), Outcome.skipped("needs two CPUs")
MISSING, FAILED = Outcome.unsupported("mpi", "install one"), Outcome.failed(Stage.RUN, "signal 9")


@pytest.mark.parametrize(
    ("outcomes", "named", "status"),
    [
        ([OK], True, 0),
        ([OK, SKIPPED], True, 0),
        ([OK, MISSING], False, 0),
        ([OK, MISSING], True, 3),
        ([OK, FAILED], False, 3),
        ([SKIPPED], True, 3),
        ([SKIPPED, SKIPPED], False, 3),
        ([MISSING], False, 3),
        ([], False, 3),
    ],
)
def test_the_status_of_a_run(outcomes: list[Outcome], named: bool, status: int) -> None:
    results = [
        result(*([figure([1.0])] if outcome.is_ok else []), outcome=outcome, n=n) for n, outcome in enumerate(outcomes)
    ]
    assert exit_status(results, named=named) == status


def test_what_was_missing_is_said_once_for_each_reason() -> None:
    results = [result(outcome=outcome, n=n) for n, outcome in enumerate([SKIPPED, SKIPPED, MISSING])]
    assert nothing_measured(results) == [
        "nothing was measured",
        "  made.up: skipped (2 experiments): needs two CPUs",
        "  made.up: unsupported: mpi: install one",
    ]
    assert nothing_measured([*results, result(figure([1.0]), n=9)]) == []
    many = [result(outcome=Outcome.skipped(f"reason {n}"), n=n) for n in range(500)]
    assert len(nothing_measured(many)) < 20 and "488 more reasons" in nothing_measured(many)[-1]


def test_an_import_of_nothing_is_not_ok() -> None:
    assert not ImportResult((), ()).is_ok
