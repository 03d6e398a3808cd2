"""The exit status and the message of a command that measured nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.made_up_sweeps import figure, result
from cli.in_process import seatrial_here

from seatrial.cli.import_ import ImportResult
from seatrial.cli.run_results import compared_status, exit_status, nothing_measured
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.study.result import Compared, StudyResult
from seatrial.model.study.study import Compare, Study
from seatrial.report.text.results import few, results_text

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


def study(*comparisons: object, compare: bool = True) -> StudyResult:
    asked = Study("s", "q?", (), compare=Compare("node", 0) if compare else None)
    return StudyResult(asked, (), (Compared("0", "1", comparisons, ()),))


def test_a_study_that_compared_nothing_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert compared_status(study()) == 3
    assert capsys.readouterr().err == "nothing was compared\n"
    assert [compared_status(found) for found in (None, study(compare=False), study(object()))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cpu.peak"], "a benchmark alone has no verdict"),
        ([], "a benchmark alone has no verdict"),
        (["s.yaml"], "study s, which has no `compare` section, has no verdict"),
    ],
)
def test_fail_on_needs_a_study_that_compares(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "s.yaml").write_text("study: s\nquestion: q?\nbenchmarks: {cpu.peak: {}}\n")
    done = seatrial_here("run", *arguments, "--fail-on", "slower", cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "`seatrial compare A B --fail-on`" in done.stderr


def test_what_several_benchmarks_need_is_one_line() -> None:
    results = [result(outcome=MISSING, n=n) for n in range(10)] + [result(outcome=SKIPPED, n=10)]
    assert results_text(results).splitlines() == [
        "made.up n=10",
        "  skipped: needs two CPUs",
        "",
        "unsupported (10 experiments): made.up",
        "  mpi: install one",
    ]
    assert few("abcdefghij") == "a, b, c, d, e, f, g, h and 2 more" and few("aab") == "a, b"


@pytest.mark.real
@pytest.mark.lab
def test_a_gate_in_a_pipeline_holds_with_stored_results_too(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "study: s\nquestion: q?\nbenchmarks: {command: {argv: ['true']}}\naxes: {label: [a, b]}\n"
        "compare: {along: label, margin: 0.0001%}\nrepeat: {budget: 2s, max: 6}\n"
    )
    first = seatrial_here("run", "s.yaml", "--fail-on", "ambiguous", "--format", "json", cwd=tmp_path)
    assert json.loads(first.stdout)["study"]
    assert first.returncode == 1, first.stderr
    again = seatrial_here("run", "s.yaml", "--fail-on", "ambiguous", cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert seatrial_here("run", "s.yaml", cwd=tmp_path).returncode == 0
