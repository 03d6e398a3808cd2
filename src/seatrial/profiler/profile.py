"""Where an MPI program spent its time: the tables of all its ranks, summed.

Times are in seconds, sizes in bytes. Totals are sums over ranks, so `mpi_s / wall_s` is the MPI share of wall time, for
one rank and for all of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import (
    HIDDEN,
    As,
    Count,
    Hidden,
    Key,
    Keywords,
    Later,
    NonNegative,
    ShareOrNaN,
    key,
    published,
)
from seatrial.model.results.energy import MpiEnergy, PowerOverTime
from seatrial.profiler.cause import Caller, CallSite, Diagnosis
from seatrial.profiler.cpu import CpuSlices, CpuUse, NodeLimits, RankCounters, SliceDifferences
from seatrial.profiler.profile_io import ProfileIo, SystemCall, SystemUse
from seatrial.profiler.regions import NO_FAULTS, Operation, ParallelPlace, RankOpenMp, Region, RegionFaults


class Bound(StrEnum):
    """What dominates the time in a call; the rule is in `profiler/merge/bound.py`."""

    WAITING = "waiting"
    LATENCY = "latency-bound"
    BANDWIDTH = "bandwidth-bound"
    START = "start-up"
    LOCAL = "local"
    UNKNOWN = "unknown"


class RankState(StrEnum):
    """How far a rank had got when its table was read."""

    BEFORE_MPI = "before MPI_Init"
    RUNNING = "without MPI_Finalize"
    FINALIZED = "finalized"
    ABORTED = "MPI_Abort"


Function = Annotated[str, Keywords(pattern="^MPIX?_")]


class MeasuredWaiting(Frozen):
    """Measured with a barrier before the call: seconds until all ranks had arrived, and seconds of the call itself.

    `calls` is the number of such calls over all ranks.
    """

    calls: int
    waited_s: float
    transferred_s: float

    @property
    def share(self) -> float:
        """The share of waiting in the time of these calls."""
        together = self.waited_s + self.transferred_s
        return self.waited_s / together if together > 0 else 0.0


class CallTotals(Frozen):
    """One MPI function over all ranks.

    `waiting_s` is the time spent waiting: the share `measured` in a sample of the calls, times `time_s`; if `measured`
    is None, the estimated time above the shortest call of the same size.
    """

    call: Function
    count: Count
    time_s: NonNegative
    bytes: Count
    waiting_s: Annotated[
        NonNegative,
        "the share of `waiting` in all of the time; where that is null an estimate: beyond the same calls at "
        "their best",
    ]
    bound: Bound
    least_rank_s: NonNegative
    most_rank_s: NonNegative
    measured: Hidden[MeasuredWaiting | None] = None
    operated_s: Later[Annotated[NonNegative, "in functions that the program gave to MPI_Op_create"]] = 0.0

    @property
    def mean_s(self) -> float:
        """Mean time of one call."""
        return self.time_s / self.count if self.count else 0.0


class SizeTotals(Frozen):
    """The calls of one function in one size bin, from `size_B` to `largest_B` inclusive.

    `best_s` is the time of a fast call: the median over ranks of the shortest one. `prompt_s` is that of a call when no
    rank is late: the same, but at most what a working fabric takes. `waiting_s` and `measured` as in CallTotals.
    `least_s` is the time of the shortest call of all ranks. `requests_each`: how many requests a call that completes
    one of several was given, on average; 0 for others. `messages_each`: how many messages a call of MPI_Waitall
    received, at least, on average; 0 for others. `moved_B` is what one call moves on average; for ranks that
    receive from the root of a collective, what that sends them. `operated_s` is the part of `time_s` in functions that
    the program gave to MPI_Op_create: it is neither waiting nor transfer.
    """

    call: Function
    size_B: Annotated[Count, Key("size_bin"), "the least number of bytes in this bin"]
    largest_B: Annotated[Count, Key("largest"), "the largest number of bytes in this bin"]
    count: Count
    bytes: Count
    time_s: NonNegative
    best_s: Annotated[NonNegative, "of one call: the median over ranks of the shortest"]
    waiting_s: NonNegative
    bound: Bound
    measured: Hidden[MeasuredWaiting | None] = None
    prompt_s: Hidden[float] = 0.0
    least_s: Hidden[float] = 0.0
    moved_B: Hidden[float] = 0.0
    requests_each: Hidden[float] = 0.0
    messages_each: Hidden[float] = 0.0
    operated_s: Hidden[float] = 0.0


class Pair(Frozen):
    """Point-to-point messages from rank `src` to rank `dst` of MPI_COMM_WORLD."""

    src: Count
    dst: Count
    count: Count
    bytes: Count


class PairTable(Frozen):
    """Pairs as columns of equal length, sorted by `src` and then `dst`: thousands of ranks have millions of pairs.

    `src` and `dst` hold 32 bits ("I"), `count` and `bytes` 64 ("Q").
    """

    src: array[int] = field(default_factory=lambda: array("I"))
    dst: array[int] = field(default_factory=lambda: array("I"))
    count: array[int] = field(default_factory=lambda: array("Q"))
    bytes: array[int] = field(default_factory=lambda: array("Q"))

    def __len__(self) -> int:
        return len(self.src)

    def __iter__(self) -> Iterator[Pair]:
        return (Pair(*row) for row in zip(self.src, self.dst, self.count, self.bytes, strict=True))


class RankWaits(Frozen):
    """Seconds that a rank spent in calls beyond what they take when no rank is late: in receives (waits for requests
    included), in sends, in collectives, and for access to windows (one-sided). `unclear_s`: in calls of which too
    little of the time is beyond that, so that it may be contention."""

    receive_s: float = 0.0
    send_s: float = 0.0
    collective_s: float = 0.0
    window_s: float = 0.0
    unclear_s: float = 0.0

    @property
    def all_s(self) -> float:
        """The sum."""
        return self.clear_s + self.unclear_s

    @property
    def clear_s(self) -> float:
        """Without what may be contention."""
        return self.receive_s + self.send_s + self.collective_s + self.window_s


NO_WAITS = RankWaits()


class RankCpu(CpuUse):
    """CPU time of a rank, from the end of MPI_Init to the end of MPI; null: not reported by the kernel.

    `mask` are the CPUs that it may run on, `quota` is None without one. `slices` are its CPU time over time; None if
    not known. A short loop, the same on all ranks, took `loop_s` of CPU time on average and `least_loop_s` at best,
    `loops` times between MPI_Init and MPI_Finalize: how fast its CPU was.
    """

    mask: Annotated[tuple[Count, ...], Key("cpus"), "affinity"]
    quota: Annotated[NonNegative | None, "CPUs that the control groups allow"]
    slices: Hidden[CpuSlices | None] = None
    system_s: Later[Annotated[NonNegative | None, "the part of `cpu_s` in the kernel"]] = None
    children_s: Later[Annotated[NonNegative | None, "CPU time of the processes that it started, and theirs"]] = None
    loops: Hidden[int] = 0
    loop_s: Later[Annotated[NonNegative | None, "CPU time of a short loop, the same on all ranks"]] = None
    least_loop_s: Hidden[float] = 0.0

    @property
    def delay_share(self) -> float | None:
        """The part of wall time in which it waited for a CPU: at most 1, also with many threads."""
        return None if self.delay_s is None else min(1.0, self.delay_s / self.wall_s)

    @property
    def blocked_share(self) -> float | None:
        """The part of wall time in which it neither ran nor was ready to run: input and output, sleep."""
        if self.cpu_s is None or self.delay_s is None:
            return None
        return max(0.0, 1.0 - (self.cpu_s + self.delay_s) / self.wall_s)


class NodeCpu(Frozen):
    """CPU time on one node while its ranks ran: of all processes, taken by the hypervisor, of the ranks, and of the
    processes that these started."""

    host: str
    online: int
    wall_s: float
    busy_s: float
    steal_s: float
    ranks_s: float
    children_s: float = 0.0

    @property
    def other_cpus(self) -> float:
        """CPUs that processes of others used on average."""
        return max(0.0, self.busy_s - self.ranks_s - self.children_s) / self.wall_s

    @property
    def children_cpus(self) -> float:
        """CPUs that the children of the ranks used on average."""
        return self.children_s / self.wall_s

    @property
    def idle_cpus(self) -> float:
        """CPUs that nothing used on average."""
        return max(0.0, self.online - (self.busy_s + self.steal_s) / self.wall_s)


class CpuSpread(Frozen):
    """How much of a CPU the ranks had, from the end of MPI_Init on."""

    ranks: Annotated[Count, "that it is known of"]
    least_cpus: Annotated[NonNegative, "CPUs that a rank used"]
    most_cpus: NonNegative
    most_delay: Annotated[ShareOrNaN, "largest share of its time that a rank waited for a CPU"]


class RankCode(Frozen):
    """Where the thread that initialised MPI executed in user code, by samples. In `waits` of them it was in loops of
    the program that only wait (`profiler/waiting_code.py`), for `waits_s` seconds of CPU time at least, mostly at
    `loop`. `calls`: samples behind system calls, by name."""

    samples: int
    waits: int
    waits_s: float
    loop: Caller | None
    calls: Mapping[str, int]


@published("Rank")
class RankTotals(Frozen):
    """One rank.

    `threads` is the number of threads that called MPI: with several, `mpi_s` may exceed `wall_s`. `by_call` are the
    seconds of each MPI function that it called.
    """

    rank: Count
    host: str
    wall_s: NonNegative
    mpi_s: Annotated[NonNegative, "all its threads together"]
    calls: Count
    sent_B: Annotated[Count, "point to point", Key("sent_bytes")]
    received_B: Annotated[Count, "point to point", Key("recv_bytes")]
    collective_B: Annotated[Count, "given to collectives", Key("collective_bytes")]
    threads: Count
    state: RankState
    cpu: Later[RankCpu | None] = None
    waits: Hidden[RankWaits] = NO_WAITS
    system: Later[Annotated[tuple[SystemUse, ...] | None, "since MPI_Init; null: not timed"]] = None
    counters: Later[Annotated[RankCounters | None, "null: not requested"]] = None
    openmp: Later[Annotated[RankOpenMp | None, "null: not requested"]] = None
    by_call: Annotated[Mapping[str, float], HIDDEN] = {}
    code: Hidden[RankCode | None] = None
    operated_s: Later[Annotated[NonNegative, "in functions that the program gave to MPI_Op_create, within MPI"]] = 0.0

    def system_s(self, *kinds: SystemCall) -> float:
        """Seconds in calls of these kinds outside MPI; 0 if they were not timed."""
        return sum(use.time_s for use in self.system or () if use.kind in kinds)

    @property
    def loop_s(self) -> float:
        """CPU seconds in loops of the program that only wait, at least; 0 if that is unknown."""
        return 0.0 if self.code is None else min(self.code.waits_s, self.compute_s)

    @property
    def compute_s(self) -> float:
        """Time outside MPI; 0 if several threads together were in MPI for longer than the rank ran."""
        return max(0.0, self.wall_s - self.mpi_s)


class Lane(Frozen):
    """Ranks `first` to `last` over time: `shares[k]` is their share of MPI in bin k, None if none of them ran."""

    first: int
    last: int
    shares: tuple[float | None, ...]


class OverTime(Frozen):
    """MPI time in bins of equal width since the first rank was started.

    Every sequence has one value for each bin. `mpi_s` and `wall_s` are sums over ranks; `least` and `most` are the
    lowest and highest share of a rank.
    """

    width_s: NonNegative
    mpi_s: tuple[NonNegative, ...]
    wall_s: tuple[NonNegative, ...]
    least: Annotated[tuple[NonNegative | None, ...], Key("least_share")]
    most: Annotated[tuple[NonNegative | None, ...], Key("most_share")]
    lanes: Hidden[tuple[Lane, ...]]

    @property
    def shares(self) -> tuple[float | None, ...]:
        """The share of MPI in each bin, over all ranks; None if none ran."""
        return tuple(m / w if w > 0 else None for m, w in zip(self.mpi_s, self.wall_s, strict=True))


class Trust(Frozen):
    """What the numbers can be relied on for.

    `families` are the MPI families that the ranks use; `has_sizes` is False if one of them is unknown: then only times
    and counts are recorded. `without_site` counts calls whose call site was dropped because the table was full,
    `without_path` those whose path or line of Python was, `lost_calls` calls in no table, `unknown_length` received
    messages of unknown length. `unmatched_B` is the difference between the bytes sent and received, summed over pairs;
    `damaged` the number of unreadable tables.
    """

    missing: Annotated[tuple[Count, ...], Key("missing_ranks")] = ()
    unfinished: Annotated[tuple[Count, ...], Key("unfinished_ranks")] = ()
    without_site: Annotated[Count, Key("calls_without_site")] = 0
    without_path: Later[Annotated[Count, "or without their line of Python", Key("calls_without_path")]] = 0
    lost_calls: Count = 0
    unknown_length: Annotated[Count, Key("untold_receives")] = 0
    unmatched_B: Annotated[Count, Key("unmatched_bytes")] = 0
    families: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    has_sizes: bool = True
    damaged: Later[Annotated[Count, Key("damaged_tables")]] = 0

    @property
    def is_complete(self) -> bool:
        """Whether every rank has a table, reached MPI_Finalize and lost no call."""
        return bool(self.families) and not (self.missing or self.unfinished or self.lost_calls or self.damaged)

    @property
    def overflow(self) -> int:
        """Calls recorded incompletely because a table was full."""
        return self.without_site + self.without_path + self.lost_calls


class Profile(Frozen):
    """The profile of one MPI_COMM_WORLD; everything is sorted by time, ranks by number.

    `ranks` is the size of that world, even if tables are missing. `elapsed_s` is the longest wall time of a rank,
    `overhead_s` the time that the profiler itself took, over all ranks. `others` counts further worlds of the same
    command. `io` is None if it was not requested. `nodes` are those with CPU time of all their ranks; `diagnoses` say
    why time is lost, the largest share first. `regions` are those that the program names, by time, with their `faults`;
    `parallel` the call sites of its OpenMP regions, by the time that threads lose there. `limits` are those of its only
    node, if they were measured, and `power` is that of its only node, over the time since the first rank was started,
    and `mpi_energy` divides its energy.
    `differences` are those of the ranks in slices of time, None if not known.
    `noncontiguous_B` are the bytes passed for sending or writing whose datatypes have gaps. `operations` are the
    reduction operations of the program; of `untimed_operations` the time is unknown.
    """

    program: Later[str]
    ranks: Annotated[Count, "0: no process began MPI"]
    elapsed_s: Later[Annotated[NonNegative, "of the rank that ran longest"]]
    wall_s: Annotated[NonNegative, "sum over ranks"]
    mpi_s: Annotated[NonNegative, "sum over ranks"]
    overhead_s: Annotated[NonNegative, "what the profiler itself took, over all ranks"]
    calls: tuple[CallTotals, ...]
    sizes: tuple[SizeTotals, ...]
    matrix: Annotated[PairTable, As(list[Pair])]
    per_rank: tuple[RankTotals, ...]
    callsites: tuple[CallSite, ...]
    over_time: Later[OverTime | None]
    trust: Later[Trust]
    others: Hidden[int] = 0
    io: ProfileIo | None = None
    nodes: Hidden[tuple[NodeCpu, ...]] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    regions: Later[Annotated[tuple[Region, ...], "that the program names; longest first"]] = ()
    faults: Later[Annotated[RegionFaults, Key("region_faults")]] = NO_FAULTS
    parallel: tuple[ParallelPlace, ...] = ()
    operations: tuple[Operation, ...] = ()
    limits: Later[NodeLimits | None] = None
    power: Later[PowerOverTime | None] = None
    mpi_energy: Later[Annotated[tuple[MpiEnergy, ...], "of that power, in MPI and outside; by sensor"]] = ()
    differences: Hidden[SliceDifferences | None] = None
    noncontiguous_B: Hidden[int] = 0
    untimed_operations: Hidden[int] = 0

    @property
    def mpi_share(self) -> float:
        """The share of wall time in MPI."""
        return self.mpi_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def hosts(self) -> int:
        """On how many hosts the ranks ran."""
        return len({one.host for one in self.per_rank})

    @property
    @key
    def cpu_spread(self) -> Later[Annotated[CpuSpread | None, "null: not reported by the kernel"]]:
        """How much of a CPU the ranks had; None if the kernel did not report it."""
        known = [one.cpu for one in self.per_rank if one.cpu is not None and one.cpu.cpu_s is not None]
        used = [one.cpu_s / one.wall_s for one in known if one.cpu_s is not None]
        if not used:
            return None
        return CpuSpread(len(used), min(used), max(used), max(one.delay_share or 0.0 for one in known))

    @property
    def waiting_s(self) -> float:
        """Time spent waiting over all ranks: measured, or estimated as the time above the shortest calls."""
        return sum(call.waiting_s for call in self.calls)

    @property
    def measured_calls(self) -> tuple[int, int]:
        """Calls with a barrier before them, and all calls of the same functions; 0 and 0 if there were none."""
        found = [(one.measured.calls, one.count) for one in self.calls if one.measured is not None]
        return sum(calls for calls, _ in found), sum(count for _, count in found)


def empty_profile(program: str, damaged: int = 0) -> Profile:
    """The profile of a command that did not initialize MPI."""
    return Profile(program, 0, 0.0, 0.0, 0.0, 0.0, (), (), PairTable(), (), (), None, Trust(damaged=damaged))
