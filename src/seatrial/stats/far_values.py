"""Which of several values that should be equal is far from the others: from three values to many thousands.

The question depends on how many there are:

- **Up to nine**, their true distribution cannot be seen, only the noise of their repeats. Then equal ones are taken to
  differ by up to the margin, and a value is far if its repeats lie beyond the margin from the centre of the others,
  surely: Student's t with the noise pooled over all.
- **Ten to 399**: generalised extreme studentised deviates, with heavier tails if they are visible
  (Rosner, Technometrics 25, 1983), and a gap: a far value is four times as far as any usual one, unless the repeats
  show that the others are equal.
- **From 400 on**, the tails are fitted: excesses over a threshold have nearly a generalised Pareto distribution
  (Pickands, Annals of Statistics 3, 1975; Davison & Smith, JRSS B 52, 1990). The highest twentieth of them is censored,
  so that odd ones do not shape the tail from which they are to stand out; the shape is taken at its upper confidence
  bound.

Where noise has several levels, all repeats of one may fall on a rare one: it is far only if the repeats of the others
reach its level so seldom that this is unlikely. All is computed on logarithms. The error rates are simulated in
bench/screening_simulation.py and tests/stats/test_far_values.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist, median

from seatrial.model.frozen import Frozen
from seatrial.stats.interval import median_interval
from seatrial.stats.ranks import p_equal, student_tail

FEWEST = 3
"""Of two that differ, either may be the odd one."""
FEW = 10
MANY = 400
FALSE_ALARM_RATE = 0.05

_TAILS = ((400, 0.2, 0.95), (2000, 0.1, 0.99))
"""(number of values, share of them on each side whose excesses are fitted, one-sided confidence of the bound of their
shape), from there on. With more values, less of the tail is enough, and the bound must hold farther out: simulated."""
_CENSORED = 0.05
"""The share of the largest excesses whose size is not used."""
_MOST_APART = 0.5
_DOUBLE = 2.0
"""Within the upper half of the excesses, one that is so many times the next smaller one starts its own group. It
is left out: a rack of odd nodes must not shape the tail from which it stands out."""
_FEWEST_EXCESSES = 0.5
"""With less than this share of a tail above its threshold, most values are equal, and the few others are not a tail."""
_SHAPES = 241
_QUOTIENTS = 300
_LEAST_SPREAD = 1e-3
"""Measurements repeat no better than to 0.1 %; without spread, any value would be far."""
_GAP = 4.0
"""A far value is at least so many times as far from the centre as any usual one: every spread has a farthest one."""
_DIFFERS = 0.05
"""Groups differ if equal ones would look so different in fewer cases."""
_NEARER_END = 0.25
_LIGHT = 5.0
"""Normal noise is hardly ever so many times as far as its spread."""
_ENOUGH_FOR_TAILS = 40
_HEAVY = 3.0
"""Degrees of freedom of the heaviest tails that are assumed."""
_QUANTILE_RATIO = (
    (6.314, 1.0),
    (3.576, 2.0),
    (3.077, 3.0),
    (2.878, 4.0),
    (2.773, 5.0),
    (2.664, 7.0),
    (2.590, 10.0),
    (2.486, 30.0),
    (2.452, 100.0),
)
"""((5 % to 95 %) over (25 % to 75 %) of t, degrees of freedom)."""
_RATIO_NORMAL = 2.439
_RATIO_DOUBT = 0.5
"""In one of ten cases, the lighter side of normal values looks heavier than normal by this over sqrt(n)."""
_FEW = 25
_FEW_FACTOR = 1.5
"""Below 25 values, if more than one may be removed, Rosner's error rates are up to 50 % too high: simulated."""
_GAP_OF_SINGLE = 6.0
"""... of single values, whose noise is not seen: of a tail like that of t with 2 degrees, one in 36 is so far off."""
_MOST_ODD = 0.05
"""Of many, more than this share is another class, not odd."""


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
    if why := why_not(groups):
        return [], why
    if len(groups) >= MANY:
        return _many(groups, rate, margin), ""
    logs = [_logs(group) for group in groups]
    found = (_few if len(logs) < FEW else _several)(logs, rate, margin)
    return _beyond_margin([median(group) for group in logs], _without_rare_levels(found, logs, rate), margin), ""


def why_not(groups: Sequence[Sequence[float]]) -> str:
    """Why these groups of repeats cannot be tested; "": they can."""
    n = len(groups)
    if n < FEWEST:
        return f"{n} cannot be compared: of fewer than {FEWEST}, none is the odd one"
    if n < FEW and any(len(group) == 1 for group in groups):
        return f"{n} with one repeat each: fewer than {FEW} need repeats, which show the noise"
    return ""


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
    cut = int(np.argmax(np.diff(values)[least - 1 : n - least])) + least
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

    More than a tenth, or three of fewer than thirty, are not odd; of single values, two of fewer than twenty.
    """
    are_single = all(len(group) == 1 for group in logs)
    middles = [median(group) for group in logs]
    p_values = _deviate_p_values(middles)
    usual = [k for k, p in enumerate(p_values) if p > rate]
    centre = median(middles[k] for k in usual)
    found = [
        (k, p)
        for k, p in enumerate(p_values)
        if p <= rate and (len(logs[k]) == 1 or _is_apart(logs[k], centre, margin))
    ]
    if len(found) > max(1 if are_single else 2, len(logs) // 10):
        return []
    if are_single:
        return _far_beyond_the_next(found, middles, centre)
    reach = _reach_of_noise([logs[k] for k in usual])
    confirmed = _confirmed(found, middles, usual)
    return [one for one in found if one in confirmed or abs(middles[one[0]] - centre) > reach]


def _far_beyond_the_next(
    found: Sequence[tuple[int, float]], middles: Sequence[float], centre: float
) -> list[tuple[int, float]]:
    """The farthest of these single values, up to the last that is several times as far as the next of all."""
    far = sorted((abs(value - centre) for value in middles), reverse=True)
    most = max((k for k in range(1, len(found) + 1) if far[k - 1] >= _GAP_OF_SINGLE * far[k]), default=0)
    return [(k, p) for k, p in found if most and abs(middles[k] - centre) >= far[most - 1]]


def _confirmed(
    found: list[tuple[int, float]], middles: Sequence[float], usual: Sequence[int]
) -> list[tuple[int, float]]:
    """Those that are several times as far as any usual one."""
    centre = median(middles[k] for k in usual)
    widest = max(abs(middles[k] - centre) for k in usual)
    return [(k, p) for k, p in found if abs(middles[k] - centre) >= _GAP * widest]


def _reach_of_noise(logs: Sequence[Sequence[float]]) -> float:
    """How far the noise of these may hide that they differ: none where the repeats show that they are equal; up to its
    farthest repeat, where it has levels or heavy tails; infinite where they differ."""
    if p_equal(logs) <= _DIFFERS:
        return math.inf
    residuals = [value - middle for group in logs for middle in (median(group),) for value in group]
    farthest = max(map(abs, residuals))
    return 0.0 if farthest <= _LIGHT * max(_spread(residuals), _LEAST_SPREAD) else farthest


def _without_rare_levels(
    found: Sequence[tuple[int, float]], logs: Sequence[Sequence[float]], rate: float
) -> list[tuple[int, float]]:
    """Without those whose repeats may all have fallen on a level that repeats of the others reach, too. By the share of
    these that are at least half as far, it is the chance that this happens to any of so many groups."""
    named = {index for index, _ in found}
    others = sorted(value for index, group in enumerate(logs) if index not in named for value in group)
    centre = median(others)
    kept = []
    for index, p in found:
        own = logs[index]
        if median(own) > centre:
            as_far = len(others) - bisect_left(others, (min(own) + centre) / 2)
        else:
            as_far = bisect_right(others, (max(own) + centre) / 2)
        by_chance = len(logs) * (as_far / len(others)) ** len(own) if len(own) > 1 else 0.0
        if by_chance <= rate:
            kept.append((index, max(p, by_chance)))
    return kept


def _is_apart(repeats: Sequence[float], centre: float, margin: float) -> bool:
    """Whether the repeats themselves are beyond half the margin, and a quarter of their median's distance, on one side:
    the 95 % interval of their median, and all of them if they are too few for one. Noise on two levels moves some
    medians, but not all repeats."""
    low, high = median_interval(repeats) or (min(repeats), max(repeats))
    least = max(0.5 * math.log1p(margin), _NEARER_END * abs(median(repeats) - centre))
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
    if len(far) > _MOST_ODD * n:
        return []
    if far and max(sizes) > 1:
        kept = dict(_without_rare_levels([(one.index, one.p) for one in far], [_logs(own) for own in groups], rate))
        far = [one for one in far if one.index in kept]
    return sorted(far, key=lambda one: one.index)


def pareto_tail(excess: float, shape: float, scale: float) -> float:
    """P(X > excess) of the generalised Pareto distribution with shape >= 0."""
    if shape < 1e-9:
        return math.exp(-excess / scale)
    return float((1.0 + shape * excess / scale) ** (-1.0 / shape))


def tail_fit(excesses: Sequence[float], spread: float, confidence: float) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto distribution of ascending excesses over a threshold.

    Likelihood without those that are their own group, and with the largest twentieth of the others censored, so
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


def _deviate_p_values(middles: Sequence[float]) -> list[float]:
    """Adjusted p-values of the medians of groups."""
    n = len(middles)
    if n >= _ENOUGH_FOR_TAILS:
        # The lighter of the two sides, so that many outliers on the other do not look like a heavy tail.
        low, lower, middle, upper, high = _quantiles(sorted(middles), (0.05, 0.25, 0.5, 0.75, 0.95))
        ratio = min(
            (high - middle) / max(upper - middle, _LEAST_SPREAD), (middle - low) / max(middle - lower, _LEAST_SPREAD)
        )
        if ratio > _RATIO_NORMAL * math.exp(_RATIO_DOUBT / math.sqrt(n)):
            return _extreme_deviates(middles, max(_HEAVY, _degrees(ratio)))
    return _extreme_deviates(middles)


def _extreme_deviates(logs: Sequence[float], degrees: float | None = None) -> list[float]:
    """Adjusted p-values by generalised extreme studentised deviates, for normal values with outliers.

    The value farthest from the mean is removed repeatedly, up to a quarter of all; each is compared with t in units of
    the spread of the remaining ones. All up to the last outlier are outliers, so two cannot mask each other.

    `degrees`: the tails are as heavy as those of t with these degrees of freedom. Then there must also be a gap before
    the outliers: in such a tail, the k-th farthest and the next differ by a factor r with probability r^(-k degrees)
    (Renyi's spacings of a power-law tail); half of the error is spent on k = 1, a quarter on k = 2, and so on.
    """
    n, centre = len(logs), median(logs)
    factor = 2.0 * (_FEW_FACTOR if 8 <= n < _FEW else 1.0)
    order = sorted(range(n), key=logs.__getitem__)
    shifted = [logs[k] - centre for k in order]
    total, squares = math.fsum(shifted), math.fsum(value * value for value in shifted)
    first, last = 0, n - 1
    taken: list[tuple[int, float]] = []
    for k in range(1, n // 4 + 1):
        mean = total / (rest := n - k + 1)
        is_low = mean - shifted[first] > shifted[last] - mean
        at = first if is_low else last
        first, last = (first + 1, last) if is_low else (first, last - 1)
        value = shifted[at]
        total, squares, rest = total - value, squares - value * value, rest - 1
        variance = max((squares - total * total / rest) / (rest - 1), _LEAST_SPREAD**2)
        t = abs(value - total / rest) / math.sqrt(variance * (1.0 + 1.0 / rest))
        p = factor * (rest + 1) * student_tail(t, rest - 1) if t > 2.0 else 1.0
        if degrees is not None:
            p = max(p, _gap_p(abs(value), max(-shifted[first], shifted[last]), degrees) ** k)
        taken.append((order[at], min(1.0, p)))
    p_values, least = [1.0] * n, 1.0
    for place, p in reversed(taken):
        least = min(least, p)
        p_values[place] = least
    return p_values


def _gap_p(farthest: float, next_farthest: float, degrees: float = _HEAVY) -> float:
    """The probability that the farthest value on either side of a power-law tail is so much farther than the next."""
    return float(min(1.0, 2.0 * (next_farthest / max(farthest, _LEAST_SPREAD)) ** degrees))


def _degrees(ratio: float) -> float:
    """The degrees of freedom of t with this ratio of quantiles, interpolated, between 1 and 100."""
    for (above, fewer), (below, more) in pairwise(_QUANTILE_RATIO):
        if ratio >= above:
            return fewer
        if ratio >= below:
            share = (ratio - below) / (above - below)
            return math.exp(share * math.log(fewer) + (1.0 - share) * math.log(more))
    return _QUANTILE_RATIO[-1][1]


def _quantiles(ordered: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Quantiles of sorted values, interpolated between neighbours."""
    places = [(share * (len(ordered) - 1)) for share in shares]
    return [
        ordered[int(at)] + (at - int(at)) * (ordered[min(int(at) + 1, len(ordered) - 1)] - ordered[int(at)])
        for at in places
    ]
