"""Where two sides of a comparison differ: what their ranks spent time on, as recorded by the MPI probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.parameter import Value

COMPUTING = "computing"
"""All of a rank's time outside MPI."""

OTHER_CALLS = "other calls"


@dataclass(frozen=True, slots=True)
class Part:
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


@dataclass(frozen=True, slots=True)
class Moved:
    """One counter of the I/O probe on both sides, in bytes of the whole program, the mean over repeats."""

    what: str
    baseline_B: float
    candidate_B: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Two experiments of a comparison, part by part; the largest differences first.

    `parameters` are those that both share. `whole` is the wall time of a rank. `repeats` is their number on each side.
    `incomplete` counts repeats that are left out because a rank is missing or ended without MPI_Finalize. `blocks` are
    those with a complete repeat of each side: the parts are tested over these.
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
