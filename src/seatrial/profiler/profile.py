"""What an MPI program spent its time on: the tables of all its ranks, summed.

Times are seconds, sizes bytes. Sums go over ranks, so that a share of wall time is `mpi_s / wall_s` for one rank and
for all of them alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from seatrial.profiler.profile_io import ProfileIo


class Bound(StrEnum):
    """What the time in a call is made of; the rule stands in `profiler/merge/bound.py`."""

    WAITING = "waiting"
    LATENCY = "latency-bound"
    BANDWIDTH = "bandwidth-bound"
    START = "start-up"
    LOCAL = "local"
    UNKNOWN = "unknown"


class RankState(StrEnum):
    """How far a rank came before its table was read."""

    BEFORE_MPI = "before MPI_Init"
    RUNNING = "without MPI_Finalize"
    FINALIZED = "finalized"
    ABORTED = "MPI_Abort"


@dataclass(frozen=True, slots=True)
class MeasuredWaiting:
    """What calls with a barrier before them showed: seconds until all ranks had come, and what the calls took then.

    `calls` is how many of them there were, over all ranks.
    """

    calls: int
    waited_s: float
    transferred_s: float

    @property
    def share(self) -> float:
        """Of waiting in these calls."""
        together = self.waited_s + self.transferred_s
        return self.waited_s / together if together > 0 else 0.0


@dataclass(frozen=True, slots=True)
class CallTotals:
    """One MPI function over all ranks. `waiting_s` is its waiting: the share that was `measured` in a sample of its
    calls, of all its time; where that is None an estimate, what goes beyond the same call at its best."""

    call: str
    count: int
    time_s: float
    bytes: int
    waiting_s: float
    bound: Bound
    least_rank_s: float
    most_rank_s: float
    measured: MeasuredWaiting | None = None

    @property
    def mean_s(self) -> float:
        """Of one call."""
        return self.time_s / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class SizeTotals:
    """The calls of one function whose size falls into one bin: from `size_B` to `largest_B`, both included.

    `best_s` is what such a call takes at its best: the median over ranks of the shortest one. `waiting_s` and
    `measured` as in CallTotals.
    """

    call: str
    size_B: int
    largest_B: int
    count: int
    bytes: int
    time_s: float
    best_s: float
    waiting_s: float
    bound: Bound
    measured: MeasuredWaiting | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Point-to-point messages from rank `src` to rank `dst` of MPI_COMM_WORLD."""

    src: int
    dst: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PairTable:
    """Pairs as columns of equal length, by `src` and then `dst`: thousands of ranks have millions of pairs.

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


@dataclass(frozen=True, slots=True)
class RankTotals:
    """One rank. `sent_B` and `received_B` are point to point; `collective_B` what it gave to collectives.

    `threads` is the number that called MPI: with several, `mpi_s` sums them and may exceed `wall_s`.
    """

    rank: int
    host: str
    wall_s: float
    mpi_s: float
    calls: int
    sent_B: int
    received_B: int
    collective_B: int
    threads: int
    state: RankState

    @property
    def compute_s(self) -> float:
        """What is not MPI; 0 where several threads were in MPI for longer than the rank ran."""
        return max(0.0, self.wall_s - self.mpi_s)


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a source: `file` is "" and `line` 0 where the program does not tell."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class CallSite:
    """One place that calls one MPI function. `offset` is the return address in the file `module`.

    `frames` go from the innermost (perhaps inlined) function outwards; empty where no symbol is known. `ranks` is how
    many of them called here. `module` is "" where the address belongs to no mapped file, or was dropped.
    """

    call: str
    module: str
    offset: int
    count: int
    time_s: float
    bytes: int
    ranks: int
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """Ranks `first` to `last` over time: `shares[k]` is their share of MPI in bin k, None where none of them ran."""

    first: int
    last: int
    shares: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class OverTime:
    """MPI time in bins of `width_s` since the first rank was started. All sequences are as long as there are bins.

    `mpi_s` and `wall_s` sum over ranks; `least` and `most` are the shares of the ranks with least and most of it.
    """

    width_s: float
    mpi_s: tuple[float, ...]
    wall_s: tuple[float, ...]
    least: tuple[float | None, ...]
    most: tuple[float | None, ...]
    lanes: tuple[Lane, ...]

    @property
    def shares(self) -> tuple[float | None, ...]:
        """Of MPI in each bin, over all ranks; None where none ran."""
        return tuple(m / w if w > 0 else None for m, w in zip(self.mpi_s, self.wall_s, strict=True))


@dataclass(frozen=True, slots=True)
class Trust:
    """What the numbers of a profile can be relied on for.

    `families` are the kinds of MPI that the ranks were told apart as; `has_sizes` is False where one is unknown, of
    which only times and counts are known. `without_site` counts calls whose place was dropped for want of room,
    `lost_calls` those that are in no table, `untold` received messages of unknown length. `unmatched_B` is the sum over
    pairs of what the sender and the receiver disagree about, `damaged` the number of tables that could not be read.
    """

    missing: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    without_site: int = 0
    lost_calls: int = 0
    untold: int = 0
    unmatched_B: int = 0
    families: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    has_sizes: bool = True
    damaged: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether there are ranks, each with a table, that reached MPI_Finalize and lost nothing."""
        return bool(self.families) and not (self.missing or self.unfinished or self.lost_calls or self.damaged)

    @property
    def overflow(self) -> int:
        """Calls of which not everything is known, for want of room in a table."""
        return self.without_site + self.lost_calls


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one MPI_COMM_WORLD; everything is ordered by cost, ranks by their number.

    `ranks` is the size of that world, also where tables are missing. `elapsed_s` is the longest wall time of a rank,
    `overhead_s` what the profiler itself took, over all ranks. `others` counts further worlds of the same command.
    `io` is None where nobody asked for it.
    """

    program: str
    ranks: int
    elapsed_s: float
    wall_s: float
    mpi_s: float
    overhead_s: float
    calls: tuple[CallTotals, ...]
    sizes: tuple[SizeTotals, ...]
    matrix: PairTable
    per_rank: tuple[RankTotals, ...]
    callsites: tuple[CallSite, ...]
    over_time: OverTime | None
    trust: Trust
    others: int = 0
    io: ProfileIo | None = None

    @property
    def mpi_share(self) -> float:
        """Of wall time."""
        return self.mpi_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def waiting_s(self) -> float:
        """What goes beyond the same calls at their best, over all ranks (an estimate), or was measured as waiting."""
        return sum(call.waiting_s for call in self.calls)

    @property
    def measured_calls(self) -> tuple[int, int]:
        """Calls with a barrier before them, and all calls of the same functions; 0 and 0 where there were none."""
        found = [(one.measured.calls, one.count) for one in self.calls if one.measured is not None]
        return sum(calls for calls, _ in found), sum(count for _, count in found)
