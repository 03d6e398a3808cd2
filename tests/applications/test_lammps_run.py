"""apps.lammps: its points, real runs, and a planted fault for each check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from made_up import made_up_machine
from one_point import prepare_point

from seatrial.applications.lammps import BENCHMARK as LAMMPS
from seatrial.engine.ready import Ready
from seatrial.errors import NoCompilerError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

SMALL = {"cells": "10", "steps": "100"}


def point(machine: Machine, **settings: str) -> Point:
    (found,) = plan_points(["apps.lammps"], {name: [value] for name, value in settings.items()}, machine)
    return found


@pytest.mark.parametrize(("cores", "cells"), [(1, 20), (2, 20), (3, 23), (128, 80)])
def test_each_core_of_the_machine_has_its_atoms(cores: int, cells: int) -> None:
    parameters = point(made_up_machine(cores=cores)).parameters
    assert (parameters["cells"], parameters["ranks"], parameters["threads"]) == (cells, cores, 1)


def test_the_problem_does_not_depend_on_the_ranks() -> None:
    machine = made_up_machine(cores=64)
    assert {point(machine, ranks=ranks).parameters["cells"] for ranks in ("1", "2", "64")} == {64}


def test_ranks_and_threads_fill_the_cores() -> None:
    machine = made_up_machine(cores=8)
    found = point(machine, threads="3", package="omp")
    assert (found.parameters["ranks"], len(found.cpus)) == (2, 6)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ranks": "3"}, "3 ranks of 1 threads need 3 CPUs; this process may use 2"),
        ({"threads": "2"}, "package=none does not support threads; omp and intel do"),
        ({"threads": "3", "package": "omp"}, "1 ranks of 3 threads need 3 CPUs; this process may use 2"),
        ({"precision": "fp32"}, "package=none computes in fp64 only; package=intel offers others"),
    ],
)
def test_what_means_nothing_here_is_skipped(settings: Mapping[str, str], reason: str) -> None:
    refusal = point(made_up_machine(cores=2), **settings).refusal
    assert refusal is not None and (refusal.state, refusal.reason) == (State.SKIPPED, reason)


def test_kernels_that_nobody_asked_for_are_found() -> None:
    (check,) = [check for check in LAMMPS.checks if check.name == "kernels"]
    assert check.derive is not None
    machine = made_up_machine(cores=2)
    for wanted, found in (
        ({"package": "none"}, {"pair": "lj/cut", "precision": "double"}),
        ({"package": "intel", "precision": "fp32"}, {"pair": "lj/cut/intel", "precision": "single"}),
    ):
        parameters = LAMMPS.point(wanted)
        assert check.derive(machine, parameters, [Sample("run", 0, 1.0, extra=found)]) == 1
        for other in ({"pair": "lj/cut/omp"}, {"precision": "mixed"}):
            assert check.derive(machine, parameters, [Sample("run", 0, 1.0, extra={**found, **other})]) == 0


def measured(
    benchmark: Benchmark, machine: Machine, folder: Path, settings: Mapping[str, str] = SMALL
) -> tuple[Point, RepeatRecord]:
    """The record of one repeat; no compiler is needed for it."""
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("package", ["none", "opt"])
def test_it_measures(package: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    need("lmp", "apt install lammps")
    planned, record = measured(LAMMPS, live_machine, tmp_path / "results", {**SMALL, "package": package})
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(LAMMPS, live_machine, planned.parameters, record.samples)}
    assert found["atom_steps"] * found["step"] == pytest.approx(4000)
    assert record.checks["ranks"] == planned.parameters["ranks"]


@pytest.mark.real
@pytest.mark.parallel
def test_it_measures_into_a_folder_that_is_named_from_here(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application runs in its repeat's folder, from which such a name means another place."""
    need("lmp", "apt install lammps")
    monkeypatch.chdir(tmp_path)
    assert measured(LAMMPS, live_machine, Path("results"))[1].outcome.is_ok


@pytest.mark.real
@pytest.mark.parallel
def test_a_package_that_the_build_lacks_is_skipped(live_machine: Machine, need: Callable[[str, str], str]) -> None:
    need("lmp", "apt install lammps")
    prepared = prepare_point(LAMMPS, live_machine, {**SMALL, "package": "intel"}, NoCompilerError("none"))
    if isinstance(prepared, Ready):
        pytest.skip("this LAMMPS has the package INTEL")
    assert (prepared.outcome.state, prepared.outcome.reason) == (
        State.SKIPPED,
        "this LAMMPS was built without its package INTEL",
    )


INPUT_FAULTS = {
    "twice the time step": ("timestep 0.005", "timestep 0.01", "energy_drift: "),
    "energies that jump at the cutoff": ("shift yes", "shift no", "energy_drift: "),
    "lists that live too long": ("every 20", "every 40", "list_builds: "),
    "fewer steps": ("run 100\n", "run 50\nrun 50\n", "steps: 50, must be 100"),
    "no melting": ("run 100\nrun 100\n", "run 100\n", "settling_steps: 0, must be 100"),
    "melting in two parts": ("run 100\nrun 100\n", "run 50\nrun 50\nrun 100\n", "runs: "),
    "more atoms": ("0 10 0 10 0 10", "0 10 0 10 0 11", "atoms: 4400, must be 4000"),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", INPUT_FAULTS)
def test_a_wrong_input_is_found(
    fault: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("lmp", "apt install lammps")
    right, wrong, reason = INPUT_FAULTS[fault]
    program = LAMMPS.program
    assert isinstance(program, External)
    inputs = {name: text.decode() for name, text in program.inputs(point(live_machine, **SMALL).parameters).items()}
    assert any(right in text for text in inputs.values()), "where is the fault to be planted now?"
    planted = {name: text[::-1].replace(right[::-1], wrong[::-1], 1)[::-1].encode() for name, text in inputs.items()}
    broken = replace(LAMMPS, program=replace(program, inputs=lambda params: planted))
    _, record = measured(broken, live_machine, tmp_path / "results")
    assert record.outcome.state is State.INVALID, record.outcome
    assert record.outcome.reason.startswith(reason)


@pytest.mark.real
@pytest.mark.parallel
def test_other_kernels_and_threads_are_found(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("lmp", "apt install lammps")
    program = LAMMPS.program
    assert isinstance(program, External)
    faults = {
        "kernels: ": replace(program, arguments=lambda *given: [*program.arguments(*given), "-suffix", "opt"]),
        "threads: 2, must be 1": replace(program, variables=lambda params: {"OMP_NUM_THREADS": "2"}),
    }
    for reason, broken in faults.items():
        _, record = measured(replace(LAMMPS, program=broken), live_machine, tmp_path / reason[:3])
        assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(reason), record.outcome
