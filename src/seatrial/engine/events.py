"""What the engine tells whoever watches: progress, never results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the whole run stands; `remaining_s` is an estimate that gets better with every repeat."""

    done_repeats: int
    open_experiments: int
    experiments: int
    elapsed_s: float
    remaining_s: float


class Listener(Protocol):
    """What a watcher may implement; the engine calls it between repeats, never inside a timed region."""

    def building(self, point: Point) -> None:
        """The program of a point is about to be built."""

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """A repeat is about to start."""

    def repeat_done(self, point: Point, repeat: int, outcome: Outcome, progress: Progress) -> None:
        """A repeat has been recorded."""


class Silent:
    """A listener that says nothing."""

    def building(self, point: Point) -> None:
        """Nothing."""

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Nothing."""

    def repeat_done(self, point: Point, repeat: int, outcome: Outcome, progress: Progress) -> None:
        """Nothing."""
