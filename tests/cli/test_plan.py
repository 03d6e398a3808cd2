"""`seatrial plan` as scripts see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.cli.command import command_named
from seatrial.engine import planned
from seatrial.plan.planned import PlannedJob, PlannedJobs
from seatrial.plan.points import plan_points
from seatrial.report.text.plan import jobs_text

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


def test_plan_takes_what_run_takes(tmp_path: Path) -> None:
    """Write `plan` for `run`, and nothing else changes."""
    run, plan = ({option for p in command_named(name).params for option in p.opts} for name in ("run", "plan"))
    assert run == plan
    (tmp_path / "app.yaml").write_text(
        "benchmark: {name: app, question: How fast?, argv: ['true', '{n}'], parameters: {n: 1}}\n"
    )
    for words, names in (
        (["app.yaml", "--set", "n=1,2", "--again", "--wait", "3s"], ["local.app"] * 2),
        (["cpu.peak", "memory.gups", "--set", "cores=one", "--budget", "30s"], ["cpu.peak", "memory.gups"]),
        (["command", "--warmup", "1", "--", "true", "a b"], ["command"]),
        (["--versus", "true", "true 1", "--margin", "1%"], ["command"] * 2),
    ):
        done = seatrial_here("plan", *_with_json(words), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        check(document, "plan-1")
        assert [one["benchmark"] for one in document["experiments"]] == names, words
    done = seatrial_here("plan", "cpu.peack", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean cpu.peak?" in done.stderr
    done = seatrial_here("plan", "cpu.peak", "--fail-on", "slower", cwd=tmp_path)
    assert done.returncode == 2 and "has no verdict" in done.stderr
    done = seatrial_here("plan", "cpu.peak", "--set", "cores=one", "-q", cwd=tmp_path)
    assert done.stdout.startswith("1 experiment; expected: about ") and len(done.stdout.splitlines()) == 1


def _with_json(words: list[str]) -> list[str]:
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], "--format", "json", *words[at:]]


SITE = """\
systems:
  deep:
    batch: slurm
    partitions:
      one: {nodes: 1, cpus_per_node: 64}
      two: {nodes: 2, cpus_per_node: 64}
"""
TWO_NODES = """\
study: s
question: q?
benchmarks: {mpi.allreduce: {nodes: 2}}
axes: {ranks: [64, 128]}
compare: ranks
"""


def test_what_the_site_cannot_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "s.yaml").write_text(TWO_NODES)
    (tmp_path / "more.yaml").write_text(TWO_NODES.replace("128", "256"))
    for command in ("plan", "run"):
        for words, why in (
            (["s.yaml", "--system", "deep:one"], "mpi.allreduce needs 2 nodes, and deep:one has 1"),
            (["more.yaml", "--system", "deep:two"], "ranks=256 needs 256 CPUs, and 2 nodes of deep:two have 128"),
            (["memory.stream", "--set", "threads=65", "--system", "deep:one"], "threads=65 needs 65 CPUs, and a node"),
        ):
            done = seatrial_here(command, *words, "--site", "site.yaml", cwd=tmp_path)
            assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 2, done.stderr


def test_what_only_the_nodes_can_run_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "s.yaml").write_text(TWO_NODES)
    words = ("plan", "s.yaml", "--site", "site.yaml", "--system", "deep:two")
    text = seatrial_here(*words, cwd=tmp_path).stdout
    assert "Decided on the nodes" in text and "Cannot run here" not in text and "nothing can run here" not in text
    assert "1 comparison in 1 group" in text or "comparisons in 1 group" in text
    assert text.count("#!/bin/bash") == 1
    document = json.loads(seatrial_here(*words, "--format", "json", cwd=tmp_path).stdout)
    check(document, "plan-1")
    assert {one["state"] for one in document["experiments"]} == {"unknown"} and document["compare"]["groups"]


def test_the_scripts_of_several_jobs_are_printed_once() -> None:
    script = "#!/bin/bash\n#SBATCH --partition={}\nexec job.sh\n"
    jobs = tuple(PlannedJob(name, ("cpu.peak",), 1, 1.0, 60.0, script.format(name)) for name in ("a", "b", "c"))
    text = jobs_text(PlannedJobs("a, b, c", jobs, True), verbose=True)
    assert text.count("#!/bin/bash") == 1 and text.count("#SBATCH") == 3 and "as of job 1 but for 1 line" in text
