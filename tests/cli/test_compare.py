"""`seatrial compare`, and `seatrial run STUDY`, as scripts see them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side
from cli.in_process import seatrial_here
from msgspec.structs import replace
from places.host_root import make_host_root
from published_schemas import check

from seatrial.cli.compare import _compare
from seatrial.cli.output import FailOn, Format, Output
from seatrial.environments.asking import lacking_gpu
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, Stage
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.plan.study_file import read_study

NEEDS = {"io.file": "fio", "apps.lammps": "lmp", "apps.hpl": "hpcc", "mpi.": "mpicc", "environment.mpi:": "mpicc.mpich"}
"""What an example's text names -> the program that it needs."""
SMALLER = {
    "n: 8000": "n: 1000",
    "n: 4000": "n: 1000",
    "n: 96": "n: 32",
    "elements: 60000, steps: 60": "elements: 3000, steps: 60",
    "elements: 100000, steps: 100": "elements: 3000, steps: 60",
    "elements: 20000, steps: 40, ranks: 2": "elements: 3000, steps: 60, ranks: 2",
    "cells: [10, 24]                 #": "cells: [10, 12]                 #",
    "cells: 20, steps: 200": "cells: 10, steps: 100",
    "cells: 16, steps: 200": "cells: 10, steps: 100",
    "bodies: 16384": "bodies: 2048",
    "largest_B: 16MiB": "largest_B: 64KiB",
    "file_B: 64MiB": "file_B: 16MiB",
    "memory.stream: {}": "memory.stream: {kernel: triad}",
    "memory.stream: {threads: all}": "memory.stream: {threads: all, kernel: triad}",
    "memory.stream: {nontemporal: true}": "memory.stream: {nontemporal: true, kernel: triad}",
    '["", -O1, ': '["", ',  # each of the flags builds every part of the program anew
}
"""What an example's text sets -> what the test sets instead, to end sooner."""
UNSUPPORTED = {
    "adapter-near-or-far": "adapter",
    "turbo-and-governor": "cpufreq",
    "turbo-per-watt": "cpufreq",
}
"""The examples that this machine may have no hardware for -> a word of the reason that they must give."""
RUN = (
    "adapter-near-or-far",
    "container-or-bare",
    "gpu-host-memory",
    "io-record-size",
    "jobs-at-once",
    "mpi-library",
    "where-time-goes",
)
"""The examples that always run: each kind of answer, axis and probe once. All of them are planned."""
IMAGE = "/images/app"
"""Where the user's image stands in an example."""
EXAMPLES = Path(__file__).parents[2] / "examples"
ON_MANY_NODES = {"container-on-nodes", "processors", "two-layouts-power"}
ON_ONE_MACHINE = [path for path in sorted(EXAMPLES.glob("*.yaml")) if path.stem not in ON_MANY_NODES]
"""Without those of several systems: tests/jobs/test_study_systems.py runs one."""
LEVEL = 5e10
CHANGING = {"load", "steal", "CPU time of other processes", "note huge_pages"}
"""What may differ on any shared machine, whoever compares."""


def made(path: Path, factor: float = 1.0, seed: int = 1, **more: Any) -> str:
    folder = MadeUpFolder(path)
    folder.add(noisy(LEVEL * factor, 20, seed=seed), **more)
    return str(path)


def compare(*sides: str, **options: Any) -> int:
    return _compare(list(sides), **options, out=Output(output_format=Format.JSON))


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    check(document, "compare-1")
    return dict(document)


def test_the_document_follows_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = compare(
        made(tmp_path / "a", seen={"variables": {}}),
        made(tmp_path / "b", 0.9, seed=2, seen={"variables": {"OMP_X": "1"}}),
    )
    document = answer(capsys)
    assert status == 0 and document["schema"] == "seatrial.compare/1" and "outliers" not in document
    (one,) = document["comparisons"]
    assert one["figure"] == "fma" and one["parameters"]["precision"] == "fp64" and one["unit"] == "flop/s"
    assert one["candidate"] / one["baseline"] == pytest.approx(one["ratio"], rel=0.01)
    assert one["ci95"][0] <= one["ratio"] <= one["ci95"][1] and one["ci95_family"] is None
    assert one["verdict"] == "ambiguous" and one["margin"] == 0.02 and one["n_repeats"] == 20
    assert one["design"]["sessions"] == 1 and one["design"]["statistic"] is None
    (variable,) = [entry for entry in document["differences"] if "OMP_X" in entry["what"]]
    assert variable["intended"] is False and variable["candidate"] == "1" and variable["baseline"] is None


@pytest.mark.parametrize(
    ("factor", "noise", "fail_on", "status"),
    [
        (1.0, 0.003, None, 0),
        (0.9, 0.003, None, 0),
        (0.9, 0.003, FailOn.SLOWER, 1),
        (0.9, 0.003, FailOn.AMBIGUOUS, 1),
        (1.1, 0.003, FailOn.SLOWER, 0),
        (1.0, 0.3, FailOn.SLOWER, 0),
        (1.0, 0.3, FailOn.AMBIGUOUS, 1),
    ],
)
def test_fail_on_says_that_sides_measured_apart_have_no_verdict(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    noise: float,
    fail_on: FailOn | None,
    status: int,
) -> None:
    for name, level in (("a", LEVEL), ("b", LEVEL * factor)):
        MadeUpFolder(tmp_path / name).add(noisy(level, 20, noise, seed=len(name) + int(level)))
    assert compare(str(tmp_path / "a"), str(tmp_path / "b"), fail_on=fail_on) == status
    said = capsys.readouterr().err
    assert ("1 of 1 comparison without a verdict" in said and "seatrial run STUDY" in said) == (fail_on is not None)


@pytest.mark.parametrize("fail_on", [None, FailOn.SLOWER, FailOn.AMBIGUOUS])
def test_nothing_in_common_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fail_on: FailOn | None
) -> None:
    MadeUpFolder(tmp_path / "a").add(noisy(LEVEL, 8), precision="fp64", label="x")
    lost = Outcome.failed(Stage.RUN, "signal 9")
    MadeUpFolder(tmp_path / "b").add(noisy(LEVEL, 1), outcome=lost, precision="fp64", label="x")
    assert compare(str(tmp_path / "a"), str(tmp_path / "b"), fail_on=fail_on) == 3
    caught = capsys.readouterr()
    assert "nothing was compared" in caught.err and "signal 9" in caught.err


def test_without_a_common_benchmark_no_record_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    MadeUpFolder(tmp_path / "a").add(noisy(LEVEL, 8))
    other = MadeUpFolder(tmp_path / "b")
    only = other.add(noisy(LEVEL, 8))
    kept = replace(Experiment.from_document(other.folder.get("experiments", only)), benchmark="memory.stream")
    (tmp_path / f"b/experiments/{only}.json").unlink()
    other.folder.put("experiments", kept.id, kept.document())
    monkeypatch.setattr("seatrial.interface.results.contents_in", lambda path: pytest.fail(f"{path} is read"))
    assert compare(str(tmp_path / "a"), str(tmp_path / "b")) == 3
    caught = capsys.readouterr()
    assert "nothing was compared" in caught.err and "memory.stream" in caught.out


def test_a_wider_margin_gives_more_same_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    in_turns = [[10.0 * n + 5.0 * side for n in range(20)] for side in range(2)]
    sides = made(tmp_path / "a", starts=in_turns[0]), made(tmp_path / "b", 1.05, seed=2, starts=in_turns[1])
    compare(*sides)
    assert answer(capsys)["comparisons"][0]["verdict"] == "faster"
    compare(*sides, margin="10%")
    assert answer(capsys)["comparisons"][0]["verdict"] == "same"


@pytest.mark.parametrize(
    ("sides", "options", "words"),
    [
        ((), {}, "two sides"),
        (("a",), {}, "two sides"),
        (("a", "b", "a"), {}, "two sides"),
        (("a", "b"), {"along": "label"}, "one results folder"),
        (("a", "b"), {"margin": "0"}, "not a percentage"),
        (("a", "b"), {"margin": "150%"}, "not a percentage"),
        (("a", "b"), {"margin": "2GB"}, "not a percentage"),
        (("a", "b"), {"margin": "two"}, "not a percentage"),
        (("a", "none"), {}, "no results folder 'none'"),
        (("a", "reference:s0.none"), {}, "reference"),
        (("reference:s0.none", "reference:s0.none"), {}, "two published"),
        (("a",), {"along": "threads"}, "axis"),
        (("a", "empty"), {}, "no finished repeat"),
    ],
)
def test_bad_input_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: tuple[str, ...], options: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "a")
    made(tmp_path / "b", seed=2)
    MadeUpFolder(tmp_path / "empty")
    with pytest.raises(UsageError, match=words) as caught:
        compare(*sides, **options)
    assert caught.value.exit_code == 2 and caught.value.todo


def test_nodes_are_screened_and_the_slow_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = MadeUpFolder(tmp_path / "fleet")
    for n in range(16):
        folder.add(noisy(LEVEL * (0.9 if n == 11 else 1.0), 8, 0.004, seed=n), host=f"n{n:02}")
    compare(str(tmp_path / "fleet"), along="node")
    (one,) = answer(capsys)["outliers"]
    assert one["what"] == "n11" and one["ratio"] == pytest.approx(0.9, rel=0.01)
    assert one["sureness"] > 0.95 and one["false_alarm_rate"] == 0.01


def test_the_farthest_nodes_are_measured_again_beside_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one repeat each, a node that is 5 % slow is not certain; new repeats beside others make it so."""

    def folder(name: str, nodes: Iterable[str], repeats: int, seed: int) -> str:
        made = MadeUpFolder(tmp_path / name)
        for k, node in enumerate(nodes):
            factor = 0.95 if node == "n11" else 1.0
            made.add(noisy(LEVEL * factor, repeats, 0.01, seed=seed + k), host=node)
        return str(tmp_path / name)

    first = folder("first", [f"n{n:02}" for n in range(32)], 1, 1)
    compare(first, along="node")
    document = answer(capsys)
    suspects, controls = document["again"]["suspects"], document["again"]["controls"]
    assert document["outliers"] == [] and "n11" in suspects and len(suspects) == 6
    assert len(controls) == 8 and not set(suspects) & set(controls)
    _compare([first], along="node", out=Output())
    shown = " ".join(capsys.readouterr().out.split())
    assert f"measure the farthest ({', '.join(suspects)}) again" in shown and "10 repeats on each" in shown

    compare(first, folder("again", [*suspects, *controls], 10, 100), along="node", output=tmp_path / "again.html")
    document = answer(capsys)
    (one,) = document["outliers"]
    assert one["what"] == "n11" and one["ratio"] == pytest.approx(0.95, abs=0.01) and one["n"] == 14
    assert set(document["unconfirmed"]) == set(suspects) - {"n11"} and "again" not in document
    assert "Measured again and not confirmed" in (tmp_path / "again.html").read_text()
    with pytest.raises(UsageError, match="at least 6 new repeats of a suspect and of at least 4 other nodes") as caught:
        compare(first, folder("few", [*suspects, *controls], 3, 200), along="node")
    assert "n11" in str(caught.value.todo)
    with pytest.raises(UsageError, match="at least 6 new repeats"):
        compare(first, folder("none", controls, 10, 300), along="node")
    with pytest.raises(UsageError, match="too few nodes to measure any again"):
        compare(folder("small", ["a", "b", "c"], 6, 400), first, along="node")


def test_a_page_is_also_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare(made(tmp_path / "a"), made(tmp_path / "b", 1.1, seed=2), output=tmp_path / "ab.html")
    page = (tmp_path / "ab.html").read_text()
    assert page.startswith("<!doctype html>") and "faster" in page and "<script" not in page
    assert answer(capsys)["comparisons"]


def test_comparing_only_reads(tmp_path: Path) -> None:
    sides = made(tmp_path / "a"), made(tmp_path / "b", 1.1, seed=2)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    compare(*sides)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_damaged_study_in_the_folder_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    made(tmp_path / "a", blocks=side_by_side(20))
    (tmp_path / "a" / "studies").mkdir(exist_ok=True)
    (tmp_path / "a" / "studies" / "0000.json").write_text('{"study": 7}')
    assert compare(str(tmp_path / "a"), made(tmp_path / "b", seed=2)) == 0


def with_little_work(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The text of the example, changed to end within seconds; the test is skipped where something is missing."""
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    asked = example.read_text()
    if "gpu." in asked and (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    for word, program in NEEDS.items():
        if word in asked and shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    for usual, smaller in SMALLER.items():
        asked = asked.replace(usual, smaller)
    if IMAGE in asked:
        if all(runtime.path() is None for runtime in RUNTIMES.values()):
            pytest.skip("needs a container runtime, such as charliecloud")
        make_host_root(tmp_path / "image")
        asked = asked.replace(IMAGE, str(tmp_path / "image"))
    return asked


@pytest.mark.real
@pytest.mark.parametrize("example", ON_ONE_MACHINE, ids=lambda path: path.stem)
def test_every_example_is_planned(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is valid as it is, and has as many experiments as its axes have points."""
    assert read_study(example.read_bytes(), example.name).question, "it is also valid as it is"
    asked = with_little_work(example, tmp_path, monkeypatch)
    study = read_study(asked.encode(), example.name)
    (tmp_path / example.name).write_text(asked)
    done = seatrial_here("plan", example.name, "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check(document, "plan-1")
    ids = {entry["id"] for entry in document["experiments"]}
    points = len(study.benchmarks) * prod(len(axis.values) for axis in study.axes)
    assert len(ids) == document["count"] >= 1
    assert len(ids) == points or study.zips or study.exclude or study.include


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=() if path.stem in RUN else pytest.mark.exhaustive) for path in ON_ONE_MACHINE],
    ids=lambda path: path.stem,
)
def test_examples_run_and_make_a_page(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each within a few seconds: with a shorter budget and less work, so verdicts may be open. On a busy machine a
    side may have no repeat."""
    asked = with_little_work(example, tmp_path, monkeypatch)
    (tmp_path / example.name).write_text(asked)
    done = seatrial_here("run", example.name, "--results", "r", "--budget", "2s", "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    check(document, "results-1")
    study = document["study"]
    why = UNSUPPORTED.get(example.stem)
    if why is not None and not study["comparisons"]:
        assert done.returncode == 3 and why in " ".join(entry["reason"] for entry in document["experiments"])
    else:
        assert done.returncode == 0, done.stderr
        assert bool(study["comparisons"]) is ("\ncompare:" in asked)
    assert bool(study["scaling"]) is ("\nscaling:" in asked)
    assert bool(study["best_of"]) is ("\nbest_of:" in asked)
    unlike = [difference for difference in study["differences"] if not difference["intended"]]
    is_cut_short = any(e.get("reason") == "no repeat of it has finished" for e in document["experiments"])
    lost = {"outcome"} if is_cut_short or why is not None else set()
    started_otherwise = {"command line", "note arguments"} if IMAGE in example.read_text() else set()
    assert {difference["what"] for difference in unlike} <= CHANGING | lost | started_otherwise, unlike
    page = seatrial_here("report", "r", "-o", "p.html", cwd=tmp_path)
    html = (tmp_path / "p.html").read_text()
    assert page.returncode == 0 and study["question"] in html
    published = [line.strip("- \n") for line in asked.partition("\nreferences:")[2].splitlines()[1:]]
    assert (">Published values<" in html) is bool(published) and all(reference in html for reference in published)


@pytest.mark.real
@pytest.mark.lab
def test_an_interrupted_study_keeps_finished_repeats_and_resumes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seatrial", "run", str(EXAMPLES / "itself.yaml"), "--results", str(tmp_path / "r")]
    process = subprocess.Popen(
        [*command, "--budget", "60s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # background jobs ignore it
    )
    deadline = time.monotonic() + 120
    records = tmp_path / "r" / "records"
    while time.monotonic() < deadline and sum(p.read_bytes().count(b"\n") for p in records.glob("*.jsonl")) < 4:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    kept = sum(p.read_bytes().count(b"\n") for p in records.glob("*.jsonl"))
    assert kept >= 4
    done = subprocess.run([*command, "--budget", "6s", "--format", "json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["study"]["comparisons"]
    assert one["n_repeats"] >= kept // 2 - 1


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such.yaml",), "cannot be read"),
        ((str(EXAMPLES / "itself.yaml"), "cpu.peak"), "must be the only target"),
        ((str(EXAMPLES / "itself.yaml"), "--set", "cores=all"), "does not apply to a study"),
        (("/",), "cannot be read"),
    ],
)
def test_a_study_must_be_the_only_target(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = seatrial_here("run", *arguments, "--results", "r", cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "r").exists()


def test_an_unknown_reference_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        compare(made(tmp_path / "a"), "reference:levels.triad-streem")


@pytest.mark.parametrize("fail_on", [None, FailOn.SLOWER, FailOn.AMBIGUOUS])
def test_a_side_that_died_leaves_nothing_to_compare(tmp_path: Path, fail_on: FailOn | None) -> None:
    dead = MadeUpFolder(tmp_path / "b")
    dead.add(noisy(LEVEL, 1), outcome=Outcome.failed(Stage.RUN, "was killed by SIGSEGV"))
    status = compare(made(tmp_path / "a"), str(tmp_path / "b"), fail_on=fail_on)
    assert status == 3
