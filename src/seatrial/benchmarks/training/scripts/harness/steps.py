"""The steps of a training run: which are warm-up, and which are measured.

Warm-up ends when the median of the last three steps differs from that of the three before by less than 5 %, or after
`most` steps. The first step is neither: it compiles and allocates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

_WINDOW = 3
_MOST_CHANGE = 0.05


def is_steady(times_s: Sequence[float]) -> bool:
    """Whether the last steps took as long as those before them."""
    if len(times_s) < 2 * _WINDOW:
        return False
    last, before = median(times_s[-_WINDOW:]), median(times_s[-2 * _WINDOW : -_WINDOW])
    return abs(last - before) < _MOST_CHANGE * before


def warm_up(step: Callable[[], float], most: int, agreed: Callable[[bool], bool]) -> tuple[list[float], bool]:
    """The times of the warm-up's steps, and whether they became steady. `step` makes one and returns its time;
    `agreed` gives all processes the answer of the first."""
    times_s: list[float] = []
    while len(times_s) < most:
        times_s.append(step())
        if agreed(is_steady(times_s)):
            return times_s, True
    return times_s, False
