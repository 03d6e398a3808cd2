"""The ratio of a block whose two processes alternated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

_FEWEST_TURNS = 3


def pair_of_block(
    baseline: float, candidate: float, baseline_turns: Sequence[float] = (), candidate_turns: Sequence[float] = ()
) -> tuple[float, float]:
    """(baseline, candidate) of one block, whose quotient is the ratio of the block.

    Without turns, these are the values of the two repeats. With turns, the ratio is the median of the ratios turn by
    turn, and the candidate is the baseline times that: disturbances affect neighbouring turns of both sides, while the
    medians of the two processes may come from different times. Values not above zero have no ratios.
    """
    turns = list(zip(baseline_turns, candidate_turns, strict=False))
    if len(turns) < _FEWEST_TURNS or not all(first > 0 and second > 0 for first, second in turns):
        return baseline, candidate
    return baseline, baseline * math.exp(median(math.log(second / first) for first, second in turns))
