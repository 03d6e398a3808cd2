"""Outliers among many values that should be equal, at a stated false alarm rate.

An outlier must pass two tests. Is the value too far from the others, given their spread? And, if each value has several
repeats: do the repeats of this one differ from those of the others, for any noise?

The second test is needed because truly equal nodes look like outliers if the noise of their repeats has heavy tails or
two levels. With repeats, a rank test detects that without assumptions on the noise. With one value each it cannot, so
the first test is then much stricter (tails as heavy as those of t with 3 degrees of freedom) and needs more values: of
n values that fall by chance on either of two levels, one is alone with probability n / 2^(n-1), which is 31 % for 5 and
2 % for 10. Single values cannot distinguish a rare second level from outliers: such a value is reported as an outlier,
and the false alarm rate does not hold for it. Nor does it hold for groups with real, heavy-tailed differences.

All is computed on logarithms, so slow and fast are treated equally. The error rates are simulated in
tests/stats/test_outlier_screen.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from seatrial.model.frozen import Frozen
from seatrial.stats.fleet import DIFFERS, p_equal
from seatrial.stats.interval import median_interval
from seatrial.stats.ranks import student_tail

FALSE_ALARM_RATE = 0.05
FEWEST = 5
"""The minimum number of groups: of three nodes, any may be the outlier."""
FEWEST_SINGLE = 10
"""The minimum number of single values, because noise on two levels is possible."""

_LEAST_SPREAD = 1e-3
"""Measurements repeat no better than to 0.1 %; without spread, any value would be an outlier."""
_ENOUGH_FOR_TAILS = 40
_HEAVY = 3.0
"""Degrees of freedom of the assumed tails if there are too few values to estimate them."""
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
"""In 5 % of cases, the logarithm of that ratio is below its true value by more than this over sqrt(n): simulated for
t3."""
_RATIO_DOUBT = 0.5
"""In one of ten cases, the lighter side of normal values looks heavier than normal by this over sqrt(n)."""
_FEW = 25
_FEW_FACTOR = 1.5
"""Below 25 values, if more than one may be removed, Rosner's error rates are up to 50 % too high: simulated."""
_MOST_NAMED = 2
"""Of few groups, so many may be outliers although they are more than a tenth."""
_NEARER_END = 0.25
"""The nearer end of an outlier's own interval is so far from the centre, as a share of its median's distance."""
_MOST_UNIFORM = 20
"""Up to this number of repeats, the rank sum is tested with the exact sum of uniform values."""


class OutlyingValue(Frozen):
    """An outlier. `ratio` is over the median of all; `p_adjusted` is adjusted for the number of screened values."""

    index: int
    ratio: float
    p_adjusted: float


def are_enough(groups: Sequence[Sequence[float]]) -> bool:
    """Whether there are enough groups for a screen: five, or ten with a single value each."""
    return len(groups) >= (FEWEST_SINGLE if all(len(group) == 1 for group in groups) else FEWEST)


def screen(values: Sequence[float], false_alarm_rate: float = FALSE_ALARM_RATE) -> list[OutlyingValue]:
    """The outliers of single values, in order; empty below `FEWEST_SINGLE`.

    Distances from the median are in median absolute deviations. Up to 39 values, their tails are assumed to be those of
    t with 3 degrees of freedom; from 40 on, the heaviest that the ratio of quantiles allows (its one-sided 95 % bound).
    An outlier must also be beyond a gap. If more than a tenth would be outliers, there are two groups instead: empty.
    Raises ValueError for a value that is not positive and finite.
    """
    logs = _logs(values)
    n = len(logs)
    if n < FEWEST_SINGLE:
        return []
    p_values = _heavy_tailed(logs, _heaviest_possible_tails(logs))
    found = [k for k in range(n) if p_values[k] <= false_alarm_rate]
    if len(found) > max(1, n // 10):
        return []
    centre = median(logs)
    outlying = [OutlyingValue(k, math.exp(logs[k] - centre), p_values[k]) for k in found]
    return _beyond_a_gap(outlying, [log - centre for log in logs], false_alarm_rate)


def screen_groups(groups: Sequence[Sequence[float]], false_alarm_rate: float = FALSE_ALARM_RATE) -> list[OutlyingValue]:
    """The outliers of groups of repeats, in order, each represented by its median; empty below `FEWEST` groups.

    p is the larger of two: of the distance of the median from the others (Rosner's generalised extreme studentised
    deviates, Technometrics 25, 1983, up to a quarter of all; with heavier tails if they are visible), and of the rank
    sum of the group's repeats among all. Both are Bonferroni-adjusted for the number of groups. The group's own 95 %
    interval must also exclude the centre. If the other groups truly differ, too (`seatrial.stats.fleet`), an outlier
    must be beyond a gap that their spread with heavy tails makes unlikely. More than a tenth of the groups are no
    outliers but another kind: empty. Groups with one repeat each are screened as single values. Raises ValueError
    for an empty group, or a value that is not positive and finite.
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
    distance_p = deviate_p_values(middles)
    candidates = [k for k in range(len(logs)) if distance_p[k] <= false_alarm_rate]
    pool = sorted(value for group in logs for value in group) if candidates else []
    found: list[OutlyingValue] = []
    for k in candidates:
        p = max(distance_p[k], min(1.0, len(logs) * rank_sum_p(logs[k], pool)))
        if p <= false_alarm_rate and _excludes(logs[k], centre):
            found.append(OutlyingValue(k, math.exp(middles[k] - centre), p))
    if not found or len(found) > max(_MOST_NAMED, len(logs) // 10):
        return []
    named = {one.index for one in found}
    if p_equal([group for k, group in enumerate(logs) if k not in named]) > DIFFERS:
        return found
    beyond = p_in_heavy_tails(middles)
    far = [OutlyingValue(one.index, one.ratio, max(one.p_adjusted, beyond[one.index])) for one in found]
    return _beyond_a_gap(far, [middle - centre for middle in middles], false_alarm_rate)


def _beyond_a_gap(
    outlying: Sequence[OutlyingValue], distances: Sequence[float], false_alarm_rate: float
) -> list[OutlyingValue]:
    """Those that are so much farther than all others on their side that heavy tails make it unlikely. Others may be as
    far, but not outliers, if their repeats are on two levels."""
    named = {one.index for one in outlying}
    rest = [distance for k, distance in enumerate(distances) if k not in named]
    high, low = max(0.0, *rest), max(0.0, *(-distance for distance in rest))
    found = []
    for one in outlying:
        distance = distances[one.index]
        p = max(one.p_adjusted, _gap_p(abs(distance), high if distance > 0 else low))
        if p <= false_alarm_rate:
            found.append(OutlyingValue(one.index, one.ratio, p))
    return found


def _logs(values: Sequence[float]) -> list[float]:
    if not all(0.0 < value < math.inf for value in values):
        raise ValueError("screened values must be positive and finite")
    return [math.log(value) for value in values]


def _excludes(repeats: Sequence[float], centre: float) -> bool:
    """Whether the interval of the repeats' median is away from the centre by a quarter of the median's distance: of
    repeats on two levels, some medians fall on the rarer level. True with too few repeats for an interval."""
    interval = median_interval(repeats)
    if interval is None:
        return True
    distance = median(repeats) - centre
    nearer = interval[0] if distance > 0 else interval[1]
    return (nearer - centre) / distance > _NEARER_END if distance else False


def deviate_p_values(middles: Sequence[float]) -> list[float]:
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


def _heavy_tailed(logs: Sequence[float], degrees: float) -> list[float]:
    """Adjusted p-values by distance from the median in absolute deviations, for the tails of t with `degrees`."""
    n, centre = len(logs), median(logs)
    distances = [abs(value - centre) for value in logs]
    # The median absolute deviation of t3 is 0.7649 of its scale. The factor 1 + 3.5/n corrects for the noise of a scale
    # estimated from n values: simulated for n from 10 to 512 and error rates from 0.1 % to 5 %.
    deviation = max(median(distances) / _upper_quartile(degrees), _LEAST_SPREAD)
    if median(distances) == 0.0 and n >= _ENOUGH_FOR_TAILS:  # most are equal: the others determine the spread
        low, high = _quantiles(sorted(logs), (0.1, 0.9))
        deviation = max(deviation, (high - low) / 2.0)
    scale = deviation * (1.0 + 3.5 / n)
    return [
        min(1.0, 2.0 * n * student_tail(distance / scale, degrees)) if distance > 2.0 * scale else 1.0
        for distance in distances
    ]


def p_in_heavy_tails(logs: Sequence[float]) -> list[float]:
    """The probability, adjusted for their number, of each value so far beyond a gap if the values truly differ with
    tails as heavy as those of t with 3 degrees of freedom."""
    return _extreme_deviates(logs, _HEAVY)


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


def rank_sum_p(group: Sequence[float], pool: Sequence[float]) -> float:
    """Two-sided p-value of the sum of the group's ranks in the sorted pool that contains it (Wilcoxon 1945).

    Ranks over the pool size are treated as independent uniform values, whose sum has a slightly larger spread: this is
    conservative, and exact in the tail, where the normal distribution is not.
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


def _heaviest_possible_tails(logs: Sequence[float]) -> float:
    """Degrees of freedom of the heaviest tails compatible with the middle of the values."""
    n = len(logs)
    if n < _ENOUGH_FOR_TAILS:
        return _HEAVY
    return _degrees(_quantile_ratio(logs) * math.exp(_RATIO_BOUND / math.sqrt(n)))


def _quantile_ratio(logs: Sequence[float]) -> float:
    """(5 % to 95 %) over (25 % to 75 %): the weight of the tails, robust against up to 5 % outliers on either side."""
    low, lower, upper, high = _quantiles(sorted(logs), (0.05, 0.25, 0.75, 0.95))
    return (high - low) / max(upper - lower, _LEAST_SPREAD)


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


def _upper_quartile(degrees: float) -> float:
    """The 75 % quantile of t: Cornish-Fisher expansion, error below 1 % from 2 degrees on (A&S 26.7.5)."""
    if degrees < 1.5:
        return 1.0
    z = 0.6744897501960817
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    return z + first / degrees + second / degrees**2
