"""`seatrial plan` as scripts see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.engine import planned
from seatrial.plan.points import plan_points

STUDY = """\
study: stores
question: Do non-temporal stores pay on this machine?
benchmarks:
  memory.stream: {threads: 1, array_B: 1MiB}
axes:
  nontemporal: [false, true]
  label: [a, b]
compare: nontemporal
repeat: {budget: 10s, max: 6}
"""


QUICK = """\
study: quick
question: Do the plan and the run mean the same?
benchmarks:
  cpu.peak: {cores: one}
axes:
  precision: [fp64, fp32]
  environment.OMP_WAIT_POLICY: [active, passive]
  label: [a]
compare: environment.OMP_WAIT_POLICY
repeat: {budget: 1s, max: 6}
"""

SHORT = ["cpu.peak", "memory.gups"]


@pytest.mark.real
@pytest.mark.lab
def test_a_plan_has_the_ids_of_the_run_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(QUICK)
    done = seatrial_here("plan", "s.yaml", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    check(plan, "plan-1")
    assert plan["count"] == 4 and [path.name for path in tmp_path.iterdir()] == ["s.yaml"]
    ran = seatrial_here("run", "s.yaml", "--format", "json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    results = json.loads(ran.stdout)
    measured, planned = results["experiments"], plan["experiments"]
    assert {e["id"]: e["parameters"] for e in measured} == {e["id"]: e["parameters"] for e in planned}
    assert {e["environment"] for e in measured} == {e["environment"] for e in planned}
    assert len({e["environment"] for e in planned}) == 2


@pytest.mark.real
def test_a_plan_as_text(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    done = seatrial_here("plan", "s.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 experiments" in done.stdout and "true against false along nontemporal" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (STUDY.replace("label", "lable"), ("s.yaml: line 7: axes.lable", "label")),
        (STUDY.replace("10s", "10"), ("s.yaml: line 9: repeat.budget", "5min")),
        (STUDY + "x: *y\n", ("s.yaml: line 10", "alias")),
        ("", ("s.yaml", "empty")),
    ],
)
def test_an_invalid_study_ends_with_2_and_one_message(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "s.yaml").write_text(text)
    for arguments in (["plan", "s.yaml"], ["plan", "s.yaml", "--format", "json"]):
        done = seatrial_here(*arguments, cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == ""
        assert all(word in done.stderr for word in words), done.stderr
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 2


def test_an_unreadable_file_ends_with_2(tmp_path: Path) -> None:
    for name, words in (("nowhere.yaml", "cannot be read"), (".", "cannot be read"), ("/dev/zero", "1 MiB")):
        done = seatrial_here("plan", name, cwd=tmp_path)
        assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_without_a_study_it_is_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a machine whose trial is one benchmark: others would have to be built to be identified."""
    monkeypatch.setattr(planned, "plan_points", lambda targets, settings, machine: plan_points(SHORT, {}, machine))
    done = seatrial_here("plan", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check(document, "plan-1")
    assert document["count"] == len(document["experiments"]) == 2 and "study" not in document
    assert document["estimate_s"] == pytest.approx(sum(one["estimate_s"] for one in document["experiments"]))
    text = seatrial_here("plan", cwd=tmp_path)
    assert text.returncode == 0 and "The standard trial of this machine: 2 experiments" in text.stdout
    assert "memory.gups" in text.stdout and "at most" in text.stdout and not list(tmp_path.iterdir())


def test_every_experiment_of_a_study_is_listed_with_its_time(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    done = seatrial_here("plan", "s.yaml", "-v", cwd=tmp_path)
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("memory.stream  ")]
    assert len([row for row in rows if "nontemporal" in row and row[-1] in ("ms", "s")]) == 4, done.stdout


def test_a_misspelt_library_is_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "study: s\nquestion: q?\nbenchmarks: {mpi.latency: {}}\naxes: {environment.mpi: [mpihc]}\n"
    )
    for command in ("plan", "run", "build"):
        done = seatrial_here(command, "s.yaml", cwd=tmp_path)
        assert done.returncode == 2 and "'mpihc'" in done.stderr and "did you mean mpich?" in done.stderr, done.stderr
    assert not (tmp_path / "seatrial-results").exists()


def test_a_declaration_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("benchmark: {name: app, question: How fast?, argv: ['true']}\n")
    done = seatrial_here("plan", "app.yaml", cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert "declares the benchmark local.app" in done.stderr and "seatrial run app.yaml" in done.stderr
