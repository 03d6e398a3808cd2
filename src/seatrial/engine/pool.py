"""The time of a whole command, which it must keep, and the time that experiments share: what of it is kept for those
that have too few repeats yet. All in seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec import Struct

from seatrial.engine.group import Group, Recorded

_NOT_TIMED_S = 1.0
"""The start of the interpreter and the output of the results, which the command cannot time itself."""


@dataclass(slots=True)
class Clock:
    """Seconds since it was made, and a second for what comes before and after; without the time that the command waited
    for others."""

    _began_s: float = field(default_factory=lambda: time.monotonic() - _NOT_TIMED_S)
    _waited_s: float = 0.0

    def elapsed_s(self) -> float:
        """The time so far, in seconds."""
        return time.monotonic() - self._began_s - self._waited_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The time inside does not count."""
        since_s = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - since_s


TOLERANCE = 0.05
"""A group that has begun is not left out because its last repeats would end this share of the budget late."""


@dataclass(slots=True)
class Pool:
    """`total_s` is for all repeats together; with a `clock` also for everything else that the command does, such as
    builds. `keeps_minimum`: whatever is begun gets its minimum, and `may_leave_out`: groups for whose minimum there is
    no time are left out, the last first."""

    total_s: float
    charged_s: float = 0.0
    clock: Clock | None = field(default=None, kw_only=True)
    keeps_minimum: bool = field(default=True, kw_only=True)
    may_leave_out: bool = field(default=True, kw_only=True)
    _own_s: float = 0.0
    _outside_before: dict[str, float] = field(default_factory=dict)
    _short: dict[int, _Short] = field(default_factory=dict)
    _needed_s: float = 0.0
    _left_out: dict[int, _Short] = field(default_factory=dict)

    @property
    def left_out(self) -> list[Group]:
        """The groups that were left out."""
        return [short.group for short in self._left_out.values()]

    @property
    def spent_s(self) -> float:
        """The time so far, also of earlier processes that worked on the same."""
        return self.charged_s + self.outside_s + sum(self._outside_before.values())

    @property
    def outside_s(self) -> float:
        """The time that this process spent on other things than repeats; 0 if only repeats count."""
        return 0.0 if self.clock is None else max(0.0, self.clock.elapsed_s() - self._own_s)

    @property
    def left_s(self) -> float:
        """The rest, at least 0."""
        return max(0.0, self.total_s - self.spent_s)

    @property
    def needed_s(self) -> float:
        """What the missing repeats of those that get their minimum in any case take."""
        return self._needed_s

    def made(self, wall_s: float) -> None:
        """Charge a repeat of this process."""
        self.charged_s += wall_s
        self._own_s += wall_s

    def made_before(self, record: Recorded) -> None:
        """Charge a repeat of another process, or of an earlier run."""
        self.charged_s += record.wall_s
        outside_s, block = record.seen.get("outside_s"), record.seen.get("block")
        if outside_s is not None and block is not None:
            process = block.rpartition(":")[0]
            self._outside_before[process] = max(self._outside_before.get(process, 0.0), outside_s)

    def keep_for(self, group: Group, minimum: int) -> None:
        """Keep time for the missing repeats of a group up to the minimum. Groups come in the order of importance."""
        if self.clock is not None and self.keeps_minimum:
            self._short[id(group)] = _Short(group, minimum, len(self._short))
            self.update(group)

    def update(self, group: Group) -> None:
        """Its repeats, or their times, have changed."""
        short = self._short.get(id(group))
        if short is None:
            return
        self._needed_s -= short.needed_s
        short.needed_s = 0.0 if group.is_finished else max(0, short.minimum - group.repeats) * group.next_s
        self._needed_s += short.needed_s
        if short.needed_s == 0.0:
            del self._short[id(group)]
            self._take_back()

    def affords(self, group: Group) -> bool:
        """Whether there is time for another block of a group.

        The first one runs if any time is left, since its duration is only a guess. If the minimum is kept, only time
        that nobody needs for that is used for more.
        """
        if self.clock is None or not self.keeps_minimum:
            if not any(member.made or member.counted for member in group.members):
                return self.spent_s < self.total_s
            return self.spent_s + group.next_s <= self.total_s
        self._leave_out()
        if id(group) in self._left_out:
            return False
        if id(group) not in self._short:
            self._take_back()
        return id(group) in self._short or self.spent_s + group.next_s + self._needed_s <= self.total_s

    def _leave_out(self) -> None:
        most_s = self.total_s * (1.0 + TOLERANCE)
        while self.may_leave_out and self._short and self.spent_s + self._needed_s > most_s:
            key, short = self._short.popitem()  # the last that was added
            self._needed_s -= short.needed_s
            self._left_out[key] = short

    def _take_back(self) -> None:
        """Times are estimates: a group that was left out may fit after all, the most important first."""
        for key, short in sorted(self._left_out.items(), key=lambda entry: entry[1].rank):
            if self.spent_s + self._needed_s + short.needed_s > self.total_s:
                continue
            short.group.is_finished = False
            self._short[key] = self._left_out.pop(key)
            self._needed_s += short.needed_s


class _Short(Struct):
    """A group with too few repeats, and the time that the missing ones take, in seconds. `rank`: 0 is the most
    important."""

    group: Group
    minimum: int
    rank: int
    needed_s: float = 0.0
