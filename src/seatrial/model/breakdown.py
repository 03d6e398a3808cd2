"""Where the difference of two sides sits: what their ranks spent their time on, as the MPI probe recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.parameter import Value

COMPUTING = "computing"
"""Everything of a rank's time that is not spent in MPI."""

OTHER_CALLS = "other calls"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that time goes into: `what` is COMPUTING, OTHER_CALLS, or an MPI function with sizes from `size_B`
    bytes on (None: of any size).

    Times are seconds of one rank, the mean over ranks and repeats, so that parts add up to the whole; counts are calls
    of one rank. `p_value` is that of "both sides are alike" (Welch's test, adjusted by Holm over the parts); None where
    there are too few repeats.
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
        """Candidate less baseline."""
        return self.candidate_s - self.baseline_s

    @property
    def is_beyond_noise(self) -> bool:
        """Whether repeats as these are seldom (1 in 20, all parts together) so far apart by chance."""
        return self.p_value is not None and self.p_value < 0.05


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of the whole program, the mean over repeats: one counter of the I/O probe on both sides."""

    what: str
    baseline_B: float
    candidate_B: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Two experiments of a comparison, part by part; the largest differences first.

    `parameters` are those that both share. `whole` is the wall time of a rank. `repeats` on each side. `incomplete`
    counts repeats of which a rank lacks or ended without MPI_Finalize; they are left out.
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
