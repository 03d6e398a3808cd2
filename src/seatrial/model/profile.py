"""What an MPI program spent its time on: the tables of all its ranks, summed.

Times are seconds, sizes bytes. Sums go over ranks, so that a share of wall time is `mpi_s / wall_s` for one rank and
for all of them alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Bound(StrEnum):
    """What the time in a call is made of; the rule stands in `analysis/profile_bound.py`."""

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
class CallTotals:
    """One MPI function over all ranks. `waiting_s` is what goes beyond the same call at its best (an estimate)."""

    call: str
    count: int
    time_s: float
    bytes: int
    waiting_s: float
    bound: Bound
    least_rank_s: float
    most_rank_s: float

    @property
    def mean_s(self) -> float:
        """Of one call."""
        return self.time_s / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class SizeTotals:
    """The calls of one function whose size falls into one bin: from `size_B` to `largest_B`, both included.

    `best_s` is what such a call takes at its best: the median over ranks of the shortest one.
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
    pairs of what the sender and the receiver disagree about.
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

    @property
    def is_complete(self) -> bool:
        """Whether every rank has a table, reached MPI_Finalize, and lost nothing."""
        return not (self.missing or self.unfinished or self.lost_calls)

    @property
    def overflow(self) -> int:
        """Calls of which not everything is known, for want of room in a table."""
        return self.without_site + self.lost_calls


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one MPI_COMM_WORLD; everything is ordered by cost, ranks by their number.

    `ranks` is the size of that world, also where tables are missing. `elapsed_s` is the longest wall time of a rank,
    `overhead_s` what the profiler itself took, over all ranks. `others` counts further worlds of the same command.
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

    @property
    def mpi_share(self) -> float:
        """Of wall time."""
        return self.mpi_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def waiting_s(self) -> float:
        """What goes beyond the same calls at their best, over all ranks (an estimate)."""
        return sum(call.waiting_s for call in self.calls)
