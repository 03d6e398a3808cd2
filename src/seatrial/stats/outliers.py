"""The odd ones among many values that should be alike, at a stated rate of false alarms.

Two questions are asked, because one answer is not enough. Is the value too far from its fellows, given how far these
spread? And, where several repeats stand behind each value: do the repeats of this one differ from those of the others,
whatever the noise? Only what answers both with yes is odd.

Why the second: nodes that are truly alike look odd when the noise of their repeats has heavy tails or two levels. With
repeats that can be told, by ranks, without any assumption on the noise. With one value each it cannot, so there the
first question is asked far more carefully (tails as heavy as those of t with 3 degrees of freedom), and more values are
asked for: of n values that fall by chance on either of two levels one stands alone with probability n / 2^(n-1), which
is 31 % for 5 and 2 % for 10. A rare second level cannot be distinguished from outliers by single values at all: such a
value is named, for it is odd, and the rate of false alarms does not hold for it. Nor does it for groups that differ for
good in a way that has heavy tails.

All is done on logarithms, so slow and fast are treated alike. What the rates come to is simulated in
tests/stats/test_outlier_screen.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from seatrial.stats.interval import median_interval
from seatrial.stats.student import student_tail

FALSE_ALARM_RATE = 0.05
FEWEST = 5
"""Of fewer nothing can be known: of three nodes, each may be the odd one."""
FEWEST_SINGLE = 10
"""The same where one value stands for each, and noise on two levels must be reckoned with."""

_LEAST_SPREAD = 1e-3
"""Nothing repeats better than to 0.1 %; equal values would make anything odd."""
_ENOUGH_FOR_TAILS = 40
_HEAVY = 3.0
"""Degrees of freedom of the tails that are assumed where there are too few values to see them."""
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
_RATIO_BOUND = 2.5
"""The logarithm of that ratio is below its true value by more than this over the root of n in 5 % of all cases:
simulated for t3."""
_RATIO_DOUBT = 0.5
"""In one case of ten the lighter side of normal values looks heavier than normal by this over the root of n."""
_FEW = 25
_FEW_FACTOR = 1.5
"""Below 25 values, where more than one may be taken out, Rosner's error rates are too high by up to half: simulated."""
_MOST_UNIFORM = 20
"""Up to so many repeats the sum of their ranks is judged by the exact sum of uniform values."""


@dataclass(frozen=True, slots=True)
class Odd:
    """A value that is odd. `ratio` is over the median of all; `p_adjusted` counts all values that were screened."""

    index: int
    ratio: float
    p_adjusted: float


def screen(values: Sequence[float], false_alarm_rate: float = FALSE_ALARM_RATE) -> list[Odd]:
    """The odd ones of single values, in order; empty below `FEWEST_SINGLE`.

    Distances from the median are measured in median absolute deviations. Up to 39 values their tails are taken to be
    those of t with 3 degrees of freedom; from 40 on, those that the ratio of quantiles leaves possible (its one-sided
    95 % bound). Where more than a tenth would be odd there are two kinds, not outliers: empty. ValueError: a value
    that is not positive and finite.
    """
    logs = _logs(values)
    n = len(logs)
    if n < FEWEST_SINGLE:
        return []
    p_values = _heavy_tailed(logs, _tails_left_possible(logs))
    found = [k for k in range(n) if p_values[k] <= false_alarm_rate]
    if len(found) > max(1, n // 10):
        return []
    centre = median(logs)
    return [Odd(k, math.exp(logs[k] - centre), p_values[k]) for k in found]


def screen_groups(groups: Sequence[Sequence[float]], false_alarm_rate: float = FALSE_ALARM_RATE) -> list[Odd]:
    """The odd ones of groups of repeats, in order; empty below `FEWEST` groups. Each stands with its median.

    p is the larger of two: how far the median lies from the others (Rosner's generalised extreme studentised deviates,
    Technometrics 25, 1983, up to a quarter of all; tails that are visibly heavy are allowed for), and the rank sum of
    the group's repeats among all. Both are Bonferroni-adjusted for the number of groups. The group's own 95 % interval
    must leave out the centre, too. Groups with one repeat each are screened as single values. ValueError: an empty
    group, or a value that is not positive and finite.
    """
    if any(not group for group in groups):
        raise ValueError("a group without repeats cannot be screened")
    if all(len(group) == 1 for group in groups):
        return screen([group[0] for group in groups], false_alarm_rate)
    logs = [_logs(group) for group in groups]
    if len(logs) < FEWEST:
        return []
    middles = [median(group) for group in logs]
    centre = median(middles)
    apart = _apart(middles)
    candidates = [k for k in range(len(logs)) if apart[k] <= false_alarm_rate]
    pool = sorted(value for group in logs for value in group) if candidates else []
    found: list[Odd] = []
    for k in candidates:
        p = max(apart[k], min(1.0, len(logs) * _rank_sum_p(logs[k], pool)))
        if p <= false_alarm_rate and _leaves_out(logs[k], centre):
            found.append(Odd(k, math.exp(middles[k] - centre), p))
    return found


def _logs(values: Sequence[float]) -> list[float]:
    if not all(0.0 < value < math.inf for value in values):
        raise ValueError("only values that are positive and finite can be screened")
    return [math.log(value) for value in values]


def _leaves_out(repeats: Sequence[float], centre: float) -> bool:
    """Whether the interval of the repeats' median leaves out the centre. Too few for one: the rank sum has told."""
    interval = median_interval(repeats)
    return interval is None or not interval[0] <= centre <= interval[1]


def _apart(middles: Sequence[float]) -> list[float]:
    """Adjusted p-values of the medians of groups."""
    n = len(middles)
    if n >= _ENOUGH_FOR_TAILS:
        # The lighter of the two sides, so that many odd ones on the other do not look like a heavy tail.
        low, lower, middle, upper, high = _quantiles(sorted(middles), (0.05, 0.25, 0.5, 0.75, 0.95))
        ratio = min(
            (high - middle) / max(upper - middle, _LEAST_SPREAD), (middle - low) / max(middle - lower, _LEAST_SPREAD)
        )
        if ratio > _RATIO_NORMAL * math.exp(_RATIO_DOUBT / math.sqrt(n)):
            return _extreme_deviates(middles, max(_HEAVY, _degrees(ratio)))
    return _extreme_deviates(middles)


def _heavy_tailed(logs: Sequence[float], degrees: float) -> list[float]:
    """Adjusted p-values by distance from the median in absolute deviations, for tails of t with these degrees."""
    n, centre = len(logs), median(logs)
    distances = [abs(value - centre) for value in logs]
    # t3 has 0.7649 of its scale within the median absolute deviation; the factor makes up for the noise of a scale
    # that was estimated from n values: simulated for n from 10 to 512 and error rates from 0.1 % to 5 %.
    deviation = max(median(distances) / _upper_quartile(degrees), _LEAST_SPREAD)
    if median(distances) == 0.0 and n >= _ENOUGH_FOR_TAILS:  # most are equal: what the others do is the spread
        low, high = _quantiles(sorted(logs), (0.1, 0.9))
        deviation = max(deviation, (high - low) / 2.0)
    scale = deviation * (1.0 + 3.5 / n)
    return [
        min(1.0, 2.0 * n * student_tail(distance / scale, degrees)) if distance > 2.0 * scale else 1.0
        for distance in distances
    ]


def _extreme_deviates(logs: Sequence[float], degrees: float | None = None) -> list[float]:
    """Adjusted p-values by generalised extreme studentised deviates, for values that are normal but for the odd ones.

    The farthest from the mean is taken out again and again, up to a quarter of all; each is held against t in units of
    the spread of those that are left. All up to the last that is odd are odd: so two cannot hide each other.

    `degrees`: the tails are as heavy as those of t with these. Then the odd ones must lie apart by a gap, too: in such
    a tail the k-th farthest and the next lie a factor r apart with probability r^(-k degrees) (Renyi's spacings of the
    tail that falls as a power), and half of the error is spent on k = 1, a quarter on k = 2, and so on.
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
            beyond = max(-shifted[first], shifted[last]) / max(abs(value), _LEAST_SPREAD)
            p = max(p, min(1.0, 2.0 * beyond**degrees) ** k)
        taken.append((order[at], min(1.0, p)))
    p_values, least = [1.0] * n, 1.0
    for place, p in reversed(taken):
        least = min(least, p)
        p_values[place] = least
    return p_values


def _rank_sum_p(group: Sequence[float], pool: Sequence[float]) -> float:
    """Two-sided p-value of the sum of the group's ranks in the sorted pool that holds it (Wilcoxon 1945).

    Ranks over the size of the pool are taken for independent uniform values, whose sum spreads a little more than that
    of ranks: a careful choice, and exact in the tail where the normal distribution is not.
    """
    size, m = len(pool), len(group)
    shares = (0.5 * (bisect_left(pool, value) + bisect_right(pool, value)) / size for value in group)
    low = math.fsum(shares)
    nearer = min(low, m - low)
    if m > _MOST_UNIFORM:
        return math.erfc((m / 2.0 - nearer) / math.sqrt(m / 6.0))
    return min(1.0, 2.0 * _uniform_sum(nearer, m))


def _uniform_sum(s: float, m: int) -> float:
    """P(the sum of m independent uniform values <= s) for s <= m / 2 (Irwin 1927, Hall 1927)."""
    terms = ((-1) ** k * math.comb(m, k) * (s - k) ** m for k in range(math.floor(s) + 1))
    return max(0.0, math.fsum(terms) / math.factorial(m))


def _tails_left_possible(logs: Sequence[float]) -> float:
    """Degrees of freedom of the heaviest tails that the middle of the values leaves possible."""
    n = len(logs)
    if n < _ENOUGH_FOR_TAILS:
        return _HEAVY
    return _degrees(_quantile_ratio(logs) * math.exp(_RATIO_BOUND / math.sqrt(n)))


def _quantile_ratio(logs: Sequence[float]) -> float:
    """(5 % to 95 %) over (25 % to 75 %): the weight of the tails, untouched where up to 5 % on either side are odd."""
    low, lower, upper, high = _quantiles(sorted(logs), (0.05, 0.25, 0.75, 0.95))
    return (high - low) / max(upper - lower, _LEAST_SPREAD)


def _degrees(ratio: float) -> float:
    """The degrees of freedom of t with such a ratio of quantiles, interpolated, between 1 and 100."""
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


def _upper_quartile(degrees: float) -> float:
    """The 75 % quantile of t: Cornish and Fisher's expansion is off by less than 1 % from 2 degrees on (A&S 26.7.5)."""
    if degrees < 1.5:
        return 1.0
    z = 0.6744897501960817
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    return z + first / degrees + second / degrees**2
