"""Regions that a program names, and its parallel regions of OpenMP."""

from __future__ import annotations

from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Key, NonNegative, key
from seatrial.profiler.cause import CallSite


class RankRegion(Frozen):
    """A region in one rank, over the threads that entered it.

    `wall_s` is from begin to end. `unended` of its `count` begins counted until MPI ended, or not at all in a rank that
    was killed.
    """

    rank: Count
    count: Annotated[Count, "how often it was begun"]
    wall_s: NonNegative
    mpi_s: Annotated[NonNegative, "of its time in MPI"]
    cpu_s: Annotated[NonNegative, "of the threads that begin and end it"]
    waiting_s: Annotated[NonNegative, "in MPI beyond what calls take if no rank is late; an estimate"]
    unended: Annotated[Count, "begins without an end"] = 0

    @property
    def compute_s(self) -> float:
        """Time outside MPI."""
        return max(0.0, self.wall_s - self.mpi_s)


class Region(Frozen):
    """A region that the program names; its times include those of the regions in it."""

    path: Annotated[tuple[str, ...], "its name, after those of the regions around it"]
    per_rank: tuple[RankRegion, ...]

    @property
    @key
    def count(self) -> Count:
        """How often it was begun, over all ranks."""
        return sum(one.count for one in self.per_rank)

    @property
    @key
    def wall_s(self) -> Annotated[NonNegative, "sum over ranks, as the following"]:
        """Sum over ranks."""
        return sum(one.wall_s for one in self.per_rank)

    @property
    @key
    def mpi_s(self) -> NonNegative:
        """Sum over ranks."""
        return sum(one.mpi_s for one in self.per_rank)

    @property
    @key
    def cpu_s(self) -> NonNegative:
        """Sum over ranks."""
        return sum(one.cpu_s for one in self.per_rank)

    @property
    @key
    def waiting_s(self) -> NonNegative:
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
    """What is wrong with the regions, over all ranks."""

    lost: Annotated[Count, "begun without room: 64 regions, 16 inside each other"] = 0
    unbegun: Annotated[Count, "ends of regions that were not begun", Key("ended_only")] = 0
    crossed: Annotated[Count, "ended by the end of a region around them"] = 0
    early: Annotated[Count, "begun or ended before MPI_Init or after MPI_Finalize"] = 0
    stopped_s: Annotated[NonNegative, "not recorded because of MPI_Pcontrol(0); not part of any wall time"] = 0.0


NO_FAULTS = RegionFaults()


class RankOpenMp(Frozen):
    """OpenMP in one rank."""

    is_seen: Annotated[bool, "an OpenMP runtime with OMPT was started"]
    threads: Annotated[Count, "the most in a parallel region"] = 0
    parallel_s: Annotated[NonNegative, "in parallel regions that are not nested"] = 0.0
    thread_s: Annotated[NonNegative, "of all their threads until the last one is done"] = 0.0
    end_wait_s: Annotated[NonNegative, "of these, waiting at the end for the last thread"] = 0.0
    barrier_s: Annotated[NonNegative, "at barriers within"] = 0.0
    lost: Annotated[Count, "parallel regions that were not recorded"] = 0


class ParallelPlace(Frozen):
    """The parallel regions that begin at one call site, over all ranks.

    `site` is where; times are as in RankOpenMp.
    """

    site: CallSite
    threads: Count
    count: Count
    time_s: Annotated[NonNegative, "of the threads that began them"]
    thread_s: NonNegative
    end_wait_s: NonNegative
    barrier_s: NonNegative
    lost_s: Annotated[NonNegative, "what equal shares of the work would save"]


class Operation(Frozen):
    """Reduction operations with one function of the program, over all ranks; those of several functions if the program
    has more than ten.

    `site` is the function, in no file if they are several; its time is within MPI calls.
    """

    site: CallSite
    made: Annotated[Count, "calls of MPI_Op_create"]
    count: Annotated[Count, "calls by MPI"]
    time_s: NonNegative
