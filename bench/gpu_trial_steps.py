"""The steps of a GPU trial, and what is kept of them (see gpu_trial.py)."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from common import live_machine, machine_provenance, today
from gpu_levels import LEVELS, RIVALS, Level
from one_point import measure_point, prepare_point

from seatrial.benchmarks import registry
from seatrial.benchmarks.gpu.device import VERIFIED
from seatrial.engine import repeat
from seatrial.engine.ready import Ready
from seatrial.environments.build import build
from seatrial.environments.chosen import Environments
from seatrial.environments.mpi import find_mpis
from seatrial.environments.mpi_wheels import install_wheel
from seatrial.errors import SeatrialError
from seatrial.model.benchmark.benchmark import Benchmark, Native
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.store.folder import ResultsFolder

_LONGEST_S = 60.0
"""A step that takes longer has probably hung: the others are worth more."""
_SHORT_S = 0.02
_SMALL = {
    "size": "1",
    "largest_B": "1MiB",
    "copy_B": "64KiB",
    "size_B": "64KiB",
    "grid": "16",
    "steps": "2",
    "n": "1024",
}
"""For correctness: of each parameter that a benchmark has."""
_CODE = ("precision", "library", "algorithm", "payload", "mode", "host", "panel")
"""Parameters whose values select other code."""
_LARGE = {
    "gpu.linpack": ({"n": "32768"}, {"n": "32768", "library": "vendor"}, {"n": "32768", "precision": "mixed"}),
    "gpu.cg": ({},),
    "gpu.gemm-split": ({}, {"library": "vendor"}),
    "gpu.gemm-blocked": ({}, {"library": "vendor"}),
}
_VENDOR = tuple({"library": "vendor", "size": "large", "precision": each} for each in ("fp64", "tf32", "bf16", "fp16"))


class Step(NamedTuple):
    """One experiment. `small`: few samples are enough, since only its checks are asked for. `level`: the goal that its
    figure is for."""

    group: str
    benchmark: Benchmark
    settings: Mapping[str, str]
    small: bool = False
    level: str = ""

    @property
    def name(self) -> str:
        """Such as: "correct gpu.scan precision=fp64"."""
        return " ".join((self.group, self.benchmark.name, *(f"{key}={value}" for key, value in self.settings.items())))


def of_devices() -> dict[str, Benchmark]:
    """All benchmarks of devices."""
    return {
        name: one
        for name, one in registry().items()
        if isinstance(one.program, Native) and one.program.library == "gpu"
    }


def steps(backend: str) -> Iterator[Step]:
    """All steps in order of worth."""
    own = of_devices()
    for one in own.values():
        for settings in _small_settings(one):
            yield Step("correct", one, {"backend": backend, **settings}, small=True)
    staged = {"ranks": "2", "library": "mpi", "buffers": "staged", "largest_B": "64KiB"}
    yield Step("correct", own["gpu.collective"], {"backend": backend, **staged}, small=True)
    for name, level in LEVELS.items():
        yield Step("rates", own[level.benchmark], {"backend": backend, **level.settings}, level=name)
    for settings in _VENDOR:
        yield Step("rates", own["gpu.gemm"], {"backend": backend, **settings})
    for name, several in _LARGE.items():
        for settings in several if name in own else ():
            yield Step("solvers", own[name], {"backend": backend, **settings})
    yield Step("nccl", own["gpu.collective"], {"backend": backend, "ranks": "1", "largest_B": "256MiB"})


def _small_settings(benchmark: Benchmark) -> Iterator[dict[str, str]]:
    """Each value of what selects other code, with the defaults of the others; the smallest size."""
    parameters = {parameter.name: parameter for parameter in benchmark.parameters}
    small = {name: value for name, value in _SMALL.items() if name in parameters}
    if benchmark.name == "gpu.collective":
        small["ranks"] = "1"
    yield small
    for name in _CODE:
        for word in parameters[name].words if name in parameters else ():
            if word not in ("auto", parameters[name].default):
                yield {**small, name: word}


def run(output: Path, backend: str, end_s: float, only: Sequence[str] | None) -> int:
    """Make the steps for which time is left; what each gave is written at once. Returns the exit status."""
    output.mkdir(parents=True, exist_ok=True)
    folder = ResultsFolder.create(output / "records")
    _make_mpi()
    machine = live_machine()
    chosen = [one for one in steps(backend) if not only or {one.group, one.benchmark.name, one.name} & set(only)]
    document: dict[str, Any] = {
        "benchmark": "gpu_trial",
        "provenance": machine_provenance(machine),
        "steps": [],
        "verified": {},
    }
    document["build_s"] = _build(chosen, machine)
    for step in chosen:
        left_s = end_s - time.monotonic()
        if left_s < 5.0:
            document["left_out"] = [one.name for one in chosen[len(document["steps"]) :]]
            break
        repeat._MOST_LIMIT_S = min(_LONGEST_S, left_s)
        made = _made(step, machine, folder)
        document["steps"].append(made)
        document["verified"] = verified(document)
        _keep(document, output)
        print(f"{made['state']:12}{made['seconds']:6.1f} s  {step.name}  {made.get('reason', '')[:200]}", flush=True)
    _keep(document, output)
    print(f"{len(document['verified'])} benchmarks verified; {output / 'trial.json'}")
    return 0 if all(one["state"] in ("ok", "skipped", "unsupported") for one in document["steps"]) else 3


def _make_mpi() -> None:
    """Install the packed MPI if there is no other."""
    if find_mpis() or not os.environ.get("PIP_FIND_LINKS"):
        return
    try:
        install_wheel("mpich")
    except SeatrialError as error:
        print(f"no MPI: {error}")


def _build(chosen: Sequence[Step], machine: Machine) -> float:
    """Build all programs, each on a CPU; the seconds that it took. What cannot be built says so in its step."""
    begin = time.monotonic()
    environments = Environments(machine)

    def of(benchmark: Benchmark) -> None:
        environment = environments.of(EnvironmentChoice(), with_mpi=benchmark.ranks == "mpi")
        if isinstance(benchmark.program, Native) and not isinstance(environment, SeatrialError):
            build(environment, benchmark.program.source)

    programs = {step.benchmark.name: step.benchmark for step in chosen}
    with ThreadPoolExecutor(len(machine.allowed_cpus)) as pool:
        for done in [pool.submit(of, benchmark) for benchmark in programs.values()]:
            if (error := done.exception()) is not None:
                print(f"cannot be built: {error}", flush=True)
    return time.monotonic() - begin


def _made(step: Step, machine: Machine, folder: ResultsFolder) -> dict[str, Any]:
    """What a step gave."""
    begin = time.monotonic()
    made: dict[str, Any] = {"group": step.group, "benchmark": step.benchmark.name, "settings": dict(step.settings)}
    try:
        item = prepare_point(step.benchmark, machine, dict(step.settings))
        if isinstance(item, Ready):
            record = measure_point(item, machine, folder, sample_s=_SHORT_S if step.small else None)
            outcome = record.outcome
            made |= _measured(item, machine, record)
            if step.level:
                made["goal"] = _goal(LEVELS[step.level], made)
        else:
            outcome = item.outcome
        made |= {"state": str(outcome.state), "reason": outcome.reason}
    except Exception as error:  # the chance on a GPU is not spent on one step
        made |= {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
    return {**made, "seconds": time.monotonic() - begin}


def _measured(item: Ready, machine: Machine, record: RepeatRecord) -> dict[str, Any]:
    notes = record.seen.get("notes", {})
    figures = [
        {
            "figure": reading.figure.name,
            "unit": reading.figure.unit,
            "point": dict(reading.point),
            "value": median(reading.values),
            "limit": None if reading.limit is None else reading.limit.value,
        }
        for reading in readings(item.point.benchmark, machine, item.point.parameters, record.samples)
        if reading.values
    ]
    return {
        "parameters": dict(item.point.parameters),
        "devices": notes.get("devices"),
        "library": notes.get("library"),
        "checks": dict(record.checks),
        "figures": figures,
    }


def _goal(level: Level, made: Mapping[str, Any]) -> dict[str, Any]:
    """The ratio to what the figure is compared with, and the least that is aimed for."""
    found = [
        one for one in made["figures"] if one["figure"] == level.figure and level.point.items() <= one["point"].items()
    ]
    if not found:
        return {"against": level.against, "ratio": None, "at_least": level.goal}
    other = found[0]["limit"] if level.against == "limit" else None
    if level.against == "rate":
        other = float(level.rival_figure)
    cub = Path(__file__).resolve().parent.parent / "cub_rates"
    if level.against == "cub" and cub.exists():
        try:
            other = RIVALS["cub"](cub, level.rival_figure)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"CUB's rates cannot be measured: {error}", flush=True)
    ratio = found[0]["value"] / other if other else None
    return {"against": level.against, "other": other, "ratio": ratio, "at_least": level.goal}


def verified(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The benchmarks all of whose steps that ran on GPUs were right, with the device, its driver and the date."""
    found: dict[str, dict[str, str]] = {}
    wrong: set[str] = set()
    for step in document["steps"]:
        if step["state"] not in ("ok", "skipped", "unsupported"):
            wrong.add(step["benchmark"])
        devices = step.get("devices") or []
        if step["state"] == "ok" and devices and not any(device.get("cpu") for device in devices):
            found[step["benchmark"]] = {
                "device": devices[0]["name"],
                "driver": devices[0]["driver"],
                "date": document["provenance"]["date"][:10],
            }
    return {name: one for name, one in found.items() if name not in wrong}


def _keep(document: Mapping[str, Any], output: Path) -> None:
    """Replace the document, and the archive of the records, whole."""
    new = output / "trial.json.new"
    new.write_text(json.dumps({**document, "written": today()}, indent=1) + "\n", encoding="utf-8")
    new.replace(output / "trial.json")
    archive = output / "records.tar.gz.new"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(output / "records", arcname="records")
    archive.replace(output / "records.tar.gz")


def adopt(result: Path) -> int:
    """Merge what a trial verified into the table that `list` reads."""
    document = json.loads(result.read_text(encoding="utf-8"))
    own = json.loads(VERIFIED.read_text(encoding="utf-8"))
    own |= document["verified"]
    VERIFIED.write_text(json.dumps(dict(sorted(own.items())), indent=1) + "\n", encoding="utf-8")
    print(f"{len(document['verified'])} benchmarks in {VERIFIED.name}")
    return 0
