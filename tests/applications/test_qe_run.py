"""apps.qe: what pw.x prints, real runs, and a planted fault for each check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from made_up import made_up_machine

from seatrial.applications.qe import BENCHMARK as QE
from seatrial.applications.qe import read_pw
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

OUTPUT = """
     Program PWSCF v.7.2 starts on  1Jan2026 at 10: 0: 0
     Parallel version (MPI & OpenMP), running on       4 processor cores
     Number of MPI processes:                 2
     Threads/MPI process:                     2
     number of atoms/cell      =            8
     estimated scf accuracy    <       0.00000024 Ry
!    total energy              =     -62.59923870 Ry
     estimated scf accuracy    <          5.7E-10 Ry
     convergence has been achieved in   7 iterations
     electrons    :      2.10s CPU   1m 2.80s WALL (       1 calls)
     PWSCF        :      2.20s CPU   1m 3.39s WALL
     JOB DONE.
"""


def damaged(before: str, after: str) -> bytes:
    assert before in OUTPUT
    return OUTPUT.replace(before, after).encode()


def test_the_iterations_are_read() -> None:
    record = read_pw(OUTPUT.encode())
    (sample,) = record.samples
    assert record.ended and sample.elapsed_s == pytest.approx(62.8) and sample.work == {"iterations": 7.0}
    assert record.checks == {"atoms": 8, "energy": -62.5992387 / 8, "accuracy": 5.7e-10, "ranks": 2, "threads": 2}


def test_a_run_that_did_not_end_is_none() -> None:
    assert not read_pw(b"").ended and not read_pw(damaged("JOB DONE.", "")).ended
    stopped = read_pw(damaged("convergence has been achieved in   7", "convergence NOT achieved after 100"))
    assert not stopped.ended and not stopped.samples and "NOT achieved" in stopped.notes["error"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Program PWSCF", "Program PHONON"),
        ("\n     Program", "\n     Program PWSCF v.7.2 starts on  1Jan2026 at 10: 0: 0\n     Program"),
        ("1m 2.80s WALL", "1m 2.8x WALL"),
        ("1m 2.80s WALL", "1m 9.80s WALL"),
        ("in   7 iterations", "in   0 iterations"),
        ("electrons    :", "electron     :"),
    ],
)
def test_a_damaged_output_is_refused(before: str, after: str) -> None:
    with pytest.raises(ProtocolError):
        read_pw(damaged(before, after))


def test_a_problem_whose_energy_is_unknown_is_skipped() -> None:
    (found,) = plan_points(["apps.qe"], {"cells": ["7"]}, made_up_machine(cores=2))
    assert found.refusal is not None and "choose 1 to 6" in found.refusal.reason


def measured(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> tuple[Point, RepeatRecord]:
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("ranks", ["1", "2"])
def test_it_measures(ranks: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    need("pw.x", "apt install quantum-espresso quantum-espresso-data")
    if int(ranks) > len(live_machine.allowed_cpus):
        pytest.skip("needs 2 CPUs")
    planned, record = measured(QE, live_machine, tmp_path / "results", ranks=ranks)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(QE, live_machine, planned.parameters, record.samples)}
    assert 0 < found["step"] < found["electrons"]


@pytest.mark.real
@pytest.mark.parallel
def test_a_wrong_problem_is_found(live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    need("pw.x", "apt install quantum-espresso quantum-espresso-data")
    program = QE.program
    assert isinstance(program, External)
    given = program.inputs(QE.point({"cells": 1, "pseudo_dir": "/usr/share/espresso/pseudo"}))
    faults = {"energy: ": ("celldm(1)=10.2", "celldm(1)=10.3"), "accuracy: ": ("conv_thr=1.0d-08", "conv_thr=1.0d-04")}
    for reason, (right, wrong) in faults.items():
        planted = {name: text.decode().replace(right, wrong).encode() for name, text in given.items()}
        assert planted != given, "where is the fault to be planted now?"
        broken = replace(QE, program=replace(program, inputs=lambda params, planted=planted: planted))
        _, record = measured(broken, live_machine, tmp_path / reason[:3], ranks="1")
        assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_a_missing_pseudopotential_is_said(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("pw.x", "apt install quantum-espresso quantum-espresso-data")
    program = QE.program
    assert isinstance(program, External)
    given = program.inputs(QE.point({"cells": 1, "pseudo_dir": str(tmp_path)}))
    planted = {name: text.replace(b"Si.pz-vbc.UPF", b"Si.none.UPF") for name, text in given.items()}
    broken = replace(QE, program=replace(program, inputs=lambda params: planted))
    _, record = measured(broken, live_machine, tmp_path / "results", ranks="1")
    assert record.outcome.state is State.SKIPPED and "set pseudo_dir" in record.outcome.reason, record.outcome
