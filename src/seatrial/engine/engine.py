"""The engine: blocks of repeats in random order until every experiment has enough, with everything kept as it comes.

A block makes one repeat of each open experiment in random order (a randomised complete block), so that a drift of the
machine falls on all alike. An experiment leaves when the stopping rule says so or when a repeat does not come out ok.
"""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from seatrial.engine.events import Listener, Progress
from seatrial.engine.prepare import Ready
from seatrial.engine.repeat import make_repeat, recover_repeat
from seatrial.launch.local import adopt_orphans
from seatrial.model.machine import Machine
from seatrial.model.reading import readings
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import point_key
from seatrial.probes.variables import performance_variables
from seatrial.stats.stopping import MINIMUM_REPEATS, StoppingRule
from seatrial.store.claim import abandoned, claim, settle
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter


@dataclass(slots=True)
class _Open:
    """An experiment under way, with its repeats so far. Only repeats from `first` on count for the stopping rule."""

    ready: Ready
    records: list[RepeatRecord]
    taken: set[int]
    first: int = 0
    made: int = 0
    values: dict[tuple[object, ...], list[float]] = field(default_factory=dict)

    def add(self, record: RepeatRecord, machine: Machine) -> None:
        """Count a record in."""
        self.records.append(record)
        self.taken.add(record.repeat)
        if record.outcome.is_ok:
            point = self.ready.point
            for reading in readings(point.benchmark, machine, point.parameters, record.samples):
                key = (reading.figure.name, point_key(reading.point))
                self.values.setdefault(key, []).append(reading.value)

    def counted(self) -> list[RepeatRecord]:
        """The ok repeats that the rule looks at."""
        return [record for record in self.records if record.outcome.is_ok][self.first :]

    def next_s(self) -> float:
        """The expected time of the next repeat."""
        times = [record.wall_s for record in self.records if record.outcome.is_ok]
        return sum(times) / len(times) if times else self.ready.point.estimate_s

    def is_finished(self, rule: StoppingRule) -> bool:
        """Whether the rule asks for no more, or the last repeat forbids it."""
        if self.made and not self.records[-1].outcome.is_ok:
            return True
        figures = [values[self.first :] for values in self.values.values()]
        spent_s = sum(record.wall_s for record in self.counted())
        return rule.decide(figures, spent_s, self.next_s()) is not None

    def remaining_s(self, rule: StoppingRule) -> float:
        """A guess at the time it still takes: up to the budget, and at least up to the least number of repeats."""
        counted = self.counted()
        least = max(0, MINIMUM_REPEATS - len(counted)) * self.next_s()
        return max(least, rule.budget_s - sum(record.wall_s for record in counted))


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
    """Make the repeats that are missing; the ids of the experiments for which any was made.

    An experiment that its records show to be finished is left alone, unless `again`. Raises StoreError where a record
    cannot be written; KeyboardInterrupt passes through with all finished repeats kept.
    """
    adopt_orphans()
    host = platform.node()
    writer = RecordWriter(folder, host)
    try:
        return _Run(machine, folder, rule, listener, host, writer, keep).run(experiments, again=again)
    finally:
        writer.close()


@dataclass(slots=True)
class _Run:
    """What one run of the engine shares."""

    machine: Machine
    folder: ResultsFolder
    rule: StoppingRule
    listener: Listener
    host: str
    writer: RecordWriter
    keep: bool
    started: float = field(default_factory=time.perf_counter)
    order: int = 0

    def run(self, experiments: Sequence[Ready], *, again: bool) -> frozenset[str]:
        known = read_contents(self.folder).records
        everything = [self._resume(item, known.get(item.experiment.id, ())) for item in experiments]
        for entry in everything:
            entry.first = len(entry.counted()) if again else 0
        waiting = [entry for entry in everything if not entry.is_finished(self.rule)]
        while waiting:
            for entry in random.sample(waiting, len(waiting)):
                self._repeat(entry, waiting, len(everything))
            waiting = [entry for entry in waiting if not entry.is_finished(self.rule)]
        return frozenset(entry.ready.experiment.id for entry in everything if entry.made)

    def _resume(self, ready: Ready, records: Sequence[RepeatRecord]) -> _Open:
        """What the records hold of an experiment, and what a killed run finished without recording it."""
        entry = _Open(ready, [], set())
        for record in records:
            entry.add(record, self.machine)
        for left in abandoned(self.folder, self.host, ready.experiment.id):
            if left.repeat in entry.taken:
                recorded = next(record for record in records if record.repeat == left.repeat)
                if recorded.outcome.is_ok and not self.keep:
                    left.release()
                else:
                    settle(left)
                continue
            recovered = recover_repeat(ready, self.machine, left, self.writer, keep=self.keep)
            if recovered is None:
                left.release()
            else:
                entry.add(recovered, self.machine)
        return entry

    def _repeat(self, entry: _Open, waiting: Sequence[_Open], total: int) -> None:
        ready = entry.ready
        number = max(entry.taken, default=-1) + 1
        noted = {"order": self.order, "t0": time.time(), "variables": performance_variables(os.environ)}
        while (claimed := claim(self.folder, self.host, ready.experiment.id, number, noted)) is None:
            number += 1
        try:
            self.listener.repeat_starts(ready.point, number, self._progress(waiting, total))
            record = make_repeat(ready, self.machine, claimed, self.writer, keep=self.keep)
        except KeyboardInterrupt:
            claimed.release()
            raise
        self.order += 1
        entry.add(record, self.machine)
        entry.made += 1
        self.listener.repeat_done(ready.point, number, record.outcome, self._progress(waiting, total))

    def _progress(self, waiting: Sequence[_Open], total: int) -> Progress:
        still_open = [entry for entry in waiting if not entry.is_finished(self.rule)]
        return Progress(
            done_repeats=self.order,
            open_experiments=len(still_open),
            experiments=total,
            elapsed_s=time.perf_counter() - self.started,
            remaining_s=sum(entry.remaining_s(self.rule) for entry in still_open),
        )
