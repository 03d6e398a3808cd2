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
from dataclasses import dataclass, field, replace

from seatrial.engine.events import Listener, Progress
from seatrial.engine.host_lock import only_lab_on_this_host
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

_FigureKey = tuple[object, ...]


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

    An experiment that its records show to be finished is left alone, unless `again`. Waits while another lab measures
    on this host. Raises StoreError where a record cannot be written; KeyboardInterrupt passes through with all finished
    repeats kept.
    """
    adopt_orphans()
    host = platform.node()
    writer = RecordWriter(folder, host)
    try:
        with only_lab_on_this_host(listener.waits_for):
            return _Run(machine, folder, rule, listener, host, writer, keep).run(experiments, again=again)
    finally:
        writer.close()


@dataclass(frozen=True, slots=True)
class _OkRepeat:
    """What the stopping rule needs of an ok repeat."""

    t0: float
    wall_s: float
    values: dict[_FigureKey, float]


@dataclass(slots=True)
class _Open:
    """An experiment under way. Of its ok repeats, in order of time, the first `left_out` do not count for the rule."""

    ready: Ready
    machine: Machine
    rule: StoppingRule
    ok_repeats: list[_OkRepeat] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    left_out: int = 0
    made: int = 0
    is_finished: bool = False

    def add(self, record: RepeatRecord) -> None:
        """Count a record in."""
        self.taken.add(record.repeat)
        if record.outcome.is_ok:
            point = self.ready.point
            found = readings(point.benchmark, self.machine, point.parameters, record.samples)
            values: dict[_FigureKey, float] = {(r.figure.name, point_key(r.point)): r.value for r in found}
            self.ok_repeats.append(_OkRepeat(record.t0, record.wall_s, values))
            self.ok_repeats.sort(key=lambda repeat: repeat.t0)

    def resume(self, latest: RepeatRecord | None, *, again: bool) -> None:
        """Whether the records alone show it to be finished: by the budget under which they were made, since a finished
        experiment is not run again because more time is offered. One whose latest repeat is not ok gets a new try."""
        if again:
            self.left_out = len(self.ok_repeats)
        elif latest is not None and latest.outcome.is_ok:
            made_under = replace(self.rule, budget_s=float(latest.seen.get("budget_s", self.rule.budget_s)))
            self.decide(made_under)

    def decide(self, rule: StoppingRule) -> None:
        """Ask a rule whether it is finished."""
        counted = self.ok_repeats[self.left_out :]
        keys = counted[0].values.keys() if counted else ()
        figures = [[repeat.values[key] for repeat in counted if key in repeat.values] for key in keys]
        spent_s = sum(repeat.wall_s for repeat in counted)
        self.is_finished = rule.decide(figures, spent_s, self.next_s()) is not None

    def next_s(self) -> float:
        """The expected time of the next repeat."""
        if not self.ok_repeats:
            return self.ready.point.estimate_s or 0.0
        return sum(repeat.wall_s for repeat in self.ok_repeats) / len(self.ok_repeats)

    def remaining_s(self) -> float:
        """At most what it still takes: up to the budget, and up to the least number of repeats."""
        counted = self.ok_repeats[self.left_out :]
        least_s = max(0, MINIMUM_REPEATS - len(counted)) * self.next_s()
        return max(least_s, self.rule.budget_s - sum(repeat.wall_s for repeat in counted))


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
    order: int = 0

    def run(self, experiments: Sequence[Ready], *, again: bool) -> frozenset[str]:
        known = read_contents(self.folder).records
        everything = [self._resume(item, known.get(item.experiment.id, ()), again=again) for item in experiments]
        while waiting := [entry for entry in everything if not entry.is_finished]:
            for entry in random.sample(waiting, len(waiting)):
                self._repeat(entry, everything)
        return frozenset(entry.ready.experiment.id for entry in everything if entry.made)

    def _resume(self, ready: Ready, records: Sequence[RepeatRecord], *, again: bool) -> _Open:
        """What the records hold of an experiment, and what a killed run finished without recording it."""
        everything = list(records)
        entry = _Open(ready, self.machine, self.rule)
        for record in records:
            entry.add(record)
        for left in abandoned(self.folder, self.host, ready.experiment.id):
            recorded = next((record for record in records if record.repeat == left.repeat), None)
            if recorded is None:
                recovered = recover_repeat(ready, self.machine, left, self.writer, keep=self.keep)
                if recovered is None:
                    left.release()
                else:
                    entry.add(recovered)
                    everything.append(recovered)
            elif recorded.outcome.is_ok and not self.keep:
                left.release()
            else:
                settle(left)
        entry.resume(max(everything, key=lambda record: record.t0, default=None), again=again)
        return entry

    def _repeat(self, entry: _Open, everything: Sequence[_Open]) -> None:
        ready = entry.ready
        number = max(entry.taken, default=-1) + 1
        noted = {
            "order": self.order,
            "t0": time.time(),
            "budget_s": self.rule.budget_s,
            "variables": performance_variables(os.environ),
        }
        while (claimed := claim(self.folder, self.host, ready.experiment.id, number, noted)) is None:
            number += 1
        try:
            self.listener.repeat_starts(ready.point, number, _progress(everything))
            record = make_repeat(ready, self.machine, claimed, self.writer, keep=self.keep)
        except (KeyboardInterrupt, SystemExit):
            claimed.release()
            raise
        self.order += 1
        entry.add(record)
        entry.made += 1
        if record.outcome.is_ok:
            entry.decide(self.rule)
        else:
            entry.is_finished = True
        self.listener.repeat_done(ready.point, record.outcome)


def _progress(everything: Sequence[_Open]) -> Progress:
    still_open = [entry for entry in everything if not entry.is_finished]
    return Progress(len(still_open), len(everything), sum(entry.remaining_s() for entry in still_open))
