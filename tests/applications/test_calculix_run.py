"""apps.calculix: what ccx leaves, real runs, and a planted fault for each check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from made_up import made_up_machine

from seatrial.applications.calculix import BENCHMARK as CALCULIX
from seatrial.applications.calculix import read_ccx, read_results, with_increments
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

OUTPUT = """
CalculiX Version 2.21, Copyright(C) 1998-2023 Guido Dhondt
 Using up to 1 cpu(s) for setting up the structure of the matrix.
 Using up to 2 cpu(s) for the stress calculation.
   nodes:          369
   elements:          160
 SELECTED time increment:1.000000e-06
 the increment size exceeds the remainder of the step and is decreased to 1.000000e-06
 the increment size exceeds the remainder of the step and is decreased to 2.500000e-07
 Job finished
Total CalculiX Time: 2.200000
"""
RESULTS = """
 displacements (vx,vy,vz) for set END and time  0.1025000E-04

         1  1.500000E-06  1.500329E-24 -5.530578E-23

 total internal energy for set BAR and time  0.1025000E-04

        2.839512E-04
"""


def damaged(before: str, after: str) -> bytes:
    assert before in OUTPUT
    return OUTPUT.replace(before, after).encode()


def test_the_increments_are_counted() -> None:
    record = read_ccx(OUTPUT.encode())
    assert record.ended and record.checks == {"threads": 2, "elements": 160} and record.notes == {"version": "2.21"}
    (sample,) = with_increments(record, 10.25e-6).samples
    assert sample.elapsed_s == 2.2 and sample.work == {"increments": 11}
    with pytest.raises(ProtocolError, match=r"10\.25 increments"):
        with_increments(record, 10.5e-6)
    for step in ("0.1e-310", "1.000000e-40"):
        with pytest.raises(ProtocolError):
            with_increments(read_ccx(damaged("increment:1.000000e-06", f"increment:{step}")), 10.25e-6)


def test_the_results_are_read() -> None:
    results = read_results(RESULTS.encode())
    assert results.time_s == 1.025e-5
    assert results.values[("total internal energy", "BAR")] == (2.839512e-4,)
    assert results.values[("displacements", "END")][:2] == (1, 1.5e-6)
    tiny = read_results(RESULTS.replace("1.500329E-24", "1.500329-124").encode())
    assert tiny.values[("displacements", "END")][2] == 1.500329e-124


@pytest.mark.parametrize(
    "text",
    ["", RESULTS + RESULTS, "1 2\n" + RESULTS, RESULTS.replace("1.500000E-06", "1.5x"), RESULTS.replace("25", "26", 1)],
)
def test_damaged_results_are_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        read_results(text.encode())


def test_a_run_that_did_not_end_is_none() -> None:
    assert not read_ccx(b"").ended and not read_ccx(damaged("Job finished", "")).ended
    failed = read_ccx(damaged(" Job", " *ERROR in nonlingeo: max. # of increments reached\n Job"))
    assert not failed.ended and "max. #" in failed.notes["error"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CalculiX Version", "Abaqus Version"),
        ("Total CalculiX Time: 2.200000", ""),
        ("time increment:1.000000e-06", "time increment:0.000000e+00"),
        ("time increment:1.000000e-06", "time increment:one"),
        ("2 cpu(s) for the stress", "2 cpu(s) for no stress"),
    ],
)
def test_a_damaged_output_is_refused(before: str, after: str) -> None:
    with pytest.raises(ProtocolError):
        read_ccx(damaged(before, after))


def test_more_threads_than_cpus_are_skipped() -> None:
    (found,) = plan_points(["apps.calculix"], {"threads": ["3"]}, made_up_machine(cores=2))
    assert found.refusal is not None and "3 CPUs" in found.refusal.reason


def measured(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> tuple[Point, RepeatRecord]:
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parametrize(("threads", "across"), [("1", "2"), ("2", "3")])
def test_it_measures(
    threads: str, across: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("ccx", "apt install calculix-ccx")
    if int(threads) > len(live_machine.allowed_cpus):
        pytest.skip("needs 2 CPUs")
    planned, record = measured(CALCULIX, live_machine, tmp_path / "results", threads=threads, across=across)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(CALCULIX, live_machine, planned.parameters, record.samples)}
    assert 0 < found["increment"] < found["wall"] / 30


FAULTS = {
    "wave_speed": ("*DENSITY\n7800\n", "*DENSITY\n8000\n"),
    "end_speed": ("STRUCK, P6, 1e+06", "STRUCK, P6, 1.01e+06"),
    "energy": ("*ELSET, ELSET=STRUCK, GENERATE\n1,4\n", "*ELSET, ELSET=STRUCK, GENERATE\n1,3\n"),
    "kinetic_share": ("*STEP", "*INITIAL CONDITIONS, TYPE=VELOCITY\nALL, 1, 0.02\n*STEP"),
    "elements": ("*NSET, NSET=END", "*ELEMENT, TYPE=C3D8, ELSET=BAR\n161,1,10,13,4,2,11,14,5\n*NSET, NSET=END"),
    "volume": ("*NODE, NSET=ALL\n1,0,0,0\n", "*NODE, NSET=ALL\n1,-0.01,0,0\n"),
    "end_time": ("*DYNAMIC, EXPLICIT\n", "*DYNAMIC, EXPLICIT\n1e-5,2e-4\n**"),
}


@pytest.mark.real
@pytest.mark.parametrize("check", [*FAULTS, "threads"])
def test_a_wrong_problem_is_found(
    check: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("ccx", "apt install calculix-ccx")
    program = CALCULIX.program
    assert isinstance(program, External)

    def planted(params: object) -> dict[str, bytes]:
        ((name, text),) = program.inputs({"across": 2}).items()
        right, wrong = FAULTS.get(check, ("*NODE", "*NODE"))
        assert text.decode().count(right) >= 1, "where is the fault to be planted now?"
        return {name: text.decode().replace(right, wrong, 1).encode()}

    faulty = replace(program, inputs=planted)
    if check == "threads":
        faulty = replace(faulty, variables=lambda params: {"OMP_NUM_THREADS": "3"})
    broken = replace(CALCULIX, program=faulty, checks=tuple(one for one in CALCULIX.checks if one.name == check))
    _, record = measured(broken, live_machine, tmp_path / "results", threads="1", across="2")
    assert record.outcome.state is State.INVALID and record.outcome.check == check, record.outcome
