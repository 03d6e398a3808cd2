"""Runs one experiment through the real engine, from a source that may have been tampered with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.engine.devices import with_devices
from seatrial.engine.engine import run_experiments
from seatrial.engine.environments import chosen_environment, native_environment
from seatrial.engine.events import Silent
from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import make_repeat
from seatrial.environments import build as builds
from seatrial.environments.build import Environment, build
from seatrial.environments.gpu import find_gpus
from seatrial.environments.native_sources import Unit
from seatrial.model.benchmark import Benchmark, Native
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.experiment import Experiment, content_key
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document
from seatrial.model.record import RepeatRecord
from seatrial.plan.points import plan_points
from seatrial.stats.stopping import StoppingRule
from seatrial.store.claim import claim
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter

FEW_SAMPLES_S = 0.01
STANDARD_HEADERS = (
    *("algorithm", "array", "atomic", "charconv", "chrono", "cmath", "cstdint", "cstdio", "cstdlib", "cstring"),
    *("exception", "functional", "limits", "memory", "mutex", "optional", "random", "ranges", "span", "sstream"),
    *("string", "string_view", "system_error", "thread", "utility", "vector"),
)


def tampered(
    benchmark: Benchmark, folder: Path, edits: Mapping[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Benchmark:
    """The benchmark with a program in which the text of some files (its source or a shared header) was replaced."""
    program = tampered_program(benchmark, folder, {name: [edit] for name, edit in edits.items()}, {}, monkeypatch)
    return replace(benchmark, program=program)


def tampered_program(
    benchmark: Benchmark,
    folder: Path,
    edits: Mapping[str, Sequence[tuple[str, str]]],
    headers: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Native:
    """The program with other texts in some files and these headers, which the edited files include.

    A text that is not there fails the test: a fault that is not planted proves nothing.
    """
    assert isinstance(benchmark.program, Native)
    shared = folder / "native"
    shutil.copytree(builds.NATIVE_HEADERS, shared)
    source = Path(shutil.copy(benchmark.program.source, folder))
    kernels = benchmark.program.source.with_suffix(".cl")
    beside = [source, *([Path(shutil.copy(kernels, folder))] if kernels.exists() else [])]
    for name, text in headers.items():
        (shared / name).write_text(text)
    for name, replaced in edits.items():
        path = next((path for path in beside if path.name == name), shared / name)
        made = path.read_text()
        for text, replacement in replaced:
            assert text in made, f"{name} has no {text!r}: where is the fault to be planted now?"
            made = made.replace(text, replacement, 1)
        path.write_text("".join(f'#include "{header}"\n' for header in headers) + made)
    monkeypatch.setattr(builds, "NATIVE_HEADERS", shared)
    compile_quickly(source, monkeypatch)
    return replace(benchmark.program, source=source)


def compile_quickly(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile this source with -O1, and with GCC the standard library's headers read already: tests of faults do not
    ask how fast it is, nor which header it names. The parts that it shares with other programs keep their flags, since
    most of them are built already."""
    as_usual = builds._Object.of

    def of(environment: Environment, unit: Unit, added: Sequence[str] = (), key: str | None = None) -> builds._Object:
        made = as_usual(environment, unit, added, key)
        if unit.source != source:
            return made
        words = tuple("-O1" if word == "-O3" else word for word in made.command)
        if environment.compiler.family == "gcc":
            flags = words[len(environment.compiler.command) : words.index("-I")]
            header = _precompiled(environment.compiler.command, [flag for flag in flags if not flag.startswith("-D")])
            words = (*words, "-include", str(header))
        return replace(made, command=words)

    monkeypatch.setattr(builds._Object, "of", of)


def _precompiled(compiler: Sequence[str], flags: Sequence[str]) -> Path:
    """A header of the standard library's, as GCC reads it with these flags: made once for all tests."""
    home = builds.cache_folder() / "headers" / content_key([*compiler, *flags])
    header = home / "standard.hpp"
    if not home.exists():
        with builds.private_folder(home) as private:
            if not home.exists():
                text = private / header.name
                text.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS))
                subprocess.run([*compiler, *flags, "-x", "c++-header", text, "-o", f"{text}.gch"], check=True)
                private.rename(home)
    return header


def make_ready(
    benchmark: Benchmark,
    machine: Machine,
    folder: ResultsFolder,
    environment: Environment | None = None,
    mpi: str | None = None,
    **settings: str,
) -> Ready:
    """One point of a benchmark, built and known to the folder; of many ranks with that MPI (None: the first)."""
    if benchmark.ranks == "mpi":
        environment = environment or chosen_environment(EnvironmentChoice(mpi=mpi), machine, with_mpi=True)
    environment = environment or native_environment(machine)
    (point,) = plan_points([benchmark.name], {name: [value] for name, value in settings.items()}, machine)
    point = replace(point, benchmark=benchmark)
    assert point.refusal is None, point.refusal
    built = build(environment, benchmark.program.source)
    if benchmark.program.library == "gpu":
        point, _ = with_devices(point, find_gpus(built.path, dict(os.environ)))
    experiment = Experiment(benchmark.name, point.parameters, environment.key, built.key, "machine")
    folder.put("machines", "known", {"identity": "machine", **machine_document(machine)})
    folder.put("environments", environment.key, environment.document())
    folder.put("experiments", experiment.id, experiment.document())
    variables = environment.variables if environment.mpi is None else environment.mpi.variables
    return Ready(point, experiment, NativeProgram(benchmark.program, built), mpi=environment.mpi, variables=variables)


def run_one(ready: Ready, machine: Machine, folder: ResultsFolder, *, has_few_samples: bool = True) -> RepeatRecord:
    """The record of one repeat, judged: for tests of whether a result is right. Few samples are enough, unless a check
    counts those that were taken beside other work."""
    if has_few_samples:
        ready = replace(ready, program=ready.program.sampling_for(FEW_SAMPLES_S))
    claimed = claim(folder, "host", ready.experiment.id, 0, {"order": 0, "t0": 0.0})
    assert claimed is not None, "an experiment of its own for each call"
    writer = RecordWriter(folder, "host")
    try:
        return make_repeat(ready, machine, claimed, writer, keep=False)
    finally:
        writer.close()


def run_once(ready: Ready, machine: Machine, folder: ResultsFolder) -> RepeatRecord:
    """The last record after a run with the least number of repeats."""
    run_experiments([ready], machine, folder, StoppingRule(budget_s=0.0), Silent())
    return read_contents(folder).records[ready.experiment.id][-1]
