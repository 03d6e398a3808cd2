"""Which of many nodes to measure again, and what the new repeats say.

The farthest of many is far by chance alone. New repeats do not know which was the farthest, so few of them, beside
nodes drawn at random, decide: the error rate is divided by the number of nodes that were measured again, not by that of
all, and the first stage needs no repeats of its own. The error rates are simulated in bench/compare_simulation.py.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import median

from seatrial.model.frozen import Frozen
from seatrial.stats.outliers import FALSE_ALARM_RATE, OutlyingValue, p_in_heavy_tails, rank_sum_p
from seatrial.stats.ranks import student_tail

MOST_SUSPECTS = 6
CONTROLS = 8
FEWEST_CONTROLS = 4
REPEATS = 10
"""Repeats of each node in the second stage: enough to find 5 % in noise of 1 %."""
FEWEST_REPEATS = 6

_NO_SPREAD = 1e-12
_LEAST_SPREAD = 1e-3
_ALIKE = 0.5
"""Nodes that were at least half as far in the first stage are of one kind with a suspect..."""
_MOST_ALIKE = 2
"""... and more than that, or than a tenth of all, are no outliers."""


class Again(Frozen):
    """Positions of the nodes to measure again, farthest first, and of the controls."""

    suspects: tuple[int, ...]
    controls: tuple[int, ...]


def to_measure_again(figures: Sequence[Sequence[float]], seed: str) -> Again | None:
    """The nodes that are farthest from the others in any figure, up to a quarter of all, and random others.

    Each figure has the medians of all nodes, in the same order and positive; a distance is in median absolute
    deviations of its figure. None below six nodes. The same `seed` draws the same controls.
    """
    n = len(figures[0]) if figures else 0
    count = min(MOST_SUSPECTS, n // 4, n - FEWEST_CONTROLS)
    if count < 1 or n < 6:
        return None
    farthest = [0.0] * n
    for values in figures:
        logs = [math.log(value) for value in values]
        centre = median(logs)
        scale = max(median(abs(log - centre) for log in logs), _NO_SPREAD)
        farthest = [max(most, abs(log - centre) / scale) for most, log in zip(farthest, logs, strict=True)]
    order = sorted(range(n), key=lambda node: -farthest[node])
    source = random.Random(seed)  # noqa: S311 - not for security
    controls = source.sample(order[count:], min(CONTROLS, n - count))
    return Again(tuple(order[:count]), tuple(sorted(controls)))


def confirmed(
    first: Sequence[float],
    suspects: Mapping[int, Sequence[float]],
    controls: Sequence[Sequence[float]],
    false_alarm_rate: float = FALSE_ALARM_RATE,
) -> list[OutlyingValue]:
    """The suspects whose new repeats differ from those of the controls, in order.

    `first` are the medians of all nodes in the first stage; `suspects` maps their positions there to their new repeats.
    p is the largest of three: of the rank sum of a suspect's repeats among those of the controls, times the number of
    suspects; of its distance from the controls if nodes truly differ, times the number of all nodes; and of the gap to
    the next of all that were measured again, if the tails of that distribution are heavy. If more than a tenth of all
    nodes were at least half as far in the first stage, there is another kind of nodes instead. `ratio` is over the
    median of the controls. Raises ValueError with fewer than four controls, for a node without repeats, or for a value
    that is not positive and finite.
    """
    if len(controls) < FEWEST_CONTROLS:
        raise ValueError(f"{len(controls)} controls: at least {FEWEST_CONTROLS} are needed")
    if not all(group and all(0.0 < value < math.inf for value in group) for group in (*suspects.values(), *controls)):
        raise ValueError("every node needs repeats that are positive and finite")
    beside = [[math.log(value) for value in group] for group in controls]
    centre = median(median(group) for group in beside)
    shifts = {place: median(math.log(value) for value in group) - centre for place, group in sorted(suspects.items())}
    of_controls = [median(group) - centre for group in beside]
    gaps = dict(zip(shifts, p_in_heavy_tails([*shifts.values(), *of_controls]), strict=False))
    p_values = dict.fromkeys(shifts, 1.0)
    usual = [math.log(value) for value in first]
    middle = median(usual)
    for place, shift in shifts.items():
        own = [math.log(value) for value in suspects[place]]
        pool = sorted([*own, *(value for group in beside for value in group)])
        others = [log - middle for at, log in enumerate(usual) if at != place]
        if not shift or sum(other / shift > _ALIKE for other in others) > max(_MOST_ALIKE, len(usual) // 10):
            continue  # one of another kind
        spread = len(usual) * _prediction_p(shift, of_controls)
        p_values[place] = min(1.0, max(len(suspects) * rank_sum_p(own, pool), spread, 2.0 * gaps[place]))
    return [OutlyingValue(place, math.exp(shifts[place]), p) for place, p in p_values.items() if p <= false_alarm_rate]


def _prediction_p(value: float, others: Sequence[float]) -> float:
    """Two-sided p-value of a value so far from the mean of normal others."""
    n, mean = len(others), math.fsum(others) / len(others)
    variance = max(math.fsum((other - mean) ** 2 for other in others) / (n - 1), _LEAST_SPREAD**2)
    return 2.0 * student_tail(abs(value - mean) / math.sqrt(variance * (1.0 + 1.0 / n)), n - 1)
