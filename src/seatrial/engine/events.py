"""What the engine tells whoever watches: progress, never results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the whole run stands; `remaining_s` is at most what is left, and gets better with every repeat."""

    open_experiments: int
    experiments: int
    remaining_s: float


class Listener(Protocol):
    """Watches a run: the engine calls these methods between repeats, never while a program runs. A subclass overrides
    those that it needs."""

    def waits_for(self, pid: int | None) -> None:
        """Another lab measures on this host (its process, if known): nothing is started until it ends."""
        return None

    def building(self, point: Point) -> None:
        """The program of a point is about to be built."""
        return None

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """A repeat is about to start."""
        return None

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """A repeat has been recorded."""
        return None


class Silent(Listener):
    """A listener that says nothing."""
