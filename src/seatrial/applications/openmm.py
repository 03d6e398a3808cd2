"""`apps.openmm`: molecular dynamics by OpenMM, on the same files as `apps.amber`.

The start, the cutoff and the time step are those of `apps.amber`. OpenMM computes on one of its platforms: on CPUs
with several threads (CPU, fp32 with fp64 sums; Reference, fp64, serial), or on devices (OpenCL, CUDA, HIP). The
potential energy of the first configuration must be that of the Reference platform, which each run computes too, and for
the box of water the known one. The total energy must be conserved.

CPU, Reference and OpenCL (PoCL) are verified; CUDA and HIP were not run here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from seatrial.applications import amber_water
from seatrial.applications.amber import CELLS, JAC, JAC_CASE, START_K, WATER, atoms_bound, energy_bound, files_of
from seatrial.applications.running.copies import problem
from seatrial.applications.running.interpreter import read_result
from seatrial.benchmarks.figures import between, duration, exactly, rate
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.given_input import CASE, FOLDER, NONE, OWN
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.benchmark.python_script import AUTO, PythonScript
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

SCRIPT = Path(__file__).with_name("openmm_run.py")
RUN = "run"
_OUTPUT = "result.json"
_TIMESTEP_FS = 2.0
_PRECISIONS = {"Reference": ("fp64",), "CPU": ("fp32",)}
_OF_DEVICES = ("mixed", "fp32", "fp64")
_WORDS = {"single": "fp32", "mixed": "mixed", "double": "fp64"}
_MOST_ERROR = 2e-4
"""Of the potential energy, relative. CPU: 1e-6; OpenCL in fp32: 1.5e-5."""
_MOST_CHANGE = 0.005
"""Of the total energy, as a share of the kinetic one. CPU: 0.0002 to 0.0009."""
_COLDEST_K, _HOTTEST_K = 150.0, 600.0
_S_PER_ATOM_STEP = {"Reference": 1e-4, "CPU": 3e-6}
_START_S = 4.0


def read_run(data: bytes) -> ProgramRecord:
    """What the script wrote; not `ended` if it wrote nothing. Raises ProtocolError for other content."""
    return read_result("OpenMM", data, _record)


def _record(found: dict[str, Any]) -> ProgramRecord:
    before, after = found["total_energy"]
    kinetic, reference = found["kinetic_energy"], found["reference_energy"]
    properties: Mapping[str, str] = found["properties"]
    platform = found["platform"]
    precision = _WORDS.get(properties.get("Precision", ""), _PRECISIONS.get(platform, ("",))[0])
    checks = {
        "atoms": float(found["atoms"]),
        "energy": _finite(3.0 * found["start_energy"] / found["atoms"]),
        "energy_error": _finite(abs(found["start_energy"] / reference - 1.0)) if reference else None,
        "energy_change": _finite(abs(after - before) / kinetic) if kinetic else None,
        "temperature_K": _finite(found["temperature_K"]),
        "threads": float(properties.get("Threads", 1)),
        "precision": float(_OF_DEVICES.index(precision)) if precision in _OF_DEVICES else None,
    }
    notes = {"version": found["version"], "platform": platform, "properties": dict(properties)}
    sample = Sample(RUN, 0, found["elapsed_s"], {"steps": float(found["steps"])})
    return ProgramRecord(samples=(sample,), checks=checks, notes=notes, ended=True)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _prepare(machine: Machine, params: Params) -> Params:
    platform = str(params["platform"])
    offered = _PRECISIONS.get(platform, _OF_DEVICES)
    precision = offered[0] if params["precision"] == AUTO else params["precision"]
    if precision not in offered:
        raise Skip(f"the platform {platform} computes in {offered[0]} only")
    if params[CASE] != WATER and params[FOLDER] == NONE:
        where = f" with {', '.join(JAC_CASE.files)} (from {JAC_CASE.source})" if params[CASE] == JAC else ""
        raise Skip(f"the input is not given: set {FOLDER} to the folder{where}")
    threads = thread_count(machine, params["threads"]) if platform == "CPU" else 1
    if platform != "CPU" and params["threads"] not in ("all", 1):
        raise Skip(f"the platform {platform} has no threads to set")
    return {**params, "precision": precision, "threads": threads}


def _inputs(params: Params) -> dict[str, bytes]:
    if params[CASE] != WATER:
        return {}
    cells = whole(params["cells"])
    return {amber_water.TOPOLOGY: amber_water.topology(cells), amber_water.COORDINATES: amber_water.coordinates(cells)}


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    folder = None if params[CASE] == WATER else Path(str(params[FOLDER])).absolute()
    files = [name if folder is None else str(folder / name) for name in files_of(params)]
    chosen = (params[name] for name in ("platform", "precision", "threads", "steps"))
    return [
        str(SCRIPT),
        _OUTPUT,
        *files,
        *map(str, chosen),
        str(_TIMESTEP_FS),
        str(START_K.get(str(params[CASE]), 300.0)),
    ]


def _precision(params: Params) -> float:
    return float(_OF_DEVICES.index(str(params["precision"])))


def _ns_per_day(params: Params, steps_per_s: float) -> str:
    return f"{steps_per_s * _TIMESTEP_FS * 86400e-6:.4g} ns/day"


def _estimate_s(params: Params) -> float:
    atoms = {WATER: amber_water.ATOMS_OF_A_CELL * whole(params["cells"]) ** 3}.get(str(params[CASE]), JAC_CASE.atoms)
    rate = _S_PER_ATOM_STEP.get(str(params["platform"]), 1e-5)
    return _START_S + rate * (atoms or 0) * (whole(params["steps"]) + 50) / whole(params["threads"])


BENCHMARK = problem(
    PythonScript(
        name="OpenMM",
        install="install OpenMM (python -m pip install openmm) into a Python on PATH, or set "
        "environment.python to its path",
        output=_OUTPUT,
        arguments=_arguments,
        parse=read_run,
        version=(),
        inputs=_inputs,
        variables=lambda params: {"OPENMM_CPU_THREADS": None},
        module="openmm",
        package="openmm",
        parts=(SCRIPT,),
    ),
    name="apps.openmm",
    question="How fast does OpenMM simulate a box of water?",
    parameters=(
        Parameter.choice(
            CASE,
            WATER,
            f"the input; {WATER}: made here; {JAC}: {JAC_CASE.what}, from {JAC_CASE.source}; {OWN}: the files prmtop "
            "and inpcrd of AMBER",
            (WATER, JAC, OWN),
        ),
        Parameter.text(FOLDER, NONE, "the folder with the files of the input", (NONE,)),
        CELLS,
        Parameter.integer("steps", 500, "time steps of 2 fs, after 50 unmeasured ones", minimum=20),
        Parameter.choice("platform", "CPU", "what OpenMM computes with", ("CPU", "Reference", "OpenCL", "CUDA", "HIP")),
        Parameter.choice(
            "precision",
            AUTO,
            "of the forces; auto: fp32 on CPUs, fp64 on Reference, mixed on devices",
            (AUTO, *_OF_DEVICES),
        ),
        Parameter.integer("threads", "all", "threads of the platform CPU", minimum=1),
    ),
    figures=(
        rate("step_rate", "op/s", "time steps of 2 fs", "steps", series=RUN, customary=_ns_per_day),
        duration("step", "one time step of 2 fs", "steps", series=RUN),
    ),
    checks=(
        Check("threads", "threads, as OpenMM reports", exactly(lambda params: float(whole(params["threads"])))),
        Check("precision", "precision, as OpenMM reports (0 mixed, 1 fp32, 2 fp64)", exactly(_precision)),
        Check("atoms", "atoms, as OpenMM reports", atoms_bound),
        Check("energy", "potential energy at the start, in kcal/mol for three atoms", energy_bound),
        Check(
            "energy_error",
            "difference of that energy from the Reference platform's, relative",
            between(0.0, _MOST_ERROR),
        ),
        Check("energy_change", "change of the total energy, as a share of the kinetic one", between(0.0, _MOST_CHANGE)),
        Check(
            "temperature_K",
            "temperature at the end",
            lambda machine, params: (_COLDEST_K, _HOTTEST_K) if params[CASE] != OWN else (0.0, inf),
        ),
    ),
    placement=lambda machine, params: spread(machine, whole(params["threads"])),
    prepare=_prepare,
    ranks="one",
    estimate_s=_estimate_s,
)
