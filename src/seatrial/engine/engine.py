"""The engine: runs blocks of repeats in random order until every experiment has enough, and records each at once.

A round takes the open groups in random order and runs one repeat of each member of a group, in random order (a
randomised complete block design): drift of the machine affects all alike, and experiments to be compared are measured
side by side, in turns of some milliseconds if their programs support it. A member leaves after a repeat that does not
succeed, a group when its policy is satisfied.
"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.engine.events import Listener, Progress
from seatrial.engine.group import Group, Member, can_take_turns
from seatrial.engine.host_lock import exclusive_on_this_host
from seatrial.engine.policy import Alone, Compared, Policy
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import make_repeat, make_together, recover_repeat
from seatrial.environments.variables import variables_with
from seatrial.model.machine import Machine
from seatrial.model.record import RepeatRecord
from seatrial.probes.variables import performance_variables
from seatrial.stats.stopping import StoppingRule
from seatrial.store.claim import Claim, abandoned, claim, settle
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter


@dataclass(frozen=True, slots=True)
class Work:
    """Groups of experiments and the policy that decides when they have enough repeats. `study`: the study's name."""

    groups: tuple[tuple[Ready, ...], ...]
    policy: Policy
    study: str = ""


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
    work = Work(tuple((ready,) for ready in experiments), Alone(rule))
    return run_work([work], machine, folder, listener, again=again, keep=keep)


def run_work(
    work: Sequence[Work],
    machine: Machine,
    folder: ResultsFolder,
    listener: Listener,
    *,
    again: bool = False,
    keep: bool = False,
) -> frozenset[str]:
    """Run the missing repeats. Returns the ids of the experiments that got any.

    Experiments that the records show to be finished are skipped, unless `again`. Waits while another seatrial process
    measures on this host.
    Raises StoreError if a record cannot be written; KeyboardInterrupt propagates, with all finished repeats kept.
    """
    host = platform.node()
    writer = RecordWriter(folder, host)
    try:
        with exclusive_on_this_host(listener.waits_for):
            return _Run(machine, folder, listener, host, writer, keep).run(work, again=again)
    finally:
        writer.close()


@dataclass(slots=True)
class _Entry:
    """A group in progress."""

    group: Group
    policy: Policy
    study: str
    again: bool

    def update(self) -> None:
        """Check whether it is finished: it has enough repeats, or no member is left."""
        self.group.is_finished = not self.group.alive or self.policy.has_enough(self.group)


@dataclass(slots=True)
class _Run:
    """The state of one run of the engine. `order` counts its repeats, `rounds` the rounds started; repeats of one
    round share a block name, so that any two of its experiments can be paired."""

    machine: Machine
    folder: ResultsFolder
    listener: Listener
    host: str
    writer: RecordWriter
    keep: bool
    order: int = 0
    rounds: int = 0

    def run(self, work: Sequence[Work], *, again: bool) -> frozenset[str]:
        known = read_contents(self.folder).records
        entries = [
            self._resume(group, item, known, again=again) for item in work for group in item.groups if len(group)
        ]
        while waiting := [entry for entry in entries if not entry.group.is_finished]:
            self.rounds += 1
            for entry in random.sample(waiting, len(waiting)):
                if entry.policy.affords(entry.group):
                    self._block(entry, entries)
                    entry.update()
                else:
                    entry.group.is_finished = True
        return frozenset(
            member.ready.experiment.id for entry in entries for member in entry.group.members if member.made
        )

    def _resume(
        self, group: Sequence[Ready], work: Work, known: Mapping[str, Sequence[RepeatRecord]], *, again: bool
    ) -> _Entry:
        """A group with its recorded repeats, finished if they suffice. A member whose latest repeat is not ok is tried
        again."""
        members = [self._recall(ready, known.get(ready.experiment.id, ()), work, again) for ready in group]
        entry = _Entry(Group(members), work.policy, work.study, again)
        if again:
            for member in members:
                member.left_out = len(member.ok_repeats)
        elif all(member.latest is not None and member.latest.outcome.is_ok for member in members):
            entry.update()
        return entry

    def _recall(self, ready: Ready, records: Sequence[RepeatRecord], work: Work, again: bool) -> Member:
        """An experiment with its recorded repeats, and those that a killed run finished but did not record."""
        member = Member(ready, self.machine)
        for record in records:
            member.add(record)
            if work.study and not again and record.seen.get("study") == work.study:
                work.policy.made(member, record.wall_s)
        for left in abandoned(self.folder, self.host, ready.experiment.id):
            recorded = next((record for record in records if record.repeat == left.repeat), None)
            if recorded is None:
                recovered = recover_repeat(ready, self.machine, left, self.writer, keep=self.keep)
                if recovered is None:
                    left.release()
                else:
                    member.add(recovered)
            elif recorded.outcome.is_ok and not self.keep:
                left.release()
            else:
                settle(left)
        return member

    def _block(self, entry: _Entry, entries: Sequence[_Entry]) -> None:
        """One repeat of each member, in random order; compared members run concurrently if they can."""
        block = f"{self.writer.path.stem}:{self.rounds}"
        alive = entry.group.alive
        drawn = random.sample(alive, len(alive))
        if isinstance(entry.policy, Compared) and not entry.group.runs_separately and can_take_turns(drawn):
            if self._repeats(drawn, entry, block, entries):
                return
            entry.group.runs_separately = True
        for member in drawn:
            self._repeats([member], entry, block, entries)

    def _repeats(self, members: Sequence[Member], entry: _Entry, block: str, entries: Sequence[_Entry]) -> bool:
        """One concurrent repeat of each of these members; False if that failed and they must run separately."""
        claims: list[Claim] = []
        try:
            for member in members:
                claims.append(self._claim(member, entry, block, self.order + len(claims), len(members)))
                self.listener.repeat_starts(member.ready.point, claims[-1].repeat, _progress(entries))
            records = self._make([member.ready for member in members], claims)
        except (KeyboardInterrupt, SystemExit):
            for claimed in claims:
                claimed.release()
            raise
        if not records:
            for claimed in claims:
                claimed.release()
            return False
        self.order += len(records)
        for member, record in zip(members, records, strict=True):
            member.add(record)
            member.made += 1
            member.has_failed = not record.outcome.is_ok
            entry.policy.made(member, record.wall_s)
            self.listener.repeat_done(member.ready.point, record.outcome)
        return True

    def _make(self, experiments: Sequence[Ready], claims: Sequence[Claim]) -> list[RepeatRecord]:
        if len(claims) == 1:
            return [make_repeat(experiments[0], self.machine, claims[0], self.writer, keep=self.keep)]
        pairs = list(zip(experiments, claims, strict=True))
        return make_together(pairs, self.machine, self.writer, keep=self.keep)

    def _claim(self, member: Member, entry: _Entry, block: str, order: int, together: int) -> Claim:
        """Claim the member's next free repeat."""
        ready = member.ready
        number = max(member.taken, default=-1) + 1
        noted: dict[str, Any] = {
            "order": order,
            "block": block,
            "t0": time.time(),
            "budget_s": entry.policy.budget_s,
            "variables": performance_variables(variables_with(ready.variables)),
        }
        if entry.study:
            noted["study"] = entry.study
        if entry.again:
            noted["again"] = self.writer.path.stem  # more time after a stop: the next stop has less error left to spend
        if together > 1:
            noted["together"] = together
        while (claimed := claim(self.folder, self.host, ready.experiment.id, number, noted)) is None:
            number += 1
        return claimed


def _progress(entries: Sequence[_Entry]) -> Progress:
    still_open = [entry for entry in entries if not entry.group.is_finished]
    policies = {id(entry.policy.budget_source): entry.policy for entry in still_open}
    remaining_s = sum(
        policy.remaining_s([entry.group for entry in still_open if entry.policy.budget_source is policy.budget_source])
        for policy in policies.values()
    )
    members = sum(len(entry.group.members) for entry in entries)
    return Progress(sum(len(entry.group.alive) for entry in still_open), members, remaining_s)
