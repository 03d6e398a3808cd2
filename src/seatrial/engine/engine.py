"""The engine: blocks of repeats in random order until every experiment has enough, with everything kept as it comes.

A round takes the open groups in random order and makes one repeat of each member of a group, in random order (a
randomised complete block design): a drift of the machine falls on all alike, and what is compared is measured side by
side, in turns of some milliseconds where its programs can. A member leaves when a repeat of it does not succeed, a
group when its policy says so.
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
from seatrial.engine.host_lock import only_lab_on_this_host
from seatrial.engine.policy import Alone, Compared, Policy
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import make_repeat, make_together, recover_repeat
from seatrial.environments.variables import variables_with
from seatrial.launch.local import adopt_orphans
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
    """Groups of experiments with what decides when they have enough. `study` names the study that they are of."""

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
    """Make the repeats that are missing of experiments that stand alone; see `run_work`."""
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
    """Make the repeats that are missing; the ids of the experiments for which any was made.

    What its records show to be finished is left alone, unless `again`. Waits while another lab measures on this host.
    Raises StoreError where a record cannot be written; KeyboardInterrupt passes through with all finished repeats kept.
    """
    adopt_orphans()
    host = platform.node()
    writer = RecordWriter(folder, host)
    try:
        with only_lab_on_this_host(listener.waits_for):
            return _Run(machine, folder, listener, host, writer, keep).run(work, again=again)
    finally:
        writer.close()


@dataclass(slots=True)
class _Entry:
    """A group under way."""

    group: Group
    policy: Policy
    study: str
    again: bool

    def look(self) -> None:
        """See whether it is finished: it has enough, or no member is left."""
        self.group.is_finished = not self.group.alive or self.policy.has_enough(self.group)


@dataclass(slots=True)
class _Run:
    """What one run of the engine shares. `order` counts its repeats, `rounds` the rounds it has begun; what is made in
    one round carries one name, so that any two experiments of it can be paired."""

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
                    entry.look()
                else:
                    entry.group.is_finished = True
        return frozenset(
            member.ready.experiment.id for entry in entries for member in entry.group.members if member.made
        )

    def _resume(
        self, group: Sequence[Ready], work: Work, known: Mapping[str, Sequence[RepeatRecord]], *, again: bool
    ) -> _Entry:
        """What the records hold of a group, and whether they alone show it to be finished. A member whose latest repeat
        is not ok gets a new try."""
        members = [self._recall(ready, known.get(ready.experiment.id, ()), work, again) for ready in group]
        entry = _Entry(Group(members), work.policy, work.study, again)
        if again:
            for member in members:
                member.left_out = len(member.ok_repeats)
        elif all(member.latest is not None and member.latest.outcome.is_ok for member in members):
            entry.look()
        return entry

    def _recall(self, ready: Ready, records: Sequence[RepeatRecord], work: Work, again: bool) -> Member:
        """What the records hold of an experiment, and what a killed run finished without recording it."""
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
        """One repeat of each member, in random order; of members that are compared at the same time, where they can."""
        block = f"{self.writer.path.stem}:{self.rounds}"
        alive = entry.group.alive
        drawn = random.sample(alive, len(alive))
        if isinstance(entry.policy, Compared) and not entry.group.goes_apart and can_take_turns(drawn):
            if self._repeats(drawn, entry, block, entries):
                return
            entry.group.goes_apart = True
        for member in drawn:
            self._repeats([member], entry, block, entries)

    def _repeats(self, members: Sequence[Member], entry: _Entry, block: str, entries: Sequence[_Entry]) -> bool:
        """One repeat of each of these members, made at the same time; False where they had better be made apart."""
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
        """Claim the member's next repeat that nobody has."""
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
            noted["again"] = self.writer.path.stem  # more time after an end: the next end has less error to spend
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
