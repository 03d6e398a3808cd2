"""Runs one experiment through the real engine, from a source that may have been tampered with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from one_point import keep_point, measure_point, prepare_point

from seatrial.engine.engine import StudyWork, run_work
from seatrial.engine.listener import Listener
from seatrial.engine.policy import Alone
from seatrial.engine.ready import Ready
from seatrial.environments import build as builds
from seatrial.environments.build import Environment
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import Benchmark, Native
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.plan.points import Setting
from seatrial.stats.interval import StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

FEW_SAMPLES_S = 0.01


def run_experiments(
    experiments: Sequence[Ready],
    machine: Machine,
    folder: ResultsFolder,
    rule: StoppingRule,
    listener: Listener,
    *,
    again: bool = False,
    keep: bool = False,
) -> frozenset[str]:
    """Run the missing repeats of independent experiments; see `run_work`."""
    work = StudyWork(tuple((ready,) for ready in experiments), Alone(rule))
    return run_work([work], machine, folder, listener, again=again, keep=keep)


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
    embedded = re.findall(r'^SEATRIAL_EMBEDDED_TEXT\(\w+, "([^"]+)"\)', source.read_text(), re.MULTILINE)
    kernels = [benchmark.program.source.with_name(name) for name in embedded]
    beside = [source, *(Path(shutil.copy(path, folder)) for path in kernels if path.exists())]
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
    return replace(benchmark.program, source=source)


def make_ready(
    benchmark: Benchmark,
    machine: Machine,
    folder: ResultsFolder,
    environment: Environment | BuildError | None = None,
    mpi: str | None = None,
    **settings: Setting,
) -> Ready:
    """One point of a benchmark, built and known to the folder; of many ranks with that MPI (None: the first)."""
    chosen = settings if mpi is None else {**settings, "environment.mpi": mpi}
    ready = prepare_point(benchmark, machine, chosen, environment)
    assert isinstance(ready, Ready), ready.outcome
    keep_point(ready, machine, folder)
    return ready


def run_one(ready: Ready, machine: Machine, folder: ResultsFolder, *, has_few_samples: bool = True) -> RepeatRecord:
    """The record of one repeat, judged: for tests of whether a result is right. Few samples are enough, unless a check
    counts those that were taken beside other work. One whose ranks were late, or whose clock was read
    while it had no CPU, as on a busy machine, is made again."""
    for _ in range(3):
        record = measure_point(ready, machine, folder, sample_s=FEW_SAMPLES_S if has_few_samples else None)
        if record.outcome.check not in ("overrun_share", "limit"):
            break
    return record


def in_python(path: str) -> dict[str, Setting]:
    """The setting that selects an interpreter."""
    return {"environment.python": path}


def run_once(ready: Ready, machine: Machine, folder: ResultsFolder) -> RepeatRecord:
    """The last record after a run with the least number of repeats."""
    run_experiments([ready], machine, folder, StoppingRule(budget_s=0.0), Listener())
    return read_contents(folder).records[ready.experiment.id][-1]
