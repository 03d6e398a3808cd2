"""What the container of a side changes, and what of it costs: for comparisons of sides in and outside of containers."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from seatrial.model.comparison import Comparison
from seatrial.model.frozen import Frozen

SideName = Literal["baseline", "candidate"]


class ContainerFact(Frozen):
    """One fact of both sides, as text for messages; None: not recorded."""

    name: str
    baseline: str | None
    candidate: str | None

    @property
    def is_unlike(self) -> bool:
        """Whether it is known to differ."""
        return None not in (self.baseline, self.candidate) and self.baseline != self.candidate


class Cost(StrEnum):
    """Why a program is slower in a container."""

    CROSS_MEMORY = "cross-memory-attach-lost"
    """Ranks cannot read each other's memory, or their library does not do so: large messages are copied twice."""
    TRANSPORT = "other-transport"
    """The MPI library carries messages with other modules."""
    MPI_LIBRARY = "other-mpi-library"
    """The ranks load another MPI library."""
    USER_FILES = "file-system-in-user-space"
    """A process serves the root file system (FUSE): each file that is read costs system calls and CPU time of it."""
    NOT_KNOWN = "not-known"


class ContainerCost(Frozen):
    """A cause of slower figures. `on` is the slower side; `baseline` and `candidate` are what was seen on each.

    `figures` are those that it fits, all clearly slower; `spared` those of the same benchmarks that it cannot reach and
    that are not slower. `share` is what of the difference its kind of change explains, by an MPI profile of both sides
    (docs/adr/0025); None without one.
    """

    cost: Cost
    on: SideName
    baseline: str
    candidate: str
    figures: tuple[Comparison, ...]
    spared: tuple[Comparison, ...] = ()
    share: float | None = None


class ContainerContrast(Frozen):
    """The facts of both sides, and the causes of slower figures; no causes if no figure is clearly slower."""

    facts: tuple[ContainerFact, ...]
    costs: tuple[ContainerCost, ...] = ()
