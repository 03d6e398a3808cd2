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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from seatrial.engine.durations import Durations, learn
from seatrial.engine.group import Group, Member, Recorded, can_take_turns
from seatrial.engine.host_lock import ClaimWait, HostLock
from seatrial.engine.listener import Listener
from seatrial.engine.lock_file import Holder, Told
from seatrial.engine.node_settings import NodeSettings
from seatrial.engine.policy import ComparedBlocks, Policy, RunningGroup, progress_of
from seatrial.engine.pool import Clock
from seatrial.engine.probing import Probes, probes_of
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import make_repeat, make_together, recover_repeat, time_limit_s
from seatrial.environments.compiler import variables_with
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.plan.points import Point
from seatrial.probes.system import performance_variables
from seatrial.store.claim import Claim, abandoned, claim_next, claimed_elsewhere, settle
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import RecordHead, read_heads
from seatrial.store.writers import RecordWatch, RecordWriter

_GIVE_WAY_S = 0.1
_random = random.SystemRandom()


class StudyWork(Frozen):
    """Groups of experiments and the policy that decides when they have enough repeats. `study`: the study's name."""

    groups: tuple[tuple[Ready, ...], ...]
    policy: Policy
    study: str = ""


def run_work(
    work: Sequence[StudyWork],
    machine: Machine,
    folder: ResultsFolder,
    listener: Listener,
    *,
    again: bool = False,
    keep: bool = False,
    lock: HostLock | None = None,
    clock: Clock | None = None,
) -> frozenset[str]:
    """Run the missing repeats, and note how long they take on this machine. Returns the ids of the experiments that got
    any.

    Experiments that the records show to be finished are skipped, unless `again`. Holds the host lock while it measures,
    and waits for it as `lock` says; if nothing is missing, it is not taken. `clock` does not count the waits. Other
    processes may work on the same folder: each repeat is made once, and an experiment that another process is measuring
    is left to it. Raises StoreError if a record cannot be written, BusyError if the wait for the lock is over;
    KeyboardInterrupt propagates, with all finished repeats kept.
    """
    host = platform.node()
    machine_key = machine_identity(machine)[:16]
    writer = RecordWriter(folder, host)
    made = _Run(machine, folder, listener, host, writer, keep, clock or Clock(), Durations.of(machine_key))
    try:
        return made.run(work, lock or HostLock(), again=again)
    finally:
        writer.close()
        if took := made.took():
            learn(machine_key, took)


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
    clock: Clock
    durations: Durations
    order: int = 0
    rounds: int = 0
    entries: Sequence[RunningGroup] = ()
    watch: RecordWatch = field(init=False)
    numbers: dict[str, set[int]] = field(default_factory=dict)
    """Experiment -> its recorded repeats; two groups may have the same experiment."""
    beside: Callable[[], Sequence[Holder]] = tuple
    settings: NodeSettings = field(default_factory=NodeSettings)
    probes: Probes = field(default_factory=Probes)

    def run(self, work: Sequence[StudyWork], lock: HostLock, *, again: bool) -> frozenset[str]:
        self.watch = RecordWatch(self.folder, own=self.writer.path.name)
        known = read_heads(
            self.folder, {ready.experiment.id for item in work for group in item.groups for ready in group}
        )
        self.entries = [
            self._resume(group, item, known, again=again) for item in work for group in item.groups if len(group)
        ]
        for entry in self.entries:
            if not entry.group.is_finished:
                entry.policy.begins(entry.group)
        waiting = ClaimWait(lock.wait_s, self.listener)
        while self._affordable():
            if hosts := self._left_to_others():
                with self.clock.waiting():
                    waiting.again(hosts)
                self._refresh()
                continue
            waiting.over()
            with ExitStack() as holding:
                with self.clock.waiting():
                    held = holding.enter_context(lock.held(self.listener.waits_for, self._told))
                self.beside = held.beside
                holding.callback(self.settings.close)
                self._refresh()  # what others recorded during the wait
                points = [member.ready.point for entry in self._affordable() for member in entry.group.members]
                self.probes = holding.enter_context(probes_of(points, self.machine))
                self._rounds()
            lock = replace(lock, quiet_s=None)  # it was waited for once
            time.sleep(_random.uniform(0.0, _GIVE_WAY_S) if self._affordable() else 0.0)
        return frozenset(member.ready.experiment.id for member in self._measured())

    def _told(self) -> Told:
        """For processes that wait for this one."""
        return Told(str(self.folder.path.absolute()), progress_of(self.entries).remaining_s)

    def _measured(self) -> list[Member]:
        """The members that got a repeat."""
        return [member for entry in self.entries for member in entry.group.members if member.made]

    def took(self) -> list[tuple[Point, float]]:
        """The mean time of the new repeats of each experiment, in seconds."""
        new = [(member.ready.point, member.ok_repeats[-member.made :]) for member in self._measured()]
        return [(point, sum(repeat.wall_s for repeat in own) / len(own)) for point, own in new if own]

    def _affordable(self) -> list[RunningGroup]:
        """The groups that need another block. Those without time for it are finished."""
        for entry in self.entries:
            if not entry.group.is_finished and not entry.policy.affords(entry.group):
                entry.group.is_finished = True
        return [entry for entry in self.entries if not entry.group.is_finished]

    def _rounds(self) -> None:
        """Rounds of blocks, until all groups are finished or other processes measure those that are not."""
        made = True
        while made and (waiting := self._affordable()):
            self.rounds += 1
            made = False
            for entry in random.sample(waiting, len(waiting)):
                if not entry.group.is_finished and entry.policy.affords(entry.group):
                    made |= self._block(entry)

    def _left_to_others(self) -> list[str]:
        """The hosts whose processes are measuring all groups that are not finished; [] if one is free."""
        hosts: list[str] = []
        for entry in self._affordable():
            others = self._others(entry)
            if not others:
                return []
            hosts += others
        return sorted(set(hosts))

    def _others(self, entry: RunningGroup) -> list[str]:
        """The hosts whose processes are measuring members of a group. Repeats of a dead process are taken over."""
        for member in entry.group.members:
            self._recover(member)
        return [host for member in entry.group.members for host in self._elsewhere(member.ready.experiment.id).values()]

    def _elsewhere(self, experiment: str) -> dict[int, str]:
        return claimed_elsewhere(self.folder, self.host, experiment, self.numbers[experiment])

    def _refresh(self) -> None:
        """Add what other processes recorded, and check which groups are finished now."""
        fresh = self.watch.new()
        if not fresh:
            return
        by_experiment: dict[str, list[RepeatRecord]] = {}
        for record in fresh:
            by_experiment.setdefault(record.experiment, []).append(record)
        for entry in self.entries:
            has_more = False
            for member in entry.group.members:
                for record in by_experiment.get(member.ready.experiment.id, ()):
                    if record.repeat not in member.taken:
                        self._add(member, record, entry.policy, entry.study, entry.again)
                        has_more = True
            if has_more and not entry.group.is_finished:
                entry.update()

    def _resume(
        self, group: Sequence[Ready], work: StudyWork, known: Mapping[str, Sequence[RecordHead]], *, again: bool
    ) -> RunningGroup:
        """A group with its recorded repeats, finished if they suffice. A member whose latest repeat is not ok is tried
        again."""
        members = [self._recall(ready, known.get(ready.experiment.id, ()), work, again) for ready in group]
        entry = RunningGroup(Group(members), work.policy, work.study, again)
        if again:
            for member in members:
                member.left_out = len(member.ok_repeats)
        elif all(member.latest is not None and member.latest.outcome.is_ok for member in members):
            entry.update()
        return entry

    def _recall(self, ready: Ready, records: Sequence[RecordHead], work: StudyWork, again: bool) -> Member:
        """An experiment with its recorded repeats, and those that a killed run finished but did not record."""
        member = Member(ready, ready.machine or self.machine, expected_s=self.durations.repeat_s(ready.point))
        self.numbers.setdefault(ready.experiment.id, set())
        for record in records:
            self._add(member, record, work.policy, work.study, again)
        self._recover(member)
        return member

    def _add(self, member: Member, record: Recorded, policy: Policy, study: str, again: bool) -> None:
        """Add a recorded repeat of an earlier or another process."""
        member.add(record)
        self.numbers[record.experiment].add(record.repeat)
        if study and not again and record.seen.get("study") == study:
            policy.made_before(record)

    def _recover(self, member: Member) -> None:
        """Record the repeats of killed processes whose programs finished."""
        ready = member.ready
        claims = abandoned(self.folder, self.host, ready.experiment.id)
        if not claims:
            return
        self._refresh()  # their processes may have recorded them, and so may others that recovered them
        known = {head.repeat: head for head in read_heads(self.folder, {ready.experiment.id})[ready.experiment.id]}
        for left in claims:
            recorded = known.get(left.repeat)
            if recorded is None:
                recovered = recover_repeat(ready, ready.machine or self.machine, left, self.writer, keep=self.keep)
                if recovered is None:
                    left.release()
                else:
                    member.add(recovered)
                    self.numbers[recovered.experiment].add(recovered.repeat)
            elif recorded.outcome.is_ok and not self.keep:
                left.release()
            else:
                settle(left)

    def _block(self, entry: RunningGroup) -> bool:
        """One repeat of each member, in random order; compared members run concurrently if they can. False if another
        process is measuring one of them, or has made what was missing."""
        block = f"{self.writer.path.stem}:{self.rounds}"
        alive = entry.group.alive
        drawn = random.sample(alive, len(alive))
        claims = self._claim_block(entry, drawn, block)
        if claims is None:
            return False
        try:
            if isinstance(entry.policy, ComparedBlocks) and not entry.group.runs_separately and can_take_turns(drawn):
                if self._repeats(drawn, entry, claims):
                    return True
                entry.group.runs_separately = True
                claims = self._claim_block(entry, drawn, block)  # their folders hold what the failed run left
                if claims is None:
                    return False
            for member in drawn:
                self._repeats([member], entry, claims)
            return True
        finally:
            entry.update()
            _release(claims or {})  # those of repeats that were not made

    def _claim_block(self, entry: RunningGroup, members: Sequence[Member], block: str) -> dict[str, Claim] | None:
        """Claim a repeat of each of these members; None if another process is measuring one of the group, or has made
        what was missing."""
        if self._others(entry):
            return None
        claims: dict[str, Claim] = {}
        limit_s = sum(time_limit_s(member.ready) for member in members)
        try:
            for member in sorted(members, key=lambda member: member.ready.experiment.id):  # every process in this order
                key = member.ready.experiment.id
                noted = self._notes(entry, member, block, limit_s)
                claims[key] = claim_next(self.folder, self.host, key, partial(self._taken, key), noted)
                # Of those that claim at the same time, the one with the lowest number stays.
                if (
                    entry.group.is_finished
                    or min(self._elsewhere(key), default=claims[key].repeat) < claims[key].repeat
                ):
                    _release(claims)
                    return None
        except BaseException:
            _release(claims)
            raise
        return claims

    def _taken(self, experiment: str) -> set[int]:
        self._refresh()
        return self.numbers[experiment]

    def _repeats(self, members: Sequence[Member], entry: RunningGroup, claims: dict[str, Claim]) -> bool:
        """One concurrent repeat of each of these members; False if that failed and they must run separately. The claims
        end."""
        mine: list[Claim] = []
        for member in members:
            noted: dict[str, Any] = {"order": self.order + len(mine), "t0": time.time()}
            if len(members) > 1:
                noted["together"] = len(members)
            if passed := self.beside():
                noted["beside"] = [f"user {holder.user}, pid {holder.pid or 'unknown'}" for holder in passed]
            key = member.ready.experiment.id
            claims[key] = claims[key].noting(noted)
            mine.append(claims[key])
            self.listener.repeat_starts(member.ready.point, mine[-1].repeat, progress_of(self.entries))
        try:
            records = self._make([member.ready for member in members], mine)
        except (KeyboardInterrupt, SystemExit):
            for claimed in mine:
                claimed.release()
            raise
        finally:  # after any other error the next run recovers what its program finished
            for claimed in mine:
                del claims[claimed.experiment]
        if not records:
            for claimed in mine:
                claimed.release()
            return False
        self.order += len(records)
        for member, record in zip(members, records, strict=True):
            member.add(record)
            self.numbers[record.experiment].add(record.repeat)
            member.made += 1
            member.has_failed = not record.outcome.is_ok
            entry.policy.made(member, record.wall_s)
            self.listener.repeat_done(member.ready.point, record.outcome)
        return True

    def _make(self, experiments: Sequence[Ready], claims: Sequence[Claim]) -> list[RepeatRecord]:
        writer, keep, settings = self.writer, self.keep, self.settings
        if len(claims) == 1:
            (only,) = experiments
            machine = only.machine or self.machine
            return [make_repeat(only, machine, claims[0], writer, keep=keep, settings=settings, probes=self.probes)]
        claimed = list(zip(experiments, claims, strict=True))
        return make_together(claimed, self.machine, writer, keep=keep, settings=settings, probes=self.probes)

    def _notes(self, entry: RunningGroup, member: Member, block: str, limit_s: float) -> dict[str, Any]:
        """The notes of a claim; `limit_s` is the longest time until it ends."""
        noted: dict[str, Any] = {
            "order": self.order,
            "block": block,
            "t0": time.time(),
            "limit_s": limit_s,
            "budget_s": entry.policy.budget_s,
            "maximum": entry.policy.most_repeats,
            "variables": performance_variables(variables_with(member.ready.variables)),
        }
        if entry.study:
            noted["study"] = entry.study
            if outside_s := entry.policy.outside_s:
                noted["outside_s"] = outside_s
        if entry.again:
            noted["again"] = self.writer.path.stem  # more time after a stop: the next stop has less error left to spend
        return noted


def _release(claims: Mapping[str, Claim]) -> None:
    for claimed in claims.values():
        claimed.release()
