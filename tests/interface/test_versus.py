"""Commands against each other: the study that they make, and what is refused before anything runs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

import seatrial
from seatrial.interface.run import versus_study, words_of
from seatrial.model.study.study import LABEL
from seatrial.plan.points import compared_points, study_points
from seatrial.stats.interval import MINIMUM_REPEATS


def test_words_are_split_as_a_shell_does() -> None:
    assert words_of("./app 'a b' \"$HOME\" c\\ d") == ("./app", "a b", "$HOME", "c d")


@pytest.mark.parametrize(
    ("command", "said"),
    [("", "is not a command"), ("''", "is not a command"), ("true 'x", "no closing quotation"), (" ", "not a command")],
)
def test_what_is_no_command_is_refused(command: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(seatrial.UsageError, match=said):
        seatrial.versus("true", command, results=tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_programs_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for words, said in [
        (("no-such-program",), "command not found"),
        ((str(tmp_path / "nothing"),), "no such file"),
        ((str(tmp_path),), "is a folder"),
        ((str(plain),), "is not executable"),
    ]:
        with pytest.raises(seatrial.UsageError, match=said):
            versus_study([("true",), words], {})
        with pytest.raises(seatrial.UsageError, match=said):
            versus_study([("true",), ("false",)], {"prepare": words})
    with pytest.raises(seatrial.UsageError, match="1 command to compare"):
        versus_study([("true",)], {})
    with pytest.raises(seatrial.UsageError, match="given twice"):
        versus_study([("true",), ("false",), ("true",)], {})
    with pytest.raises(seatrial.UsageError, match="warmup cannot be"):
        versus_study([("true",), ("false",)], {"warmup": "some"})


@pytest.mark.parametrize("commands", [[("true", "1"), ("true", "2"), ("true", "3")], [("true",), ("true",)]])
def test_each_is_compared_with_the_first(commands: list[tuple[str, ...]]) -> None:
    study = versus_study(commands, {"warmup": 2})
    points = study_points(study, made_up_machine())
    (group,) = compared_points(study, points)
    assert [point.parameters["argv"] for point in group] == commands
    assert {point.parameters["warmup"] for point in group} == {2}
    is_itself = len({*commands}) == 1
    assert [LABEL in point.parameters for point in group] == [is_itself] * len(commands)


def test_a_repeat_with_probes_is_one_run() -> None:
    study = versus_study([("true",), ("false",)], {})
    for probes, most_runs in (((), 1000), (("io",), 1)):
        points = study_points(replace(study, probes=probes), made_up_machine())
        assert {point.parameters["most_runs"] for point in points} == {most_runs}


def test_the_margin_is_that_of_the_comparison(tmp_path: Path) -> None:
    compare = versus_study([("true",), ("false",)], {}, 0.3).compare
    assert compare is not None and compare.margin == 0.3
    with pytest.raises(seatrial.UsageError, match="margin=2 is not between 0 and 1"):
        seatrial.versus("true", "false", margin=2, results=tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_a_secret_is_not_in_what_is_kept() -> None:
    study = versus_study([("true", "--password=hunter22"), ("true", "--password=hunter22")], {})
    assert "hunter22" not in study.question and "hunter22" not in str(study.axes)


@pytest.mark.real
@pytest.mark.lab
def test_programs_in_turns_inherit_nothing_of_the_turns(tmp_path: Path) -> None:
    """Descriptors and ignored signals are those of a program that Python starts by itself."""
    own_of_libc = 0b11 << 31  # signals 32 and 33, which no program chooses

    def started(name: str) -> tuple[str, str]:
        (tmp_path / name).mkdir()
        state = f"ls /proc/self/fd > {tmp_path / name}/fd; grep ^SigIgn: /proc/self/status > {tmp_path / name}/signals"
        return "sh", "-c", f"{state}; true"

    def inherited(name: str) -> tuple[str, int]:
        ignored = (tmp_path / name / "signals").read_text().partition(":")[2].strip() or "0"
        return (tmp_path / name / "fd").read_text(), int(ignored, 16) & ~own_of_libc

    subprocess.run(started("directly"), check=True, stdin=subprocess.DEVNULL)
    found = seatrial.versus(started("first"), started("second"), results=tmp_path / "r", budget_s=1)
    assert [one.outcome.reason for one in found.experiments] == ["", ""]
    assert [inherited("first"), inherited("second")] == [inherited("directly")] * 2
    assert any(repeat.turns for figure in found.experiments[0].figures for repeat in figure.repeats)


@pytest.mark.real
@pytest.mark.lab
def test_two_programs_are_measured_in_turns_and_compared(tmp_path: Path) -> None:
    found = seatrial.versus("sleep 0.02", "sleep 0.03", results=tmp_path / "r", set={"most_runs": 3})
    assert found.study is not None and found.problem is None
    (compared,) = found.study.compared
    wall = next(one for one in compared.comparisons if one.figure == "wall")
    assert (compared.baseline, compared.candidate) == ("sleep 0.02", "sleep 0.03")
    assert not wall.is_secondary and wall.n_repeats >= MINIMUM_REPEATS
    assert 1.2 < wall.ratio < 1.7  # what they sleep, with the time that a start takes
    assert {one.figure for one in compared.comparisons if one.is_secondary} >= {"cpu_time", "voluntary_switches"}
    turns = [repeat.turns for figure in found.experiments[0].figures[:1] for repeat in figure.repeats]
    assert all(len(own) >= 3 for own in turns)
    again = seatrial.versus("sleep 0.02", "sleep 0.03", results=tmp_path / "r", set={"most_runs": 3})
    assert all(one.reused for one in again.experiments)
