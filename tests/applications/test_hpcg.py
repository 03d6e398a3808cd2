"""apps.hpcg: its report, its limit, a false HPCG for each check, and a real one where the site has it."""

from __future__ import annotations

import os
import random
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import SHARED_DATA
from engine.harness import run_one
from made_up import made_up_machine
from one_point import prepare_point

from seatrial.applications.hpcg import BENCHMARK as HPCG
from seatrial.applications.hpcg import read_report
from seatrial.benchmarks import benchmark_named, benchmark_of
from seatrial.engine.ready import Refused
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

REPORT = SHARED_DATA / "outputs" / "hpcg_openmpi_2x64.txt"
needs_report = pytest.mark.skipif(
    not REPORT.is_file(), reason="the third-party samples (shared/data/outputs) are not here"
)
NO_COMPILER = NoCompilerError("none")
MACHINE = made_up_machine(cores=2, channels=2)


def rating(text: str) -> float | None:
    """The rating in flop/s; None where the report is refused, or called wrong."""
    try:
        record = read_report(text.encode())
    except ProtocolError:
        return None
    return next((s.work["flops"] / s.elapsed_s for s in record.samples if s.series == "rating"), None)


def resolved(on: Machine = MACHINE, **settings: str) -> Params:
    (point,) = plan_points(["apps.hpcg"], {name: [value] for name, value in settings.items()}, on)
    assert point.refusal is None
    return point.parameters


@needs_report
def test_a_real_report() -> None:
    record = read_report(REPORT.read_bytes())
    assert rating(REPORT.read_text()) == pytest.approx(3.45821e9)
    assert record.checks == {"tests_failed": 0, "ranks": 2, "threads": 1, "nx": 64, "ny": 64, "nz": 64}
    assert record.notes["submission_valid"] is False and record.notes["hpcg_version"] == "3.1"
    assert record.ended


@needs_report
def test_a_report_of_a_long_run_could_be_official() -> None:
    """Every time and count grown alike, so that the rates stay what they were."""
    text = REPORT.read_text()
    lines = []
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        is_grown = key.startswith(("Benchmark Time Summary::", "Floating Point Operations Summary::"))
        lines.append(f"{key}={float(value) * 400:.6g}" if equals and is_grown else line)
    grown = "\n".join([*lines, ""])
    assert read_report(grown.encode()).notes["submission_valid"] is True
    assert rating(grown) == pytest.approx(3.45821e9)


@needs_report
def test_a_test_of_hpcg_that_failed_is_told_and_leaves_no_rating() -> None:
    text = REPORT.read_text().replace("epsilon::Result=PASSED", "epsilon::Result=FAILED")
    record = read_report(text.encode())
    assert record.checks["tests_failed"] == 1 and "Symmetry" in record.notes["failed"]
    assert rating(text) is None and record.notes["submission_valid"] is False


@needs_report
def test_a_report_cut_glued_or_damaged_is_refused_or_gives_the_true_rating() -> None:
    text = REPORT.read_text()
    whole_rating = rating(text)
    ends = [k for k, character in enumerate(text) if character == "\n"]
    for end in ends:
        assert rating(text[:end]) in (None, whole_rating)
    assert rating(text * 2) is None
    dice = random.Random(9)
    start = text.index("Benchmark Time Summary")
    for place in [k for k in range(start, len(text)) if text[k].isdigit()]:
        found = rating(text[:place] + dice.choice("0123456789") + text[place + 1 :])
        assert found is None or found == pytest.approx(whole_rating, rel=5e-4)


@pytest.mark.parametrize("damage", [b"", b"\0", b"HPCG-Benchmark\n", b"HPCG-Benchmark\nversion=3.1\n", b"x=1\n" * 9])
def test_what_is_no_report_is_refused(damage: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_report(damage)


def test_the_limit_is_the_memory_at_12_bytes_for_each_nonzero() -> None:
    """Two channels of 3200 MT/s are 51.2 GB/s: 4.27e9 nonzeros a second, of 2 flop each."""
    limit = HPCG.figure("rating").limit
    assert limit is not None
    found = limit(MACHINE, resolved(), [])
    assert found.value == pytest.approx(51.2e9 / 6) and found.is_physical
    in_the_caches = limit(MACHINE, resolved(size="32"), [])
    assert in_the_caches.value is None
    without = made_up_machine(cores=2)
    assert limit(without, resolved(without), []).value is None


def test_the_measured_ceiling_names_what_is_there() -> None:
    declared = HPCG.figure("rating").ceiling
    ceiling = declared(resolved()) if declared is not None else None
    assert ceiling is not None
    (name,) = {benchmark_of(role) for role in ceiling.roles}
    benchmark = benchmark_named(name)
    assert {*ceiling.parameters, *ceiling.ignored} == {parameter.name for parameter in benchmark.parameters}
    figures = [figure for figure in benchmark.figures if figure.role in ceiling.roles]
    assert len(figures) == 4 and all(figure.unit == "B/s" for figure in figures)


def test_the_matrix_is_beyond_the_caches_and_the_size_is_one_that_hpcg_takes() -> None:
    assert whole(resolved()["size"]) == 64
    large = made_up_machine(cores=2, l3_bytes=512 << 20)
    size = whole(resolved(large)["size"])
    assert size % 8 == 0 and size**3 * 2 * 27 * 12 >= 4 * (512 << 20) > (size - 8) ** 3 * 2 * 27 * 12


def test_whether_it_could_be_official_is_said_beside_the_figure() -> None:
    spoken = HPCG.figure("rating").customary
    assert spoken is not None
    assert "not official" in spoken(resolved(), 1e9) and "not" not in spoken(resolved(seconds="1800"), 1e9)


def measured(results_folder: Path, on: Machine, **settings: str) -> RepeatRecord:
    """One record of a real run; no compiler is needed for it."""
    item = prepare_point("apps.hpcg", on, settings, NO_COMPILER)
    if isinstance(item, Refused):
        pytest.skip(str(item.outcome.reason))
    return run_one(item, on, ResultsFolder.create(results_folder))


def pretend(folder: Path, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called xhpcg that leaves this report. It is linked with no MPI, so it runs as one process."""
    answer = folder / "answer"
    answer.write_text(told)
    false = folder / "bin" / "xhpcg"
    false.parent.mkdir()
    false.write_text(f'#!/bin/sh\n[ "$1" = --nx=64 ] && cp "{answer}" HPCG-Benchmark_3.1_2026-01-01.txt\n')
    false.chmod(false.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{false.parent}{os.pathsep}{os.environ['PATH']}")


FAULTS = {
    "nothing": ("", "", State.OK, ""),
    "symmetry": ("epsilon::Result=PASSED", "epsilon::Result=FAILED", State.INVALID, "tests_failed: "),
    "ranks": ("Distributed Processes=1", "Distributed Processes=2", State.INVALID, "ranks: "),
    "threads": ("Threads per processes=1", "Threads per processes=2", State.INVALID, "threads: "),
    "size": ("Local Domain Dimensions::ny=64", "Local Domain Dimensions::ny=32", State.INVALID, "ny: "),
    "rating": ("GFLOP/s rating of=3.45821", "GFLOP/s rating of=4.45821", State.FAILED, ""),
}


@needs_report
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, state, reason = FAULTS[fault]
    one_rank = REPORT.read_text().replace("Distributed Processes=2", "Distributed Processes=1")
    assert old in one_rank
    pretend(tmp_path, one_rank.replace(old, new) if old else one_rank, monkeypatch)
    on = replace(made_up_machine(cores=1))
    record = measured(tmp_path / "results", on, size="64", ranks="1")
    assert (record.outcome.state, record.outcome.reason[: len(reason)]) == (state, reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_a_real_xhpcg_where_there_is_one(tmp_path: Path, need, live_machine: Machine) -> None:
    need("xhpcg", "build HPCG and put xhpcg on PATH")
    record = measured(tmp_path, live_machine, size="16", seconds="1", ranks="1")
    assert record.outcome.is_ok, record.outcome
    assert {sample.series for sample in record.samples} == {"timed_sets", "rating"}


def as_yaml(report: str) -> str:
    """A report of version 3.1 as 3.0 wrote it."""
    lines = ["HPCG-Benchmark version: 3.0"]
    for line in report.splitlines()[2:]:
        key, _, value = line.partition("=")
        *above, name = key.split("::")
        lines.append(f"{'  ' * len(above)}{name}: {value}")
    return "\n".join(lines).replace("Final Summary: ", "__________ Final Summary __________: ") + "\n"


@needs_report
def test_a_report_in_YAML() -> None:
    text = REPORT.read_text()
    yaml = as_yaml(text)
    record = read_report(f"{yaml}WARNING: of another file: 1\nWARNING: of another file: 1\n".encode())
    assert record.samples == read_report(text.encode()).samples
    assert record.notes["hpcg_version"] == "3.0"
    by_intel = yaml.replace("HPCG-Benchmark version: 3.0", "n64-2p-1t version: V3.0")
    assert read_report(by_intel.encode()).samples == record.samples
    spaced = text.replace("HPCG-Benchmark\n", "n64-2p-1t\n").replace("Final Summary::", " Final Summary ::")
    assert read_report(spaced.encode()).samples == record.samples
    assert rating(yaml.replace("rating of: 3.4", "rating of: 4.4")) is None
    assert rating(yaml[: yaml.index("execution time")]) is None and rating(yaml * 2) is None
