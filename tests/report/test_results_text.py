"""Results on a terminal: a line for each figure, sweeps by their ends, and a trial by its answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysis.made_up_sweeps import figure, result
from report.test_page import empty_trial

from seatrial.analysis.results import RunResult
from seatrial.analysis.scaling import scaling
from seatrial.cli.output import Output
from seatrial.cli.run_results import Printer
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import UNNAMED, Machine
from seatrial.report.blocks import Detail
from seatrial.report.documents.results import results_document
from seatrial.report.text.results import results_text

SIZES = tuple(8**k for k in range(1, 8))
SWEEP = result(*(figure([1e-6 * size] * 6, point={"size_B": size}) for size in SIZES), n=1)


def test_a_sweep_is_shown_by_its_ends_and_bars_and_in_full_by_its_points() -> None:
    (title, line) = results_text([SWEEP]).splitlines()
    assert title.startswith("made.up n=1") and "at size_B=8B" in line and "at size_B=2MiB" in line
    assert line.endswith("▁▂▃▄▆▇█")  # on a logarithmic scale
    assert sum("size_B=" in line for line in results_text([SWEEP], detail=Detail.FULL).splitlines()) == len(SIZES)


def test_what_is_not_known_takes_no_words() -> None:
    text = results_text([result(figure([1.0] * 6), n=1)])
    assert "unknown" not in text and len(text.splitlines()) == 2


def finding(number: int, severity: Severity) -> Finding:
    return Finding(f"rule-{number}", severity, (), f"Observation {number}.", "Why.", "Do.", "seen")


def test_a_trial_is_its_answer_and_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    severities = [Severity.INFO, *[Severity.WARNING] * 10, Severity.ERROR]
    trial = empty_trial(results=(SWEEP,), findings=tuple(finding(n, one) for n, one in enumerate(severities)))
    found = RunResult((SWEEP,), {}, trial=trial)

    def shown(out: Output) -> list[str]:
        assert Printer(Path("r"), False, None, out).found(found) == 0
        return capsys.readouterr().out.splitlines()

    lines = shown(Output())
    assert lines[0].startswith("answer: ") and "size_B" not in " ".join(lines)
    errors = [line for line in lines if line.startswith("error ")]
    assert errors == ["error rule-11: Observation 11."] and lines.index(errors[0]) < lines.index(
        "warning rule-1: Observation 1."
    )
    assert lines[-1] == "and 4 more findings on the page" and len(lines) < 14
    assert any("size_B=" in line for line in shown(Output(verbose=True)))


def test_an_interval_that_is_missing_says_why() -> None:
    (line,) = results_text([result(figure([1.0] * 3), n=1)]).splitlines()[1:]
    assert "no interval (needs 6 repeats)" in line
    (shown,) = results_document([result(figure([1.0] * 3), n=1)], {})["experiments"][0]["figures"]
    assert shown["ci95"] is None and shown["no_interval_because"] == "an interval needs 6 repeats, 3 made"
    (whole,) = results_document([result(figure([1.0] * 6), n=1)], {})["experiments"][0]["figures"]
    assert whole["no_interval_because"] == ""
    (made,) = scaling([result(figure([1.0 / n] * 3), n=n) for n in (1, 2)], "strong", "n", {})
    assert {point.reason for point in made.points} == {"an interval needs 6 repeats, 3 made"}


def test_many_experiments_with_one_title_are_one_block() -> None:
    copies = [result(figure([float(rate)]), n=1) for rate in range(10, 106)]
    title, number, line = results_text(copies, detail=Detail.FULL).splitlines()
    assert title == "made.up n=1" and "96 experiments" in number
    assert "median 57.5" in line and "from 10 to 105" in line
    assert len(results_text(copies[:2]).split("\n\n")) == 2, "few are listed one by one"


def test_a_machine_without_a_name_is_a_machine() -> None:
    assert Machine(UNNAMED).title == Machine("").title == "a machine" and Machine("n1").title == "n1"
