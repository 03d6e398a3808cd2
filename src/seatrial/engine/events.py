"""The events that the engine reports: progress, never results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seatrial.engine.fit import Fit
from seatrial.engine.lock_file import Holder
from seatrial.engine.ready import Ready, Refused
from seatrial.model.frozen import Frozen
from seatrial.model.results.outcome import Outcome
from seatrial.model.study.study import KeptStudy
from seatrial.plan.points import Point


class Progress(Frozen):
    """Progress of the whole run; `remaining_s` is an upper bound, which improves with every repeat."""

    open_experiments: int
    experiments: int
    remaining_s: float


class Listener(Protocol):
    """Watches a run: the engine calls these methods between repeats, never while a program runs. A subclass overrides
    those that it needs."""

    def fitted(self, found: Fit) -> None:
        """What fits into the budget of the command is known; nothing is built or measured yet."""
        return None

    def prepared(self, experiments: Sequence[Ready | Refused], study: KeptStudy | None) -> None:
        """The programs are built, and the facts are stored; nothing is measured yet. `study` as it is stored."""
        return None

    def waits_for(self, holders: Sequence[Holder]) -> None:
        """Other seatrial processes measure on this host: nothing is started until they end. Called when the wait
        begins, when they change, and once a minute."""
        return None

    def waits_for_claims(self, hosts: Sequence[str]) -> None:
        """Processes on these hosts make the repeats that are still needed: waits until these are recorded."""
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
    """A listener that ignores all events."""
