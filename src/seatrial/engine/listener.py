"""The events that the engine reports: progress, and what fits into a budget, never results."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.lock_file import Holder
from seatrial.engine.ready import Ready, Refused
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import KeptStudy
from seatrial.plan.points import Point
from seatrial.probes.quiet import Quiet


class PreparedItem(Frozen):
    """Points of one entry, the repeats that each needs at least, and the time for these and missing builds, in
    seconds."""

    points: tuple[Point, ...]
    minimum: int
    least_s: float


class BudgetFit(Frozen):
    """What fits into a budget, in the order of importance. All times are in seconds and estimated.

    `needed_s` is what the fitting ones take, from the start of the command, with the minimum of repeats; `all_s` what
    everything would, of which `builds_s` are for building programs. `holds`: the budget can be kept; else everything is
    measured with the minimum of repeats.
    """

    budget_s: float
    fitting: tuple[PreparedItem, ...]
    left_out: tuple[PreparedItem, ...]
    needed_s: float
    all_s: float
    builds_s: float = 0.0
    holds: bool = True


class Progress(Frozen):
    """Progress of the whole run; `remaining_s` is an upper bound, which improves with every repeat."""

    open_experiments: int
    experiments: int
    remaining_s: float


class Listener:
    """Watches a run: the engine calls these methods between repeats, never while a program runs. A subclass overrides
    those that it needs."""

    def fitted(self, found: BudgetFit) -> None:
        """What fits into the budget of the command is known; nothing is built or measured yet."""

    def prepared(self, experiments: Sequence[Ready | Refused], study: KeptStudy | None) -> None:
        """The programs are built, and the facts are stored; nothing is measured yet. `study` as it is stored."""

    def looked(self, seen: Quiet) -> None:
        """What else uses this machine, in the first second of a run; nothing is built or measured yet."""

    def waits_for(self, holders: Sequence[Holder]) -> None:
        """Other seatrial processes measure on this host: nothing is started until they end. Called when the wait
        begins, when they change, and once a minute."""

    def waits_for_claims(self, hosts: Sequence[str]) -> None:
        """Processes on these hosts make the repeats that are still needed: waits until these are recorded."""

    def building(self, point: Point) -> None:
        """The program of a point is about to be built."""

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """A repeat is about to start."""

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """A repeat has been recorded."""
