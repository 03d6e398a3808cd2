"""One experiment, prepared and measured once, for scripts and tests that choose the order and number of repeats
themselves."""

from __future__ import annotations

import dataclasses
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from seatrial.benchmarks import benchmark_named
from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import prepare
from seatrial.engine.ready import Ready, Refused, Runnable
from seatrial.engine.repeat import make_repeat
from seatrial.engine.trial import environments_of, keep_facts
from seatrial.environments.build import Environment
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.plan.points import Settings, plan_points, values_of
from seatrial.store.claim import claim_next
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads
from seatrial.store.writers import RecordWatch, RecordWriter


def prepare_point(
    benchmark: str | Benchmark,
    machine: Machine,
    set: Settings | None = None,
    environment: Environment | BuildError | None = None,
) -> Ready | Refused:
    """One experiment with its program built, or why it cannot run here.

    A declaration replaces the benchmark of its name. The program is built in `environment`, by default the one that
    `set` chooses. Raises UsageError if the settings do not give exactly one experiment.
    """
    declared = benchmark_named(benchmark) if isinstance(benchmark, str) else benchmark
    points = plan_points([declared.name], values_of(set or {}), machine)
    if len(points) != 1:
        raise UsageError(
            f"these settings give {len(points)} experiments of {declared.name}", "give each parameter one value"
        )
    point = replace(points[0], benchmark=declared)
    environments = Environments(machine) if environment is None else Environments.always(environment)
    (item,) = prepare([point], environments, machine_identity(machine)[:16], Listener())
    return item


def measure_point(
    ready: Ready, machine: Machine, folder: ResultsFolder | None = None, *, sample_s: float | None = None
) -> RepeatRecord:
    """Make and check one repeat; its record with all samples, for any outcome.

    It is recorded in the folder; without a folder nothing is kept. `sample_s` replaces the time that the benchmark
    declares for sampling. Raises StoreError.
    """
    with _folder(folder) as kept:
        keep_point(ready, machine, kept)
        host, key, watch = platform.node(), ready.experiment.id, RecordWatch(kept)
        known = {head.repeat for head in read_heads(kept, {key})[key]}
        writer = RecordWriter(kept, host)
        try:
            claimed = claim_next(kept, host, key, lambda: watch.numbers(key, known), {"order": 0, "t0": time.time()})
            asked = ready if sample_s is None else replace(ready, program=_sampling_for(ready.program, sample_s))
            return make_repeat(asked, machine, claimed, writer, keep=False)
        finally:
            writer.close()


def keep_point(ready: Ready, machine: Machine, folder: ResultsFolder) -> None:
    """Store the machine, environment and experiment that the records refer to. Raises StoreError."""
    keep_facts(folder, machine, ready.experiment.machine, environments_of([ready]), [ready])


def _sampling_for(program: Runnable, seconds: float) -> Runnable:
    """The same program with this sampling time, if it has `--slice` among its arguments, or is for devices; it takes a
    few samples in any case."""
    if not isinstance(program, NativeProgram):
        return program
    own, is_for_devices = program.declared.arguments, program.declared.library == "gpu"

    def arguments(params: Params) -> list[str]:
        words = list(own(params))
        if "--slice" in words:
            words[words.index("--slice") + 1] = str(seconds)
        return [*words, "--slice", str(seconds)] if is_for_devices and "--slice" not in words else words

    return dataclasses.replace(program, declared=replace(program.declared, arguments=arguments))


@contextmanager
def _folder(folder: ResultsFolder | None) -> Iterator[ResultsFolder]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="seatrial-") as where:
        yield ResultsFolder.create(Path(where) / "results")
