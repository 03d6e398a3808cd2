"""Regions that a program names: the parts of it between a begin and an end. Times are in seconds."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class RankRegion(Frozen):
    """A region in one rank, over the threads that entered it: `wall_s` from begin to end, `mpi_s` of it in MPI,
    `waiting_s` of that beyond what calls take if no rank is late, `cpu_s` the CPU time of these threads. `unended` of
    its `count` begins have no end: these counted until MPI ended, or not at all in a rank that was killed."""

    rank: int
    count: int
    wall_s: float
    mpi_s: float
    cpu_s: float
    waiting_s: float
    unended: int = 0

    @property
    def compute_s(self) -> float:
        """Time outside MPI."""
        return max(0.0, self.wall_s - self.mpi_s)


class Region(Frozen):
    """A region over all ranks that entered it. `path`: its name, after those of the regions that enclose it; its times
    include those of the regions in it."""

    path: tuple[str, ...]
    per_rank: tuple[RankRegion, ...]

    @property
    def count(self) -> int:
        """How often it was begun, over all ranks."""
        return sum(one.count for one in self.per_rank)

    @property
    def wall_s(self) -> float:
        """Sum over ranks."""
        return sum(one.wall_s for one in self.per_rank)

    @property
    def mpi_s(self) -> float:
        """Sum over ranks."""
        return sum(one.mpi_s for one in self.per_rank)

    @property
    def cpu_s(self) -> float:
        """Sum over ranks."""
        return sum(one.cpu_s for one in self.per_rank)

    @property
    def waiting_s(self) -> float:
        """Sum over ranks."""
        return sum(one.waiting_s for one in self.per_rank)

    @property
    def unended(self) -> int:
        """Begins without an end, over all ranks."""
        return sum(one.unended for one in self.per_rank)

    @property
    def slowest(self) -> RankRegion:
        """The rank that is outside MPI for longest in it."""
        return max(self.per_rank, key=lambda one: one.compute_s)

    @property
    def imbalance(self) -> float | None:
        """How far the longest time outside MPI is above the mean of the ranks in the region, as a share of the mean;
        None with one rank, or without such time."""
        times = [one.compute_s for one in self.per_rank]
        mean_s = sum(times) / len(times)
        return max(times) / mean_s - 1.0 if len(times) > 1 and mean_s > 0 else None


class RegionFaults(Frozen):
    """What is wrong with the regions, over all ranks. `lost`: begun, but there were 64 others, or 16 around it;
    `unbegun`: ended without begin; `crossed`: ended because an enclosing one ended; `early`: begun or ended before
    MPI_Init or after MPI_Finalize. `stopped_s`: seconds that recording was stopped by MPI_Pcontrol(0)."""

    lost: int = 0
    unbegun: int = 0
    crossed: int = 0
    early: int = 0
    stopped_s: float = 0.0


NO_FAULTS = RegionFaults()
