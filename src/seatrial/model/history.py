"""The history of a figure on one host: its sessions over time, and the changes between them."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.benchmark import Better
from seatrial.model.difference import Difference
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


class Session(Frozen):
    """The repeats that one process recorded. `at` is the start of the first one in seconds since the epoch; `median` is
    over its repeats, in the unit of the figure."""

    at: float
    median: float
    n_repeats: int


class Change(Frozen):
    """A change of level between two sessions: the last one before it and the first one after it, the medians of the
    sessions on both sides up to the next changes, and what else was recorded to differ between the two sides."""

    index: int
    last_before: float
    first_after: float
    before: float
    after: float
    sureness: float
    differences: tuple[Difference, ...]

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after / self.before if self.before else float("inf")


class FigureHistory(Frozen):
    """One figure with its parameters on one host. `why_not` states why no change could be found; "" if one could."""

    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    host: str
    unit: Unit
    better: Better
    sessions: tuple[Session, ...]
    changes: tuple[Change, ...]
    why_not: str = ""
