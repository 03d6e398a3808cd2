"""Which of several values that should be equal is far from the others: from three values to many thousands.

The question depends on how many there are:

- **Up to nine**, their true distribution cannot be seen, only the noise of their repeats. Then equal ones are taken to
  differ by up to the margin, and a value is far if its repeats lie beyond the margin from the centre of the others,
  surely: Student's t with the noise pooled over all.
- **Ten to 399**: generalised extreme studentised deviates, with heavier tails if they are visible
  (`seatrial.stats.outliers`), and a gap: a far value is four times as far as any usual one.
- **From 400 on**, the tails are fitted: excesses over a threshold have nearly a generalised Pareto distribution
  (Pickands, Annals of Statistics 3, 1975; Davison & Smith, JRSS B 52, 1990). The highest twentieth of them is censored,
  so that odd ones do not shape the tail from which they are to stand out; the shape is taken at its upper confidence
  bound.

All is computed on logarithms. The error rates are simulated in bench/screening_simulation.py.

Which of many nodes to measure again, and what the new repeats say.

The farthest of many is far by chance alone. New repeats do not know which was the farthest, so few of them, beside
nodes drawn at random, decide: the error rate is divided by the number of nodes that were measured again, not by that of
all, and the first stage needs no repeats of its own. The error rates are simulated in bench/compare_simulation.py.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist, median

from seatrial.model.frozen import Frozen
from seatrial.stats.interval import median_interval
from seatrial.stats.outliers import FALSE_ALARM_RATE, OutlyingValue, deviate_p_values, p_in_heavy_tails, rank_sum_p
from seatrial.stats.ranks import student_tail

FEWEST = 3
"""Of two that differ, either may be the odd one."""
FEW = 10
MANY = 400

_TAILS = ((400, 0.2, 0.95), (2000, 0.1, 0.99))
"""(number of values, share of them on each side whose excesses are fitted, one-sided confidence of the bound of their
shape), from there on. With more values, less of the tail is enough, and the bound must hold farther out: simulated."""
_CENSORED = 0.05
"""The share of the largest excesses whose size is not used."""
_MOST_APART = 0.5
_DOUBLE = 2.0
"""Within the upper half of the excesses, one that is so many times the next smaller one starts a group of its own. It
is left out: a rack of odd nodes must not shape the tail from which it stands out."""
_FEWEST_EXCESSES = 0.5
"""With less than this share of a tail above its threshold, most values are equal, and the few others are no tail."""
_SHAPES = 241
_QUOTIENTS = 300
_LEAST_SPREAD = 1e-3
_GAP = 4.0
"""A far value is at least so many times as far from the centre as any usual one: every spread has a farthest one."""
_MOST_ODD = 0.05
"""Of many, more than this share is no oddity but another class."""


class FarValue(Frozen):
    """A value far from the others. `ratio` is over the median of the others; `distance` in units of their spread (1.48
    median absolute deviations); `p` is adjusted for the number of values."""

    index: int
    ratio: float
    distance: float | None
    p: float


def far_values(groups: Sequence[Sequence[float]], rate: float, margin: float) -> tuple[list[FarValue], str]:
    """The far ones of groups of repeats, at the family-wise error `rate`, and why there was no test ("": there was).

    Raises ValueError for an empty group, or a value that is not positive and finite.
    """
    n = len(groups)
    if n < FEWEST:
        return [], f"{n} cannot be compared: of fewer than {FEWEST}, none is the odd one"
    if n < FEW:
        logs = [_logs(group) for group in groups]
        if any(len(group) < 2 for group in logs):
            return [], f"{n} with one repeat each: fewer than {FEW} need repeats, which show the noise"
        found = _few(logs, rate, margin)
    elif n < MANY:
        logs = [_logs(group) for group in groups]
        found = _several(logs, rate, margin)
    else:
        return _many(groups, rate, margin), ""
    return _beyond_margin([median(group) for group in logs], found, margin), ""


def two_classes(middles: Sequence[float], margin: float) -> tuple[int, ...]:
    """The positions of the smaller of two classes of logarithms, each without the other's values between its own.

    Between the classes is a gap of at least the margin, which is wider than the middle 80 % of either class. Each
    class has at least three values and a twentieth of all. Empty if there is no such gap.
    """
    import numpy as np

    n = len(middles)
    least = max(3, math.ceil(0.05 * n))
    if n < 2 * least:
        return ()
    order = np.argsort(middles, kind="stable")
    values = np.asarray(middles, dtype=np.float64)[order]
    gaps = np.diff(values)[least - 1 : n - least]
    cut = int(np.argmax(gaps)) + least
    gap = float(values[cut] - values[cut - 1])
    for side in (values[:cut], values[cut:]):
        low, high = np.quantile(side, (0.1, 0.9))
        if gap <= high - low:
            return ()
    if gap <= math.log1p(margin):
        return ()
    chosen = order[:cut] if 2 * cut <= n else order[cut:]
    return tuple(sorted(int(k) for k in chosen))


def _logs(group: Sequence[float]) -> list[float]:
    if not group or not all(0.0 < value < math.inf for value in group):
        raise ValueError("screened values must be positive and finite, and each needs a repeat")
    return [math.log(value) for value in group]


def _spread(values: Sequence[float]) -> float:
    centre = median(values)
    return 1.4826 * median(abs(value - centre) for value in values)


def _beyond_margin(middles: Sequence[float], found: Sequence[tuple[int, float]], margin: float) -> list[FarValue]:
    """Those whose ratio is beyond the margin, compared with all that are not far."""
    named = {index for index, _ in found}
    others = [value for index, value in enumerate(middles) if index not in named]
    centre, spread = median(others), _spread(others)
    far = []
    for index, p in found:
        shift = middles[index] - centre
        if abs(shift) > math.log1p(margin):
            far.append(FarValue(index, math.exp(shift), abs(shift) / spread if spread > 0 else None, p))
    return far


def _few(logs: Sequence[Sequence[float]], rate: float, margin: float) -> list[tuple[int, float]]:
    """Far ones of a few: by the noise of their repeats, beyond the margin, one after another, the farthest first.

    At most a third are far, else it is unclear which are the usual ones.
    """
    n = len(logs)
    middles = [median(group) for group in logs]
    residuals = [abs(value - middle) for group, middle in zip(logs, middles, strict=True) for value in group]
    squares = sum(residual * residual for residual in residuals)
    degrees = sum(len(group) - 1 for group in logs)
    noise = max(math.sqrt(squares / degrees), _LEAST_SPREAD)
    found: list[tuple[int, float]] = []
    usual = list(range(n))
    for _ in range(max(1, n // 3)):
        centres = {k: median(middles[other] for other in usual if other != k) for k in usual}
        farthest = max(usual, key=lambda k: abs(middles[k] - centres[k]))
        centre, most = centres[farthest], abs(middles[farthest] - centres[farthest])
        rest = [other for other in usual if other != farthest]
        repeats = sum(len(logs[other]) for other in rest)
        # A median varies by about pi/2 more than a mean.
        error = noise * math.sqrt(math.pi / 2 * (1 / len(logs[farthest]) + 1 / repeats))
        beyond = most - math.log1p(margin)
        p = min(1.0, 2 * n * student_tail(beyond / error, degrees)) if beyond > 0 else 1.0
        is_alone = most >= _GAP * max(abs(middles[other] - centre) for other in rest)
        # A second far one hides the first only if both are; so those that are left are tried together.
        if p > rate or not _is_apart(logs[farthest], centre, margin) or not (is_alone or len(found) + 2 <= n // 3):
            break
        found.append((farthest, p))
        usual = rest
    return _confirmed(found, middles, usual)


def _several(logs: Sequence[Sequence[float]], rate: float, margin: float) -> list[tuple[int, float]]:
    """Far ones of ten and more: by their distance in the spread of the others, and beyond a gap.

    More than a tenth, or two of fewer than twenty, are no oddities.
    """
    middles = [median(group) for group in logs]
    p_values = deviate_p_values(middles)
    usual = [k for k, p in enumerate(p_values) if p > rate]
    centre = median(middles[k] for k in usual)
    found = [
        (k, p)
        for k, p in enumerate(p_values)
        if p <= rate and (len(logs[k]) == 1 or _is_apart(logs[k], centre, margin))
    ]
    if len(found) > max(2, len(logs) // 10):
        return []
    return _confirmed(found, middles, usual)


def _confirmed(
    found: list[tuple[int, float]], middles: Sequence[float], usual: Sequence[int]
) -> list[tuple[int, float]]:
    """Those that are several times as far as any usual one."""
    centre = median(middles[k] for k in usual)
    widest = max(abs(middles[k] - centre) for k in usual)
    return [(k, p) for k, p in found if abs(middles[k] - centre) >= _GAP * widest]


def _is_apart(repeats: Sequence[float], centre: float, margin: float) -> bool:
    """Whether the repeats themselves are beyond half the margin on one side: the 95 % interval of their median, and all
    of them if they are too few for one. Noise on two levels moves some medians, but not all repeats."""
    low, high = median_interval(repeats) or (min(repeats), max(repeats))
    least = 0.5 * math.log1p(margin)
    return low - centre > least or centre - high > least


def _many(groups: Sequence[Sequence[float]], rate: float, margin: float) -> list[FarValue]:
    """Far ones of many, by the fitted tails of both sides."""
    import numpy as np

    n = len(groups)
    sizes = {len(group) for group in groups}
    if 0 in sizes:
        raise ValueError("screened values must be positive and finite, and each needs a repeat")
    if len(sizes) == 1:
        table = np.asarray(groups, dtype=np.float64)
        if not (np.isfinite(table).all() and (table > 0).all()):
            raise ValueError("screened values must be positive and finite, and each needs a repeat")
        middles = np.median(np.log(table), axis=1)
    else:
        middles = np.asarray([median(_logs(group)) for group in groups], dtype=np.float64)
    centre = float(np.median(middles))
    shifts = middles - centre
    spread = max(1.4826 * float(np.median(np.abs(shifts))), _LEAST_SPREAD)
    far: list[FarValue] = []
    _, tail, confidence = max(row for row in _TAILS if row[0] <= n)
    for sign in (1.0, -1.0):
        side = sign * shifts
        threshold = float(np.quantile(side, 1.0 - tail))
        excesses = np.sort(side[side > threshold] - threshold)
        if len(excesses) < _FEWEST_EXCESSES * tail * n:
            shape, scale = 0.0, spread
        else:
            shape, scale = tail_fit(excesses.tolist(), spread, confidence)
        candidates = np.flatnonzero(side > max(math.log1p(margin), threshold))
        share = len(excesses) / n
        for k in candidates[np.argsort(-side[candidates])].tolist():
            p = min(1.0, 2.0 * n * share * pareto_tail(float(side[k]) - threshold, shape, scale))
            if p > rate:
                break  # all others are nearer
            if len(groups[k]) > 1 and not _is_apart(_logs(groups[k]), centre, margin):
                continue
            far.append(FarValue(k, math.exp(sign * float(side[k])), float(side[k]) / spread, p))
    return [] if len(far) > _MOST_ODD * n else sorted(far, key=lambda one: one.index)


def pareto_tail(excess: float, shape: float, scale: float) -> float:
    """P(X > excess) of the generalised Pareto distribution with shape >= 0."""
    if shape < 1e-9:
        return math.exp(-excess / scale)
    return float((1.0 + shape * excess / scale) ** (-1.0 / shape))


def tail_fit(excesses: Sequence[float], spread: float, confidence: float) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto distribution of ascending excesses over a threshold.

    Likelihood without those that are a group of their own, and with the largest twentieth of the others censored, so
    that odd ones count only as "large". The shape is its upper confidence bound by the likelihood ratio, and at least
    0: no tail is taken to be lighter than exponential.
    """
    import numpy as np

    every = np.asarray(excesses, dtype=np.float64)
    cut = max(2, math.ceil(len(every) * (1.0 - _CENSORED)))
    least = max(2, math.ceil(len(every) * (1.0 - _MOST_APART)))
    starts = np.flatnonzero(every[least:cut] >= _DOUBLE * every[least - 1 : cut - 1])
    if len(starts):
        every = every[: least + int(starts[0])]
        cut = max(2, math.ceil(len(every) * (1.0 - _CENSORED)))
    known, cap, censored = every[:cut], float(every[cut - 1]), len(every) - cut
    unit = max(float(np.median(known)), 1e-3 * spread)
    shapes = np.linspace(0.0, 1.5, _SHAPES)
    # The likelihood depends on the values only through two sums, which the quotient of shape and scale determines.
    quotients = np.geomspace(1e-4, 20.0, _QUOTIENTS) / unit
    logs = np.log1p(quotients[:, None] * np.append(known, cap)[None, :])
    sums, of_cap = logs[:, :-1].sum(axis=1), logs[:, -1]
    inverse = 1.0 / shapes[1:, None]
    likelihoods = (
        -cut * np.log(shapes[1:, None] / quotients[None, :])
        - (1.0 + inverse) * sums[None, :]
        - censored * inverse * of_cap[None, :]
    )
    chosen = likelihoods.argmax(axis=1)
    exponential = float(known.sum() + censored * cap) / cut
    best = np.append(-cut * math.log(exponential) - cut, likelihoods.max(axis=1))
    bound = 0.5 * NormalDist().inv_cdf(confidence) ** 2
    place = int(np.flatnonzero(best >= best.max() - bound)[-1])
    shape = float(shapes[place])
    return shape, exponential if place == 0 else shape / float(quotients[chosen[place - 1]])


MOST_SUSPECTS = 6
CONTROLS = 8
FEWEST_CONTROLS = 4
REPEATS = 10
"""Repeats of each node in the second stage: enough to find 5 % in noise of 1 %."""
FEWEST_REPEATS = 6

_NO_SPREAD = 1e-12


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
