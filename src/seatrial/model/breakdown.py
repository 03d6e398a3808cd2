"""Where two sides of a comparison differ: what their ranks spent time on, as recorded by the MPI probe."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value

COMPUTING = "computing"
"""All of a rank's time outside MPI."""

OTHER_CALLS = "other calls"


class Part(Frozen):
    """One part of the time: `what` is COMPUTING, OTHER_CALLS, or an MPI function with message sizes from `size_B` bytes
    up (None: of any size).

    Times are seconds per rank, the mean over ranks and repeats, so that parts add up to the whole; counts are calls per
    rank. `p_value` is for "both sides are equal", adjusted for the number of parts (`seatrial.stats.max_t`); None with
    fewer than six blocks, and for parts that were combined.
    """

    what: str
    size_B: int | None
    baseline_s: float
    candidate_s: float
    baseline_count: float
    candidate_count: float
    p_value: float | None = None

    @property
    def difference_s(self) -> float:
        """Candidate minus baseline."""
        return self.candidate_s - self.baseline_s

    @property
    def is_beyond_noise(self) -> bool:
        """Whether the difference is significant at 5 % (over all parts together)."""
        return self.p_value is not None and self.p_value < 0.05


class Moved(Frozen):
    """One counter of the I/O probe on both sides, in bytes of the whole program, the mean over repeats."""

    what: str
    baseline_B: float
    candidate_B: float


class Change(StrEnum):
    """What changed between the sides. Where a profile names the same cause, it has the same value
    (`profiler/cause.py`). The first six: ranks were ready to run, but had no CPU."""

    MORE_RANKS_THAN_CPUS = "more-ranks-than-cpus"
    SAME_CPUS = "ranks-on-the-same-cpus"
    CPU_QUOTA = "cpu-quota"
    STEAL = "steal"
    OTHER_PROCESSES = "other-processes"
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


class ChangeEvidence(Frozen):
    """One signal on both sides; None where it is not known."""

    signal: ChangeSignal
    baseline: float | None
    candidate: float | None


class ChangeDiagnosis(Frozen):
    """A change, and the share of the difference in time that it explains, between 0 and 1.

    `call` and `size_B` are the MPI function and message size with the largest part, `rank` the rank that others wait
    for. `p_value` is for "this part is equal on both sides", adjusted for the number of parts; None for NOT_KNOWN.
    """

    change: Change
    share: float
    evidence: tuple[ChangeEvidence, ...] = ()
    call: str = ""
    size_B: int | None = None
    rank: int | None = None
    p_value: float | None = None


class Breakdown(Frozen):
    """Two experiments of a comparison, part by part; the largest differences first.

    `parameters` are those that both share. `whole` is the wall time of a rank. `repeats` is their number on each side.
    `incomplete` counts repeats that are left out because a rank is missing or ended without MPI_Finalize. `blocks` are
    those with a complete repeat of each side: the parts are tested over these. `diagnoses` say why the times differ,
    the largest share first; empty if they do not differ beyond noise.
    """

    benchmark: str
    parameters: Mapping[str, Value]
    baseline: str
    candidate: str
    whole: Part | None
    parts: tuple[Part, ...]
    moved: tuple[Moved, ...] = ()
    repeats: tuple[int, int] = (0, 0)
    incomplete: int = 0
    blocks: int = 0
    diagnoses: tuple[ChangeDiagnosis, ...] = ()
