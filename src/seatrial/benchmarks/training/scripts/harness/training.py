"""A training run, whatever the framework: the order of its steps, and what is seen of them.

A framework's script derives from `Training` and fills in how one of its steps is made, how its device is waited for,
and how its state is saved. Attributes that it sets: `parameters` (their number), `seen` (its settings, as the framework
reports them), `fingerprint` and `fingerprint_s`, and `data`, whose `digests` are hashes of items that were used.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.process import Process, peak_memory_B
from harness.record import Record
from harness.report import write_found
from harness.steps import warm_up

POOL = 8
"""Batches of made-up data, in turn."""
MOMENTUM = 0.9
_LOCAL_STEPS = 6
_SEEN = (
    *(
        "fingerprint",
        "first_digests",
        "start_s",
        "first_s",
        "warm_s",
        "total_s",
        "steps_s",
        "waits_s",
        "local_s",
        "made",
    ),
    *("gradient_error", "loss_values", "device_B", "saved_s", "saved_B", "was_steady"),
)


class Training:
    """One process of a run; the methods without a device, and for one process, are those of a run on a CPU."""

    def __init__(self, settings: Mapping[str, Any], process: Process) -> None:
        self.settings, self.process, self.document = settings, process, settings["network"]
        self.losses: list = []
        self.wait_s: list = []
        self.seen: dict = {}
        self.parameters = 0
        self.fingerprint, self.fingerprint_s = "", 0.0
        self.data: Any = None
        self.made: list = []
        self.all: Any = None  # the processes of a framework that has a class for them
        """Of each batch of the measured steps that is read from storage: how long making it took, and its CPU time."""

    def step(self, *, is_local: bool = False) -> None:
        """One training step: append its loss to `losses`, and how long it waited for data to `wait_s`. `is_local`:
        without the exchange of gradients; nothing is updated or appended to `losses` then."""
        raise NotImplementedError

    def value(self, loss: Any) -> float:
        """The number that is one of `losses`."""
        return float(loss)

    def save(self, path: Path) -> None:
        """Write a checkpoint that is safe on storage."""
        raise NotImplementedError

    def result(self) -> str:
        """The loss of one batch, the same for all processes, with the parameters as they are now."""
        raise NotImplementedError

    def waited_for(self) -> float:
        """The time, once the device has done what it was asked for."""
        return time.perf_counter()

    def agreed(self, answer: bool) -> bool:
        """The answer of the first process, for all."""
        return answer if self.all is None else self.all.of_the_first(answer)

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.all is not None:
            self.all.barrier()

    def gathered_from_all(self, own: dict) -> list:
        """What each process saw, at the first one."""
        return [own] if self.all is None else self.all.gathered(own)

    def saves(self) -> bool:
        """Whether this process writes a part of the checkpoint."""
        return self.process.number == 0

    def reset_device_memory(self) -> None:
        """Forget the largest allocation so far, if the device counts it."""

    def device_memory_B(self) -> int:
        """The largest allocation on the device."""
        return 0

    def gradients_apart(self) -> float:
        """The relative difference between the gradients in use and the mean of those that each process computes by
        itself. Only asked for if there are several."""
        raise NotImplementedError

    def each_step(self, steps: int, *, is_local: bool) -> list:
        """Make the steps; the time of each."""
        marks = [self.waited_for()]
        for _ in range(steps):
            self.step(is_local=is_local)
            marks.append(self.waited_for())
        return [end - start for start, end in pairwise(marks)]

    def timed_step(self) -> float:
        """One step, until the device has done it."""
        begun = self.waited_for()
        self.step()
        return self.waited_for() - begun

    def block(self, steps: int, *, is_local: bool = False) -> tuple:
        """The time of this many steps, that of each, and the time that each waited for data."""
        self.barrier()
        self.wait_s = []
        begun = self.waited_for()
        each = self.each_step(steps, is_local=is_local)
        return self.waited_for() - begun, each, list(self.wait_s)

    def measure(self, begun: float) -> None:
        """All steps, in their order: the first, warm-up, the measured block, and what the checks need."""
        settings = self.settings
        self.start_s = time.perf_counter() - begun - self.fingerprint_s
        self.first_s = self.timed_step()
        self.warm_s, self.was_steady = warm_up(self.timed_step, settings["warmup"], self.agreed)
        self.reset_device_memory()
        self.began_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        made = getattr(self.data, "made", [])
        before = len(made)
        self.total_s, self.steps_s, self.waits_s = self.block(settings["steps"])
        self.made = made[before:]
        self.ended_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.device_B = self.device_memory_B()
        self.local_s = self.block(_LOCAL_STEPS, is_local=True)[1] if self.process.count > 1 else []
        self.gradient_error = self.gradients_apart() if self.process.count > 1 else 0.0
        while len(self.losses) < settings["task_steps"]:
            self.step()
        self.loss_values = [self.value(one) for one in self.losses]
        self.first_digests = self.data.digests()
        self.data = None  # ends the processes that read
        self.saved_s, self.saved_B = self._checkpoint() if settings["checkpoint"] else (0.0, 0)

    def _checkpoint(self) -> tuple:
        """How long training stands still for a checkpoint that is safe on storage, and its size."""
        self.barrier()
        begun = self.waited_for()
        path = Path(f"checkpoint-{self.process.number}")
        if self.saves():
            self.save(path)
        self.barrier()
        elapsed_s = time.perf_counter() - begun
        size = path.stat().st_size if path.exists() else 0
        path.unlink(missing_ok=True)
        return elapsed_s, size

    def gathered(self, is_bound: bool, data: Mapping[str, Any] | None = None) -> list:
        """What each process saw, at the first one; no meaning at the others. `data`: what is known of its data set."""
        own = {name: getattr(self, name) for name in _SEEN}
        own.update(
            is_bound=is_bound,
            data=data or {},
            cpus=sorted(os.sched_getaffinity(0)),
            result=self.result() if self.process.count > 1 else "",
            host=platform.node(),
            memory_B=peak_memory_B(),
        )
        return self.gathered_from_all(own)

    def report(self, found: list, output: str, name: str, version: str, device: str = "") -> None:
        """Write what all processes saw; `name` and `version` are those of the framework."""
        record = Record(self.settings["program"], [cpu for one in found for cpu in one["cpus"]], self.process.count)
        write_found(record, found, self.settings)
        record.check("parameters", self.parameters)
        record.note("framework", {"name": name, "version": version, **self.seen})
        record.note("sampled", [self.began_s, self.ended_s])
        if device:
            record.note("device", device)
        record.write(output)


def on_storage(file: Any) -> None:
    """Wait until what was written to this file is on storage."""
    file.flush()
    os.fsync(file.fileno())


def data_seed(settings: Mapping[str, Any], process: Process) -> int:
    """The seed of the first batch of a process; each of its batches takes the next one."""
    return 1000 * (int(settings["seed"]) + 1) + 100_000 * process.number


def write_skip(settings: Mapping[str, Any], process: Process, output: str, reason: str, need: str = "") -> None:
    """Write that nothing can be measured here, by the first process."""
    if process.number == 0:
        record = Record(settings["program"], [], process.count)
        record.skip(reason, need)
        record.write(output)
