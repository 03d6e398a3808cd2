"""When a group has enough repeats: each experiment by itself, or all of a study out of one budget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from seatrial.engine.group import Group, Member, paired
from seatrial.model.benchmark import Better
from seatrial.stats.sequential import is_decided_now
from seatrial.stats.stopping import StoppingRule


class Policy(Protocol):
    """What the engine asks: after each block whether a group has enough, before each whether it can be afforded."""

    @property
    def budget_s(self) -> float:
        """The budget under which repeats are made; noted in their records."""

    @property
    def budget_source(self) -> object:
        """What the time is taken from; policies of one study have the same."""

    def has_enough(self, group: Group) -> bool:
        """Whether the records show that the group is finished."""

    def affords(self, group: Group) -> bool:
        """Whether there is time for another block."""

    def made(self, member: Member, wall_s: float) -> None:
        """A repeat was made, and took `wall_s` seconds."""

    def remaining_s(self, groups: list[Group]) -> float:
        """At most what these groups still take, in seconds."""


@dataclass(slots=True)
class Alone:
    """Each experiment has a budget of its own, and makes at least the least number of repeats whatever it is."""

    rule: StoppingRule

    @property
    def budget_s(self) -> float:
        """The budget of one experiment."""
        return self.rule.budget_s

    @property
    def budget_source(self) -> object:
        """Each experiment has its own."""
        return self

    def has_enough(self, group: Group) -> bool:
        """Whether the rule stops every member. A finished experiment is not run again because more time is offered: a
        member with no new repeats is judged by the budget under which its own were made."""
        return all(self._has_enough(member) for member in group.alive)

    def _has_enough(self, member: Member) -> bool:
        budget_s = self.rule.budget_s
        if not member.made and member.latest is not None:
            budget_s = float(member.latest.seen.get("budget_s", budget_s))
        rule = replace(self.rule, budget_s=budget_s)
        return rule.decide(list(member.figures().values()), member.spent_s, member.next_s) is not None

    def affords(self, group: Group) -> bool:
        """Always: the rule says when the budget is spent."""
        return True

    def made(self, member: Member, wall_s: float) -> None:
        """Nothing to count: the members know."""

    def remaining_s(self, groups: list[Group]) -> float:
        """Up to the budget of each, and up to the least number of repeats."""
        return sum(self._remaining_s(member) for group in groups for member in group.alive)

    def _remaining_s(self, member: Member) -> float:
        least_s = max(0, self.rule.minimum - len(member.counted)) * member.next_s
        return max(least_s, self.rule.budget_s - member.spent_s)


@dataclass(slots=True)
class Pool:
    """The time of a whole study, in seconds."""

    total_s: float
    spent_s: float = 0.0


@dataclass(slots=True)
class Pooled:
    """Experiments of a study that are not compared while they run: until each is precise, out of one budget."""

    pool: Pool
    precision: float
    maximum: int

    @property
    def budget_s(self) -> float:
        """The budget of the study."""
        return self.pool.total_s

    @property
    def budget_source(self) -> object:
        """The time of the study."""
        return self.pool

    def has_enough(self, group: Group) -> bool:
        """Whether every member is precise, or has all the repeats that it may have."""
        rule = StoppingRule(self.precision, float("inf"), self.maximum)
        return all(rule.decide(list(member.figures().values()), 0.0, 0.0) is not None for member in group.alive)

    def affords(self, group: Group) -> bool:
        """Whether the study has time for another block; the first is made as long as any time is left, since what it
        takes is only guessed before."""
        if not any(member.made or member.counted for member in group.members):
            return self.pool.spent_s < self.pool.total_s
        return self.pool.spent_s + group.next_s <= self.pool.total_s

    def made(self, member: Member, wall_s: float) -> None:
        """Take it from the budget."""
        self.pool.spent_s += wall_s

    def remaining_s(self, groups: list[Group]) -> float:
        """What the budget still holds."""
        return max(0.0, self.pool.total_s - self.pool.spent_s) if groups else 0.0


@dataclass(slots=True)
class Compared(Pooled):
    """Groups whose members are held against their first: until every comparison is decided, out of one budget.

    `family` is the number of comparisons of one figure at one of its points that the whole study makes; `figures` are
    those that must be decided (empty: all).
    """

    margin: float = 0.02
    family: int = 1
    figures: frozenset[str] = field(default_factory=frozenset)

    def has_enough(self, group: Group) -> bool:
        """Whether a planned look decided every comparison, or all repeats are made that may be.

        Where one side failed there is nothing to compare: what is left is measured until it is precise.
        """
        baseline, candidates = group.members[0], [member for member in group.members[1:] if not member.has_failed]
        if baseline.has_failed or not candidates:
            # Zero-argument super() does not work in a dataclass with slots before Python 3.14.
            return Pooled.has_enough(self, group)
        if group.repeats >= self.maximum:
            return True
        return all(self._is_decided(baseline, candidate) for candidate in candidates)

    def _is_decided(self, baseline: Member, candidate: Member) -> bool:
        keys = [key for key in baseline.figures() if not self.figures or key[0] in self.figures]
        benchmark = baseline.ready.point.benchmark
        points = {name: sum(key[0] == name for key in keys) for name, _ in keys}
        return bool(keys) and all(
            self._has_told(
                paired(baseline, candidate, key), benchmark.figure(key[0]).better, self.family * points[key[0]]
            )
            for key in keys
        )

    def _has_told(self, pairs: list[tuple[float, float]], better: Better, family: int) -> bool:
        """Whether a planned look decides; a value that is not above zero has no ratio, so nothing ever will."""
        if not all(value > 0 for pair in pairs for value in pair):
            return False
        return is_decided_now(pairs, self.margin, higher_is_better=better is Better.HIGHER, family=family)
