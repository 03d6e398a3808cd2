"""A comparison with its verdict: where its sides differ, and what a container costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Literal, Protocol, TypeVar

from msgspec import field

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import JsonParams
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import (
    Count,
    Finite,
    Hidden,
    Interval,
    Key,
    Keywords,
    Later,
    NonNegative,
    Number,
    OneOrMore,
    Positive,
    Probability,
    ShareOrNaN,
    Text,
    key,
)
from seatrial.model.results.figure_result import RepeatValue, numbers
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.units import Unit


class Verdict(StrEnum):
    """The result of a comparison. Without an interval it is always ambiguous."""

    FASTER = "faster"
    SAME = "same"
    EQUIVALENT = "equivalent"  # in place of `same` where equivalence is asked for
    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


class Stopped(StrEnum):
    """Why no further repeats were made."""

    DECIDED = "decided"  # by the interval at a planned look
    BUDGET = "budget"  # the time budget was used up
    MAXIMUM = "maximum"  # the largest number of repeats was made
    UNFINISHED = "unfinished"  # the run was interrupted; the same command resumes it
    NOT_PLANNED = "not planned"  # the repeats were not made for this comparison


class Statistic(StrEnum):
    """What the blocks of a comparison are tested with; see `seatrial.stats.block_test`."""

    SIGNED_RANKS = "signed ranks"
    POOLED_RANKS = "pooled ranks"


class Side(Frozen):
    """One side of a comparison. `name` is shown to the user ("nontemporal true", a folder, a reference).

    `values` are the repeats that the comparison uses, in order of time; `experiments` the ids behind them. A published
    reference has only `median`. `no_cpu` is set if the programs were ready to run without a CPU, `beside` if other
    processes used CPUs meanwhile.
    """

    name: str
    median: float
    values: Sequence[RepeatValue] = ()
    experiments: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_reference: bool = False
    no_cpu: NoCpu | None = None
    beside: Hidden[str] = ""

    @property
    def numbers(self) -> Sequence[float]:
        """The values of the repeats alone."""
        return numbers(self.values)


class Design(Frozen):
    """How the repeats behind a comparison were made.

    `blocks` counts pairs measured in direct succession, in random order (0: the sides were measured separately).
    `looks` are the numbers of blocks at which it was, or would have been, tested. `alpha` is the error level of the
    interval, before adjustment for the family. `statistic` is what the blocks were tested with; None without blocks.
    `sessions` is the number of alternating sessions of each side if they were measured apart, else None; `made_in` are
    the sessions of baseline and candidate, which may be more: ten of one side and then ten of the other alternate once.
    """

    blocks: int
    looks: tuple[int, ...]
    stopped: Stopped
    alpha: float
    statistic: Statistic | None = None
    sessions: int | None = None
    made_in: tuple[int, int] | None = None

    @property
    def is_interleaved(self) -> bool:
        """Whether a drift of the machine affects both sides equally."""
        return self.blocks > 0


class Comparison(Frozen):
    """One figure at one point, candidate over baseline.

    `parameters` are those that both sides share. `ratio` is candidate over baseline of the raw figure, for either
    direction: with blocks the Hodges-Lehmann estimate over pairs, else over all pairs of the two sides. `ci95` is for
    this comparison alone; `ci95_family` holds for all comparisons of the family at once and for all looks, and
    determines the verdict. Both are None if there are too few repeats, or none (a reference). `p_family` is the
    p-value of "the ratio lies within the margin", adjusted for the family. `note` states what limits the verdict.
    `asks_equivalence`: the margin is one of equivalence. Then `ci90` and `ci90_family` are the same intervals with
    twice the error, those of two one-sided tests: `equivalent` if the latter is inside the margin.
    `resolution` is the share by which rounding (the timer's step, printed digits) alone may have changed the ratio: it
    widens both ends of the intervals. `is_secondary`: the figure only accompanies another one.
    """

    benchmark: str
    figure: str
    parameters: JsonParams
    unit: Unit
    better: Better
    baseline: Side
    candidate: Side
    ratio: Annotated[Number, "candidate over baseline of the raw figure"]
    ci95: Annotated[Interval, "95 % interval of this comparison alone"]
    ci95_family: Annotated[Interval, "95 % interval that holds for all comparisons of the family and all looks"]
    verdict: Verdict
    margin: Positive
    n_repeats: Count
    family: OneOrMore
    design: Design
    p_family: Probability = None
    pairs: Hidden[Sequence[tuple[float, float]]] = field(default=())
    note: str = ""
    resolution: Later[
        Annotated[NonNegative, "share by which rounding alone may have changed the ratio; widened the intervals"]
    ] = 0.0
    is_secondary: Later[
        Annotated[bool, Key("secondary"), "whether the figure only accompanies another one; `--fail-on` ignores it"]
    ] = False
    asks_equivalence: Hidden[bool] = False
    ci90: Later[Annotated[Interval, "as `ci95` with twice the error; null: no equivalence is asked for"]] = None
    ci90_family: Later[
        Annotated[
            Interval, "as `ci95_family` with twice the error: two one-sided tests; gives the verdict `equivalent`"
        ]
    ] = None

    def __repr__(self) -> str:
        from seatrial.model.results.rows import comparison_line

        return comparison_line(self)

    @property
    def plain(self) -> tuple[float, float] | None:
        """The interval of this comparison alone, at the error of the tests that gave the verdict."""
        return self.ci90 if self.verdict is Verdict.EQUIVALENT else self.ci95

    @property
    def simultaneous(self) -> tuple[float, float] | None:
        """The interval behind the verdict."""
        return self.ci90_family if self.verdict is Verdict.EQUIVALENT else self.ci95_family


class OfFigure(Protocol):
    """What is stated of a figure."""

    @property
    def is_secondary(self) -> bool:
        """Whether the figure only accompanies another one."""


T = TypeVar("T", bound=OfFigure)


def decisive(statements: Iterable[T]) -> list[T]:
    """Those on figures that are not secondary; all if there are no others."""
    everything = list(statements)
    return [one for one in everything if not one.is_secondary] or everything


class Difference(Frozen):
    """`what` names it as in records ("parameter threads", "library libm.so.6", "fact governor"). The sides are
    text for messages; None: missing on this side. `intended`: it is what the comparison varies, or follows from it."""

    what: Text
    baseline: str | None
    candidate: str | None
    intended: bool
    follows_from: Later[str] = ""
    """The axis that causes an intended difference which is not part of the comparison itself; or the unintended
    difference that this one follows from."""

    @property
    def is_unintended_cause(self) -> bool:
        """Whether it is a change that nobody asked for, and follows from no other one."""
        return not self.intended and not self.follows_from


SideName = Literal["baseline", "candidate"]


class ContainerFact(Frozen):
    """One fact of the containers of both sides, as text; null: not recorded."""

    name: Text
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


COMPUTING = "computing"
"""All of a rank's time outside MPI."""

OTHER_CALLS = "other calls"


class Part(Frozen):
    """One contribution to the time: seconds and calls of one rank.

    `what` is COMPUTING, OTHER_CALLS, or an MPI function with message sizes from `size_B` bytes up.

    Times are the mean over ranks and repeats, so that parts add up to the whole; counts are calls per rank. `p_value`
    is for "both sides are equal", adjusted for the number of parts (`seatrial.stats.max_t`); None with fewer than six
    blocks, and for parts that were combined.
    """

    what: str
    size_B: Annotated[int | None, "smallest size of the bin; null: any size"]
    baseline_s: NonNegative
    candidate_s: NonNegative
    baseline_count: NonNegative
    candidate_count: NonNegative
    p_value: Annotated[float | None, Keywords(minimum=0, maximum=1), Key("p")] = None

    @property
    @key
    def difference_s(self) -> float:
        """Candidate minus baseline."""
        return self.candidate_s - self.baseline_s

    @property
    @key
    def is_beyond_noise(self) -> bool:
        """Whether the difference is significant at 5 % (over all parts together)."""
        return self.p_value is not None and self.p_value < 0.05


class Moved(Frozen):
    """Bytes of the whole program, from one counter of the I/O probe.

    The mean over repeats, of both sides.
    """

    what: str
    baseline_B: NonNegative
    candidate_B: NonNegative


class Change(StrEnum):
    """What changed between the sides. Where a profile names the same cause, it has the same value
    (`profiler/cause.py`). The first seven: ranks were ready to run, but had no CPU."""

    MORE_RANKS_THAN_CPUS = "more-ranks-than-cpus"
    SAME_CPUS = "ranks-on-the-same-cpus"
    CPU_QUOTA = "cpu-quota"
    STEAL = "steal"
    OTHER_PROCESSES = "other-processes"
    CHILD_PROCESSES = "child-processes"
    NO_CPU = "no-cpu"
    COMPUTATION = "computation"
    BLOCKED = "blocked"
    """All ranks are outside MPI for longer, neither running nor ready to run."""
    IMBALANCE = "imbalance"
    CALLS = "number-of-calls"
    SIZES = "message-sizes"
    LATENCY = "latency"
    TRANSFER = "transfer"
    LATE_SENDER = "late-sender"
    LATE_RECEIVER = "late-receiver"
    LATE_AT_COLLECTIVE = "late-at-collective"
    STARTUP = "startup"
    USER_CODE = "user-code"
    """CPU time in user code of a program without MPI: to compute, or to wait in a loop. What follows is what such
    programs do, by the names of diagnosis/disturbance/cause.py."""
    MORE_THREADS_THAN_CPUS = "more-threads-than-cpus"
    LOCKS = "lock-contention"
    PAGE_FAULTS = "page-faults"
    KERNEL_TIME = "kernel-time"
    SMALL_CALLS = "small-calls"
    FILE_OPENINGS = "file-openings"
    THREAD_STARTS = "thread-starts"
    PROCESS_STARTS = "process-starts"
    UNEVEN_THREADS = "uneven-threads"
    WAITING_LOOP = "waiting-loop"
    SLEEP = "sleep"
    CHILD = "child-process"
    OTHERS_DATA = "waits-for-data"
    FILE_LOCK = "file-lock"
    FILES = "files"
    FILE_SYSTEM = "file-system"
    SYNCHRONISED_IO = "synchronised-io"
    IO_LIMIT = "io-limit"
    NOT_KNOWN = "not-known"


class ChangeSignal(StrEnum):
    """A quantity of both sides, the mean over ranks and repeats unless it says more."""

    RUN_DELAY = "run-delay"
    """Share of the wall time in which a rank was ready to run, but had no CPU."""
    CPU_TIME = "cpu-time"
    """CPU seconds of a rank."""
    BLOCKED = "blocked"
    """Seconds in which a rank neither ran nor was ready to run."""
    COMPUTING = "computing"
    """Seconds outside MPI of the middle rank."""
    LONGEST_COMPUTING = "longest-computing"
    """Seconds outside MPI of the rank that is there for longest."""
    CALLS = "calls"
    """Calls of a rank in the MPI function with the largest part."""
    CALL_SHORTEST = "call-shortest"
    """Seconds of its shortest call on any rank."""
    CALL_MEAN = "call-mean"
    """Seconds of one call."""
    QUOTA = "quota"
    """CPUs that the control groups allow; None: no quota."""
    OTHERS_CPUS = "other-processes"
    """CPUs of the node that processes other than the ranks used."""
    WALL = "wall"
    """Seconds of one run of a program without MPI. The signals below are parts of it; those of threads are divided by
    the number of threads that work at once."""
    USER = "user-time"
    KERNEL = "kernel-time"
    CPU_WAIT = "cpu-wait"
    LOCK_WAIT = "lock-wait"
    SLEEP = "sleep"
    FILE_WAIT = "file-wait"
    CHILD_WAIT = "child-wait"
    THREAD_WAIT = "thread-wait"
    DATA_WAIT = "data-wait"
    """... for data of another process, or until it reads, and ..."""
    FILE_LOCK_WAIT = "file-lock-wait"


class ChangeEvidence(Frozen):
    """One signal on both sides; null where it is unknown. Times in seconds, shares between 0 and 1."""

    signal: ChangeSignal
    baseline: Finite
    candidate: Finite


class ChangeDiagnosis(Frozen):
    """A change, and the share of the difference in time that it explains, between 0 and 1.

    `call` and `size_B` are the MPI function and message size with the largest part, `rank` the rank that others wait
    for. `p_value` is for "this part is equal on both sides", adjusted for the number of parts; None for NOT_KNOWN, and
    for sides that were measured apart. `seen` is what the repeats of the side `on` show of it, with its `remedy`.
    """

    change: Annotated[Change, Key("cause")]
    share: ShareOrNaN
    evidence: tuple[ChangeEvidence, ...] = ()
    call: str = ""
    size_B: int | None = None
    rank: int | None = None
    p_value: Annotated[float | None, Keywords(minimum=0, maximum=1), Key("p")] = None
    on: Annotated[SideName | None, "the side that `seen` is about"] = None
    seen: str = ""
    remedy: str = ""


class Breakdown(Frozen):
    """Two experiments of a comparison, part by part; the largest differences first.

    `parameters` are those that both share. `whole` is the wall time of a rank, or of a run of a program without MPI
    (`per`). `repeats` is their number on each side.
    `incomplete` counts repeats that are left out because a rank is missing or ended without MPI_Finalize. `blocks` are
    those with a complete repeat of each side: the parts are tested over these. `diagnoses` say why the times differ,
    the largest share first; empty if they do not differ beyond noise.
    """

    benchmark: str
    parameters: JsonParams
    baseline: Annotated[str, Key("baseline_name")]
    candidate: Annotated[str, Key("candidate_name")]
    whole: Part | None
    parts: tuple[Part, ...]
    moved: Annotated[tuple[Moved, ...], Key("io")] = ()
    repeats: Annotated[tuple[Count, Count], Key("n_repeats")] = (0, 0)
    incomplete: Count = 0
    blocks: Hidden[int] = 0
    diagnoses: tuple[ChangeDiagnosis, ...] = ()
    per: Annotated[Literal["rank", "run"], "what the seconds are of"] = "rank"
