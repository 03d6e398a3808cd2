"""apps.openfoam: what icoFoam leaves, real runs, and a planted fault for each check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from made_up import made_up_machine

from seatrial.applications.openfoam import BENCHMARK as OPENFOAM
from seatrial.applications.openfoam_output import PROBES, probed_velocities, read_solver, with_times
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

STEP = """\
Courant Number mean: 0.1 max: 0.7
smoothSolver:  Solving for Ux, Initial residual = 2e-07, Final residual = 9e-09, No Iterations 12
smoothSolver:  Solving for Uy, Initial residual = 1e-07, Final residual = 0, No Iterations 0
DICPCG:  Solving for p, Initial residual = 0.1, Final residual = 0.03, No Iterations 7
time step continuity errors : sum local = 7e-06, global = -2e-20, cumulative = -2e-20
DICPCG:  Solving for p, Initial residual = 0.3, Final residual = 8e-07, No Iterations 11
time step continuity errors : sum local = 3e-10, global = -2e-20, cumulative = -5e-20
"""
LOG = f"""\
| =========                 |                                                 |
| \\\\      /  F ield         | OpenFOAM: The Open Source CFD Toolbox           |
Build  : _0-2 OPENFOAM=2406 version=v2406
nProcs : 2
Create mesh for time = 0
Time = 0.1

{STEP}ExecutionTime = 0.5 s  ClockTime = 0 s

Time = 0.2

{STEP}ExecutionTime = 0.9 s  ClockTime = 1 s

End
"""


def profile(steps: int, loop_s: float, pressure_s: float) -> bytes:
    times = {
        "application::main": (1, loop_s + 0.5),
        "time.run() case": (steps, loop_s),
        "fvMatrix::solve.p": (2, pressure_s),
    }
    triggers = [
        f'    trigger{i}\n    {{\n        id {i};\n        description     "{name}";\n        calls {calls};\n'
        f"        totalTime       {seconds};\n        active true;\n    }}\n"
        for i, (name, (calls, seconds)) in enumerate(times.items())
    ]
    return ("FoamFile\n{\n    version 2.0;\n}\nprofiling\n{\n" + "".join(triggers) + "}\n").encode()


FILES = {
    "processor0/0.1/uniform/profiling": profile(100, 2.0, 1.5),
    "processor0/0.2/uniform/profiling": profile(200, 3.0, 2.25),
    PROBES: b"# Probe 0 (0.5 0.5 0.05)\n#  Time\n 0.1  (-0.1 0 0)  (0.2 0 0)\n 0.2  (-0.2 1e-3 0)  (0.3 0 0)\n",
}


def test_the_log_is_read() -> None:
    record = read_solver(LOG.encode())
    assert record.ended and record.notes == {"version": "2406", "cpu_time_of_rank_0_s": 0.9}
    assert record.checks == {
        **{"ranks": 2, "steps": 2, "pressure_residual": 8e-07, "velocity_residual": 2e-07},
        **{"continuity": 3e-10, "courant": 0.7},
    }


def test_the_second_half_of_the_run_counts_by_its_profiles() -> None:
    record = with_times(read_solver(LOG.encode()), FILES)
    (sample,) = record.samples
    assert (sample.elapsed_s, sample.work) == (1.0, {"steps": 100.0})
    assert sample.extra == {"pressure_s": 0.75, "program_s": 3.5}
    assert probed_velocities(FILES) == [-0.2, 0.3] and probed_velocities({}) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("processor0/0.2/uniform/profiling", profile(200, 2.0, 1.5)),
        ("processor0/0.2/uniform/profiling", profile(100, 3.0, 2.25)),
        ("processor0/0.2/uniform/profiling", profile(200, 3.0, 2.25).replace(b"time.run()", b"time.went()")),
        ("processor0/0.2/uniform/profiling", profile(200, 3.0, 2.25).replace(b"2.25", b"two")),
        ("processor0/0.3/uniform/profiling", profile(300, 4.0, 2.5)),
    ],
)
def test_damaged_profiles_are_refused(path: str, text: bytes) -> None:
    with pytest.raises(ProtocolError):
        with_times(read_solver(LOG.encode()), {**FILES, path: text})


def test_a_run_that_did_not_end_is_none() -> None:
    assert not read_solver(b"").ended and not read_solver(LOG.replace("End\n", "").encode()).ended
    crashed = read_solver((LOG + "[1] --> FOAM FATAL ERROR: \n").encode())
    assert not crashed.ended and "FATAL" in crashed.notes["error"]


def test_an_openfoam_that_cannot_profile_is_skipped() -> None:
    for build in ("9-4c5a2f0d1b3e", "_0 OPENFOAM=1706"):
        record = read_solver(LOG.replace("_0-2 OPENFOAM=2406 version=v2406", build).encode())
        assert record.skip is not None and "openfoam.com" in record.skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("F ield", "F"),
        ("Build  :", "| \\\\      /  F ield         | OpenFOAM: again |\nBuild  :"),
        ("nProcs : 2", "nProcs : two"),
        ("0.9 s  Clock", "x.9 s  Clock"),
        ("residual = 8e-07", "residual = eight"),
    ],
)
def test_a_damaged_log_is_refused(before: str, after: str) -> None:
    with pytest.raises(ProtocolError):
        read_solver(LOG.replace(before, after).encode())


def test_a_lost_step_and_a_lost_equation_have_no_value() -> None:
    assert read_solver(LOG.replace("Time = 0.2\n", "").encode()).checks["steps"] is None
    lost = "".join(f"{line}\n" for line in LOG.split("\n") if "0.03" not in line)
    assert read_solver(lost.replace("residual = 8e-07", "residual = nan").encode()).checks["pressure_residual"] is None


def test_more_ranks_than_rows_of_cells_are_skipped() -> None:
    (found,) = plan_points(["apps.openfoam"], {"cells": ["16"], "ranks": ["17"]}, made_up_machine(cores=32))
    assert found.refusal is not None and "no whole cells" in found.refusal.reason


def measured(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> tuple[Point, RepeatRecord]:
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parallel
def test_it_measures_the_same_flow_with_any_number_of_ranks(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("icoFoam", "apt install openfoam")
    centres = []
    for ranks in ("1", "2")[: len(live_machine.allowed_cpus)]:
        planned, record = measured(OPENFOAM, live_machine, tmp_path / ranks, ranks=ranks, cells="16")
        assert record.outcome.is_ok, record.outcome
        found = {r.figure.name: r.value for r in readings(OPENFOAM, live_machine, planned.parameters, record.samples)}
        assert 0 < found["pressure"] < found["step"] < found["wall"] / 208
        centres.append(record.checks["centre"])
    assert centres == pytest.approx([centres[0]] * len(centres), abs=2e-5)


FAULTS = {
    "centreline": {b"0 0 0 0] 0.01;": b"0 0 0 0] 0.0025;"},
    "centre": {b"div(phi,U) Gauss linear;": b"div(phi,U) Gauss upwind;"},
    "pressure_residual": {b"tolerance 1e-06": b"tolerance 1e-04"},
    "continuity": {b"tolerance 1e-06": b"tolerance 1e-02"},
    "courant": {b"deltaT 0.05;": b"deltaT 0.1;", b"endTime 20.8;": b"endTime 41.6;"},
    "steps": {b"endTime 20.8;": b"endTime 26;"},
    # as many steps, which do not reach the steady flow
    "velocity_residual": {b"deltaT 0.05;": b"deltaT 0.005;", b"endTime 20.8;": b"endTime 2.08;"},
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("check", FAULTS)
def test_a_wrong_case_is_found(
    check: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("icoFoam", "apt install openfoam")
    program = OPENFOAM.program
    assert isinstance(program, External)

    def planted(params: object) -> dict[str, bytes]:
        texts = dict(program.inputs({"cells": 16, "ranks": 1}))
        for right, wrong in FAULTS[check].items():
            assert any(right in text for text in texts.values()), "where is the fault to be planted now?"
            texts = {name: text.replace(right, wrong) for name, text in texts.items()}
        return texts

    checked = [one for one in OPENFOAM.checks if one.name == check]
    broken = replace(OPENFOAM, program=replace(program, inputs=planted), checks=tuple(checked))
    _, record = measured(broken, live_machine, tmp_path / "results", ranks="1", cells="16")
    assert record.outcome.state is State.INVALID and record.outcome.check == check, record.outcome


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("ranks", "how"), [("1", "stated"), ("2", "alone")])
def test_a_run_on_another_number_of_ranks_is_found(
    ranks: str, how: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    """Its log states another number; without -parallel, each process solves the whole case alone and says so."""
    need("icoFoam", "apt install openfoam")
    if len(live_machine.allowed_cpus) < int(ranks):
        pytest.skip(f"needs {ranks} CPUs")
    program = OPENFOAM.program
    assert isinstance(program, External)

    def other(data: bytes) -> ProgramRecord:
        assert b"nProcs : 1\n" in data, "where is the fault to be planted now?"
        return program.parse(data.replace(b"nProcs : 1\n", b"nProcs : 2\n"))

    def alone(params: Params, directory: Path) -> list[str]:
        words = list(program.arguments(params, directory))
        assert "-parallel" in words, "where is the fault to be planted now?"
        return [word for word in words if word != "-parallel"]

    changed = replace(program, parse=other) if how == "stated" else replace(program, arguments=alone)
    _, record = measured(
        replace(OPENFOAM, program=changed), live_machine, tmp_path / "results", ranks=ranks, cells="16"
    )
    if how == "stated":
        assert record.outcome.state is State.INVALID and record.outcome.check == "ranks", record.outcome
    else:
        assert record.outcome.state is State.FAILED, record.outcome
        assert "a second run begins here" in record.outcome.reason, record.outcome
        assert "own file" not in record.outcome.reason, "the user has no file to split"


@pytest.mark.real
@pytest.mark.parallel
def test_a_clock_that_runs_too_fast_is_found(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("icoFoam", "apt install openfoam")
    program = OPENFOAM.program
    assert isinstance(program, External)

    def faster(record: ProgramRecord, files: Mapping[str, bytes]) -> ProgramRecord:
        times = re.compile(rb"totalTime       ([0-9.e-]+)")
        changed = {
            name: times.sub(lambda time: b"totalTime       %g" % (100 * float(time[1])), text)
            for name, text in files.items()
        }
        assert changed != files, "where is the fault to be planted now?"
        return program.complete(record, changed)

    broken = replace(OPENFOAM, program=replace(program, complete=faster))
    _, record = measured(broken, live_machine, tmp_path / "results", ranks="1", cells="16")
    assert record.outcome.state is State.INVALID and record.outcome.check == "clock", record.outcome


@pytest.mark.real
def test_an_installation_without_its_settings_is_unsupported(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("icoFoam", "apt install openfoam")
    monkeypatch.setenv("WM_PROJECT_DIR", str(tmp_path))
    _, record = measured(OPENFOAM, live_machine, tmp_path / "results", ranks="1", cells="16")
    assert record.outcome.state is State.UNSUPPORTED and "etc/bashrc" in record.outcome.reason, record.outcome
