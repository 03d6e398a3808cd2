"""When a group has enough repeats, each experiment on its own budget or a whole study on one; groups in progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engine.group import FigureKey, Group, Member, Recorded, blocks_of, paired, paired_steps
from seatrial.engine.listener import Progress
from seatrial.engine.pool import Pool
from seatrial.model.benchmark.benchmark import Better
from seatrial.stats.interval import MINIMUM_REPEATS, StoppingRule
from seatrial.stats.sequential import LOOKS, Pairs, Steps, are_decided_now


class Policy(Protocol):
    """Asked before each block whether the budget allows it, and after each whether the group has enough."""

    @property
    def budget_s(self) -> float:
        """The time budget in seconds, which is noted in the records."""

    @property
    def most_repeats(self) -> int:
        """The maximum number of repeats, which is noted in the records."""

    @property
    def budget_source(self) -> object:
        """The object that the time is charged to; the policies of a study share one."""
        return self

    def has_enough(self, group: Group) -> bool:
        """Whether the records show that the group is finished."""

    @property
    def outside_s(self) -> float:
        """The time that this process spent on other things than repeats, in seconds, if the budget includes it; else
        0."""
        return 0.0

    def begins(self, group: Group) -> None:
        """A group takes part, with what is recorded of it; groups come in the order of importance."""
        return None

    def affords(self, group: Group) -> bool:
        """Whether there is time for another block."""
        return True

    def made(self, member: Member, wall_s: float) -> None:
        """A repeat was made, and took `wall_s` seconds."""
        return None

    def made_before(self, record: Recorded) -> None:
        """Another process made a repeat of the same study, or an earlier run."""
        return None

    def changed(self, group: Group) -> None:
        """A group has more repeats, or is finished."""
        return None

    def remaining_s(self, groups: list[Group]) -> float:
        """An upper bound of the time that these groups still take, in seconds."""


@dataclass(slots=True)
class Alone(Policy):
    """Each experiment has its own budget, for its repeats only, and always gets the minimum number of repeats. Members
    keep their own times, and the rule checks the budget."""

    rule: StoppingRule

    @property
    def budget_s(self) -> float:
        """The budget of one experiment."""
        return self.rule.budget_s

    @property
    def most_repeats(self) -> int:
        """The maximum of the rule."""
        return self.rule.maximum

    def has_enough(self, group: Group) -> bool:
        """Whether the rule stops every member. More time does not reopen a finished experiment: a member without new
        repeats is judged by the budget in its records."""
        return all(self._has_enough(member) for member in group.alive)

    def _has_enough(self, member: Member) -> bool:
        budget_s = self.rule.budget_s
        if not member.made and member.latest is not None:
            budget_s = budget_s if member.latest.budget_s is None else member.latest.budget_s
        return _stops(replace(self.rule, budget_s=budget_s), member, member.spent_s, member.next_s)

    def remaining_s(self, groups: list[Group]) -> float:
        """The rest of each budget, or the time of the minimum number of repeats if that is more."""
        return sum(self._remaining_s(member) for group in groups for member in group.alive)

    def _remaining_s(self, member: Member) -> float:
        least_s = max(0, self.rule.minimum - len(member.counted)) * member.next_s
        return max(least_s, self.rule.budget_s - member.spent_s)


@dataclass(slots=True)
class Pooled(Policy):
    """Experiments of a study without comparisons: repeated until each is precise, on one budget. The contenders of a
    sweep get at least the `minimum` that a test against the winner needs."""

    pool: Pool
    precision: float
    maximum: int
    minimum: int = field(default=MINIMUM_REPEATS, kw_only=True)

    @property
    def budget_s(self) -> float:
        """The budget of the study."""
        return self.pool.total_s

    @property
    def most_repeats(self) -> int:
        """The maximum of the study."""
        return self.maximum

    @property
    def budget_source(self) -> object:
        """The time of the study."""
        return self.pool

    def has_enough(self, group: Group) -> bool:
        """Whether every member is precise with the minimum number of repeats, or has the maximum number."""
        rule = StoppingRule(self.precision, float("inf"), self.maximum, min(self.minimum, self.maximum))
        return all(_stops(rule, member, 0.0, 0.0) for member in group.alive)

    @property
    def outside_s(self) -> float:
        """What the pool charges for other things than repeats."""
        return self.pool.outside_s

    def begins(self, group: Group) -> None:
        """Keep time for its minimum."""
        self.pool.keep_for(group, min(self.minimum, self.maximum))

    def affords(self, group: Group) -> bool:
        """Whether the pool has time for another block."""
        return self.pool.affords(group)

    def made(self, member: Member, wall_s: float) -> None:
        """Charge it to the budget."""
        self.pool.made(wall_s)

    def made_before(self, record: Recorded) -> None:
        """Charge it to the budget."""
        self.pool.made_before(record)

    def changed(self, group: Group) -> None:
        """Keep time for what is missing now."""
        self.pool.update(group)

    def remaining_s(self, groups: list[Group]) -> float:
        """The rest of the budget, or the time of the missing repeats of those that get their minimum if that is
        more."""
        return max(self.pool.left_s, self.pool.needed_s) if groups else 0.0


@dataclass(slots=True)
class Shared(Pooled):
    """Independent experiments on one budget, which is noted as equal shares. More time does not reopen an experiment
    that an earlier run gave its minimum."""

    shares: int = field(default=1, kw_only=True)

    @property
    def budget_s(self) -> float:
        """The share of one experiment."""
        return self.pool.total_s / self.shares

    def has_enough(self, group: Group) -> bool:
        """Whether every member is precise, or has the maximum number of repeats, or is finished from an earlier run."""
        earlier = all(not member.made and len(member.counted) >= self.minimum for member in group.alive)
        # Zero-argument super() does not work in a dataclass with slots before Python 3.14.
        return earlier or Pooled.has_enough(self, group)


@dataclass(slots=True)
class ComparedBlocks(Pooled):
    """Groups whose members are compared with the first: repeated until every comparison is decided, on one budget.

    `family` is the number of comparisons of one figure at one of its points in the whole study; `figures` are those
    that must be decided (empty: all except secondary ones). `equivalence`: the margin is one of equivalence.
    """

    margin: float = 0.02
    family: int = 1
    figures: frozenset[str] = field(default_factory=frozenset)
    equivalence: bool = False

    def has_enough(self, group: Group) -> bool:
        """Whether a planned look decided every comparison, or the maximum number of repeats is reached.

        If one side failed there is nothing to compare: the rest is measured until it is precise.
        """
        baseline, candidates = group.members[0], [member for member in group.members[1:] if not member.has_failed]
        if baseline.has_failed or not candidates:
            # Zero-argument super() does not work in a dataclass with slots before Python 3.14.
            return Pooled.has_enough(self, group)
        if group.repeats >= self.maximum:
            return True
        return all(self._is_decided(baseline, candidate) for candidate in candidates)

    def _is_decided(self, baseline: Member, candidate: Member) -> bool:
        if len(blocks_of(baseline, candidate)) not in LOOKS:
            return False  # no look is due; figures are not read for nothing
        keys = [key for key in baseline.counted[0].figures.values if self._decides(baseline, key)]
        curves: dict[str, list[FigureKey]] = {}
        for key in keys:
            curves.setdefault(key[0], []).append(key)
        benchmark = baseline.ready.point.benchmark
        return bool(keys) and all(
            self._is_conclusive(
                [paired(baseline, candidate, key) for key in own],
                [paired_steps(baseline, candidate, key) for key in own],
                benchmark.figure(name).better,
            )
            for name, own in curves.items()
        )

    def _decides(self, baseline: Member, key: FigureKey) -> bool:
        return key[0] in self.figures if self.figures else not baseline.is_secondary(key)

    def _is_conclusive(self, points: Sequence[Pairs], steps: Sequence[Steps], better: Better) -> bool:
        """Whether a planned look decides at every point of a curve; without positive values there is no ratio, and no
        decision."""
        if not all(value > 0 for pairs in points for pair in pairs for value in pair):
            return False
        family = self.family * len(points)
        return are_decided_now(
            points, self.margin, better is Better.HIGHER, family, steps, equivalence=self.equivalence
        )


def _stops(rule: StoppingRule, member: Member, spent_s: float, next_s: float) -> bool:
    """Whether the rule stops an experiment."""
    figures = list(member.figures().values())
    return rule.decide(figures, spent_s, next_s, n=len(member.counted) if figures else 0) is not None


class RunningGroup(Struct):
    """A group in progress."""

    group: Group
    policy: Policy
    study: str
    again: bool

    def update(self) -> None:
        """Check whether it is finished: it has enough repeats, or no member is left."""
        self.group.is_finished = not self.group.alive or self.policy.has_enough(self.group)
        self.policy.changed(self.group)


def progress_of(entries: Sequence[RunningGroup]) -> Progress:
    """The progress of all groups together."""
    still_open = [entry for entry in entries if not entry.group.is_finished]
    policies = {id(entry.policy.budget_source): entry.policy for entry in still_open}
    remaining_s = sum(
        policy.remaining_s([entry.group for entry in still_open if entry.policy.budget_source is policy.budget_source])
        for policy in policies.values()
    )
    members = sum(len(entry.group.members) for entry in entries)
    return Progress(sum(len(entry.group.alive) for entry in still_open), members, remaining_s)
