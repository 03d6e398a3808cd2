"""apps.gromacs: its points, a real run, and a planted fault for each check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from made_up import made_up_machine

from seatrial.applications.gromacs import BENCHMARK as GROMACS
from seatrial.errors import NoCompilerError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

SMALL = {"edge": "2", "steps": "100", "ranks": "1"}
PROGRAM = GROMACS.program
assert isinstance(PROGRAM, External)


def point(machine: Machine, **settings: str) -> Point:
    (found,) = plan_points(["apps.gromacs"], {name: [value] for name, value in settings.items()}, machine)
    return found


@pytest.mark.parametrize(("cores", "edge"), [(1, 2), (2, 2), (3, 3), (128, 8)])
def test_each_core_of_the_machine_has_its_atoms(cores: int, edge: int) -> None:
    parameters = point(made_up_machine(cores=cores)).parameters
    assert (parameters["edge"], parameters["ranks"], parameters["threads"]) == (edge, cores, 1)


def test_the_problem_does_not_depend_on_ranks_and_threads() -> None:
    machine = made_up_machine(cores=64)
    found = [point(machine, threads=threads) for threads in ("1", "4", "32")]
    assert {one.parameters["edge"] for one in found} == {7}
    assert [one.parameters["ranks"] for one in found] == [64, 16, 2]
    assert all(len(one.cpus) == 64 for one in found)


def test_the_topology_has_the_molecules_of_the_box() -> None:
    inputs = PROGRAM.inputs(point(made_up_machine(cores=2), edge="3").parameters)
    assert inputs["topol.top"].decode().split()[-2:] == ["SOL", str(216 * 27)]


def test_threads_are_told_the_same_by_the_environment_and_the_command() -> None:
    """GROMACS refuses to run where they differ."""
    parameters = point(made_up_machine(cores=8), threads="4").parameters
    arguments = PROGRAM.arguments(parameters, Path("folder"))
    assert arguments[arguments.index("-ntomp") + 1] == PROGRAM.variables(parameters)["OMP_NUM_THREADS"] == "4"
    assert PROGRAM.variables(parameters)["OMP_PLACES"] is None


@pytest.mark.parametrize(("rate", "words"), [(0.5, "0.0864 ns/day"), (370.0, "63.9 ns/day"), (1e4, "1728 ns/day")])
def test_a_rate_is_said_in_nanoseconds_a_day(rate: float, words: str) -> None:
    figure = GROMACS.figure("step_rate")
    assert figure.customary is not None and figure.customary({}, rate) == words


def measured(
    benchmark: Benchmark, machine: Machine, folder: Path, settings: Mapping[str, str] = SMALL
) -> tuple[Point, RepeatRecord]:
    """The record of one repeat; no compiler is needed for it."""
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parallel
def test_it_measures(live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    need("gmx_mpi", "apt install gromacs")
    planned, record = measured(GROMACS, live_machine, tmp_path / "results", {**SMALL, "ranks": "all"})
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(GROMACS, live_machine, planned.parameters, record.samples)}
    assert found["step_rate"] * found["step"] == pytest.approx(1)
    assert found["step_rate"] * 0.1728 == pytest.approx(record.samples[0].extra["ns_per_day"], rel=1e-3)
    assert record.checks["ranks"] == planned.parameters["ranks"]


INPUT_FAULTS = {
    "four times the time step": ("dt = 0.002", "dt = 0.008", "energy_drift: "),
    "a little more of it": ("dt = 0.002", "dt = 0.0021", "time_step_ps: "),
    "hot water": ("gen-temp = 300.0", "gen-temp = 400.0", "temperature_K: "),
    "fewer steps": ("nsteps = 200", "nsteps = 180", "steps: 180, must be 200"),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", INPUT_FAULTS)
def test_a_wrong_input_is_found(
    fault: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("gmx_mpi", "apt install gromacs")
    right, wrong, reason = INPUT_FAULTS[fault]
    inputs = PROGRAM.inputs(point(live_machine, **SMALL).parameters)
    assert right.encode() in inputs["md.mdp"], "where is the fault to be planted now?"
    planted = {name: text.replace(right.encode(), wrong.encode()) for name, text in inputs.items()}
    broken = replace(GROMACS, program=replace(PROGRAM, inputs=lambda params: planted))
    _, record = measured(broken, live_machine, tmp_path / "results")
    assert record.outcome.state is State.INVALID, record.outcome
    assert record.outcome.reason.startswith(reason)


def _reset_early(params: Mapping[str, object], directory: Path) -> list[str]:
    arguments = list(PROGRAM.arguments(params, directory))
    arguments[arguments.index("-resetstep") + 1] = "50"
    return arguments


def _on_one_thread(params: Mapping[str, object], directory: Path) -> list[str]:
    arguments = list(PROGRAM.arguments(params, directory))
    arguments[arguments.index("-ntomp") + 1] = "1"
    return arguments


LARGER = {"edge": 3, "steps": 100}
COMMAND_FAULTS = {
    "measured_steps: 151, must be 101": {"arguments": _reset_early},
    "atoms: 17496, must be 5184": {
        "inputs": lambda params: PROGRAM.inputs(LARGER),
        "preparation": lambda params: PROGRAM.preparation(LARGER),
    },
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("reason", COMMAND_FAULTS)
def test_another_run_than_was_asked_for_is_found(
    reason: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("gmx_mpi", "apt install gromacs")
    broken = replace(GROMACS, program=replace(PROGRAM, **COMMAND_FAULTS[reason]))
    _, record = measured(broken, live_machine, tmp_path / "results")
    assert (record.outcome.state, record.outcome.reason[: len(reason)]) == (State.INVALID, reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_fewer_threads_are_found(live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    need("gmx_mpi", "apt install gromacs")
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    one = {"arguments": _on_one_thread, "variables": lambda params: {"OMP_NUM_THREADS": "1"}}
    broken = replace(GROMACS, program=replace(PROGRAM, **one))
    _, record = measured(broken, live_machine, tmp_path / "results", {**SMALL, "threads": "2"})
    assert (record.outcome.state, record.outcome.check) == (State.INVALID, "threads"), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_a_box_that_has_not_its_molecules_is_not_run(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    """GROMACS' own count of the molecules of the box against that of the topology."""
    need("gmx_mpi", "apt install gromacs")
    broken = replace(PROGRAM, preparation=lambda params: PROGRAM.preparation(LARGER))
    _, record = measured(replace(GROMACS, program=broken), live_machine, tmp_path / "results")
    assert record.outcome.state is State.FAILED
    assert "grompp" in record.outcome.reason
