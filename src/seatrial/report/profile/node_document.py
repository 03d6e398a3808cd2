"""The parts of `seatrial.profile/1` about what happens inside ranks: regions, counters, OpenMP."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from seatrial.model.json_shape import Count, From, Keywords, NonNegative, shape
from seatrial.profiler.counters import MpiCounters, NodeLimits, RankCounters
from seatrial.profiler.openmp import ParallelPlace, RankOpenMp
from seatrial.profiler.regions import RankRegion, Region, RegionFaults


@shape(RankRegion)
class RankRegionJson(TypedDict):
    """A region in one rank, over the threads that entered it."""

    rank: Count
    count: Annotated[Count, "how often it was begun"]
    wall_s: NonNegative
    mpi_s: Annotated[NonNegative, "of its time in MPI"]
    cpu_s: Annotated[NonNegative, "of the threads that begin and end it"]
    waiting_s: Annotated[NonNegative, "in MPI beyond what calls take if no rank is late; an estimate"]
    unended: Annotated[Count, "begins without an end"]


@shape(Region)
class RegionJson(TypedDict):
    """A region that the program names; its times include those of the regions in it."""

    path: Annotated[list[str], "its name, after those of the regions around it"]
    count: Count
    wall_s: Annotated[NonNegative, "sum over ranks, as the following"]
    mpi_s: NonNegative
    cpu_s: NonNegative
    waiting_s: NonNegative
    per_rank: list[RankRegionJson]


@shape(RegionFaults)
class RegionFaultsJson(TypedDict):
    """What is wrong with the regions, over all ranks."""

    lost: Annotated[Count, "begun without room: 64 regions, 16 inside each other"]
    ended_only: Annotated[Count, From("unbegun"), "ends of regions that were not begun"]
    crossed: Annotated[Count, "ended by the end of a region around them"]
    early: Annotated[Count, "begun or ended before MPI_Init or after MPI_Finalize"]
    stopped_s: Annotated[NonNegative, "not recorded because of MPI_Pcontrol(0); not part of any wall time"]


@shape(MpiCounters)
class MpiCountersJson(TypedDict):
    """The part of the counts in MPI calls of the thread that initialised MPI, of all threads meanwhile."""

    mpi_s: Annotated[NonNegative, "time in these calls"]
    counted_share: Annotated[float, Keywords(minimum=0, maximum=1), "of it in which counters were read; scaled by it"]
    cycles: NonNegative | None
    instructions: NonNegative | None
    cache_misses: NonNegative | None
    memory_lines: Annotated[NonNegative | None, "of 64 B"]
    flops: NonNegative | None


@shape(RankCounters)
class CountersJson(TypedDict):
    """Hardware counters of a rank from MPI_Init to the end of MPI, all threads, user mode; null: not supported or not
    permitted. Scaled to the whole time where counters took turns."""

    cycles: NonNegative | None
    instructions: NonNegative | None
    cache_misses: Annotated[NonNegative | None, "of the level of the kernel's generic event: the last on Intel"]
    memory_bytes: Annotated[NonNegative | None, From("memory_B"), "from memory into the data cache"]
    flops: Annotated[NonNegative | None, "floating-point operations; a fused multiply-add counts as two"]
    fp_instructions: Annotated[
        dict[str, float],
        From(lambda one: {str(width): count for width, count in one.fp_instructions.items()}),
        "operations of one instruction -> such instructions",
    ]
    least_share: Annotated[float, Keywords(minimum=0, maximum=1), "of the time in which a counter counted"]
    in_mpi: NotRequired[Annotated[MpiCountersJson | None, "null: not known"]]
    errors: Annotated[list[int], "errno of what could not be counted"]
    paranoid: Annotated[int | None, "kernel.perf_event_paranoid"]


@shape(NodeLimits)
class NodeLimitsJson(TypedDict):
    """What was measured on the machine that all ranks ran on; null: not measured."""

    memory_bytes_per_s: Annotated[NonNegative | None, From("memory_Bps")]
    flops_per_s: Annotated[NonNegative | None, From("flops")]


@shape(RankOpenMp)
class RankOpenMpJson(TypedDict):
    """OpenMP in one rank."""

    is_seen: Annotated[bool, "an OpenMP runtime with OMPT was started"]
    threads: Annotated[Count, "the most in a parallel region"]
    parallel_s: Annotated[NonNegative, "in parallel regions that are not nested"]
    thread_s: Annotated[NonNegative, "of all their threads until the last one is done"]
    end_wait_s: Annotated[NonNegative, "of these, waiting at the end for the last thread"]
    barrier_s: Annotated[NonNegative, "at barriers within"]
    lost: Annotated[Count, "parallel regions that were not recorded"]


@shape(ParallelPlace)
class ParallelJson(TypedDict):
    """The parallel regions that begin at one place, over all ranks."""

    module: Annotated[str | None, From(lambda one: one.site.module or None)]
    offset: Annotated[int | None, From(lambda one: one.site.offset if one.site.module else None)]
    function: Annotated[str | None, From(lambda one: one.site.frames[0].function if one.site.frames else None)]
    file: Annotated[str | None, From(lambda one: (one.site.frames[0].file or None) if one.site.frames else None)]
    line: Annotated[int | None, From(lambda one: (one.site.frames[0].line or None) if one.site.frames else None)]
    threads: Count
    count: Count
    time_s: Annotated[NonNegative, "of the threads that began them"]
    thread_s: NonNegative
    end_wait_s: NonNegative
    barrier_s: NonNegative
    lost_s: Annotated[NonNegative, "what equal shares of the work would save"]
