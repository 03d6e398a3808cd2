"""Programs of the user on the command line: `run command -- ./app` and `run --versus`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check as check_document

real = [pytest.mark.real, pytest.mark.lab]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cpu.peak", "--", "true"], "words after `--`"),
        (["command", "--"], "no program after `--`"),
        (["--", "no-such-program"], "no-such-program: command not found"),
        (["--warmup", "2"], "--warmup"),
        (["cpu.peak", "--prepare", "sync"], "--prepare"),
        (["command", "--expect", "256", "--", "true"], "--expect"),
        (["command", "--prepare", "'", "--", "true"], "cannot be split into words"),
        (["command", "--input", "missing", "--", "true"], "--input 'missing' cannot be read"),
        (["command", "--warmup", "1", "--set", "warmup=2", "--", "true"], "warmup is given twice"),
        (["--versus", "true"], "1 command to compare"),
        (["--versus"], "no command to compare"),
        (["--versus", "true", "true 'x"], "cannot be split into words"),
        (["--versus", "true", "false", "--set", "cpus=1,2"], "--versus varies the commands only"),
        (["--versus", "true", "false", "--margin", "2"], "--margin '2' is not a percentage between 0 and 100"),
        (
            ["--versus", "true", "false", "--equivalence", "x"],
            "--equivalence 'x' is not a percentage between 0 and 100",
        ),
        (["--versus", "true", "false", "--margin", "2%", "--equivalence", "1%"], "leave the margin out"),
        (["command", "--margin", "2%", "--", "true"], "--margin is only for --versus"),
        (["command", "--equivalence", "2%", "--", "true"], "--equivalence is only for --versus"),
    ],
)
def test_misuse_is_refused_before_anything_runs(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = seatrial_here("run", "--results", "r", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.real
@pytest.mark.lab
def test_one_program_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    """It fails without what `prepare` makes, so that was run before each run; `cleanup` was run at the end."""
    (tmp_path / "input").write_text("some input\n")
    check = "test -e made && read line && test \"$line\" = 'some input' && rm made && exit 3"
    options = ["--prepare", "touch made", "--cleanup", "touch cleaned", "--input", "input", "--expect", "3"]
    options += ["--warmup", "1", "--budget", "1s", "--results", "r", "--format", "json"]
    done = seatrial_here("run", "command", *options, "--", "sh", "-c", f"{check}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (experiment,) = json.loads(done.stdout)["experiments"]
    assert experiment["parameters"]["argv"] == ["sh", "-c", check] and experiment["parameters"]["prepare"]
    figures = {figure["name"]: figure for figure in experiment["figures"]}
    assert {"wall", "cpu_time", "minor_faults", "major_faults", "voluntary_switches"} <= figures.keys()
    assert figures["wall"]["unit"] == figures["cpu_time"]["unit"] == "s"
    assert figures["wall"]["n_samples"] > figures["wall"]["n_repeats"] >= 6
    assert (tmp_path / "cleaned").exists() and not (tmp_path / "made").exists()


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "ended with exit status 7"),
        (["--expect", "3"], "ended with exit status 7 instead of 3"),
        (["--prepare", "false"], "the prepare command ended with exit status 1"),
        (["--cleanup", "false", "--expect", "7"], "the cleanup command ended with exit status 1"),
    ],
)
def test_a_program_that_fails_says_so_itself(options: list[str], said: str, tmp_path: Path) -> None:
    words = ["sh", "-c", "echo what is wrong >&2; exit 7"]
    done = seatrial_here("run", "command", *options, "--results", "r", "--", *words, cwd=tmp_path)
    assert done.returncode == 3 and said in done.stdout
    assert "what is wrong" in done.stdout or "--prepare" in options


@pytest.mark.real
@pytest.mark.lab
def test_what_is_named_is_measured_even_if_the_budget_was_over_at_once(tmp_path: Path) -> None:
    command = ["run", "command", "--set", "most_runs=1", "--results", "r", "--format", "json", "--", "true"]
    seatrial_here(*command, cwd=tmp_path)  # builds the program
    done = seatrial_here("run", "--budget", "1ms", "--again", *command[1:], cwd=tmp_path)
    assert done.returncode == 0 and "is too short for the fewest repeats" in done.stderr, done.stderr
    assert json.loads(done.stdout)["experiments"][0]["outcome"] == "ok"


@pytest.mark.real
@pytest.mark.lab
def test_a_comparison_is_one_document_and_a_gate(tmp_path: Path) -> None:
    arguments = ["--versus", "sleep 0.01", "sleep 0.02", "--set", "most_runs=3", "--results", "r"]
    done = seatrial_here("run", *arguments, "--fail-on", "slower", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    check_document(document, "compare-1")
    assert {one["figure"] for one in document["comparisons"] if one["secondary"]} >= {"cpu_time"}
    wall = next(one for one in document["comparisons"] if one["figure"] == "wall")
    assert wall["verdict"] == "slower" and wall["candidate_name"] == "sleep 0.02" and not wall["secondary"]
    text = seatrial_here("run", *arguments, cwd=tmp_path)  # it is finished: only read
    first, *rest = text.stdout.splitlines()
    assert text.returncode == 0 and first.startswith("answer: sleep 0.01") and "wall" in first, text.stdout
    assert len(rest) <= 8 and any(line.startswith("slower wall: ") for line in rest), text.stdout
    brief = seatrial_here("run", *arguments, "-q", cwd=tmp_path)
    assert brief.stdout == f"{first}\n" and "cpu_time" in seatrial_here("run", *arguments, "-v", cwd=tmp_path).stdout
    wide = ["--margin", "99%", "--budget", "5s", "--fail-on", "slower", "--format", "json"]
    gate = seatrial_here("run", *arguments, *wide, cwd=tmp_path)  # less than twice as long
    assert gate.returncode == 0 and {one["margin"] for one in json.loads(gate.stdout)["comparisons"]} == {0.99}
    failing = seatrial_here("run", "--versus", "true", "sh -c 'echo why >&2; exit 7'", "--results", "r", cwd=tmp_path)
    assert failing.returncode == 3 and "why" in failing.stderr and "exit status 7" in failing.stderr
