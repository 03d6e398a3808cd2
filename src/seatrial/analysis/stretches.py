"""Comparisons of curves as stretches: neighbouring points with the same verdict. How many repeats may decide what is
undecided: from the width of its interval, which falls with the root of their number. Figures that restate each other: a
rate and the time it is computed from say the same about two sides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.study.answer import Interval, Stretch, Undecided
from seatrial.model.study.comparison import Comparison, Stopped, Verdict, decisive
from seatrial.model.study.result import Compared
from seatrial.model.study.study import NeededBudget, distinct, distinguishing, is_number
from seatrial.stats.interval import LEAST_SESSIONS, least_repeats
from seatrial.stats.sequential import MOST_GROWTH, least_blocks, needed_blocks

_WIDE = 2.0
ROOM = 1.1
"""Repeats do not all take the same time, nor does each estimate need exactly as many."""


def is_apart(comparison: Comparison) -> bool:
    """Whether the sides were measured apart, in too few sessions for a verdict."""
    sessions = comparison.design.sessions
    return sessions is not None and sessions < LEAST_SESSIONS


def repeats_made(comparison: Comparison) -> int:
    """The number of repeats behind the interval: blocks, or the repeats of the smaller side."""
    if comparison.design.is_interleaved:
        return comparison.design.blocks
    if comparison.design.sessions is not None and not is_apart(comparison):
        return comparison.design.sessions
    return min(len(comparison.baseline.values), len(comparison.candidate.values))


def why_undecided(comparison: Comparison) -> Undecided | None:
    """Why a comparison has no verdict; None if it has one."""
    if comparison.verdict is not Verdict.AMBIGUOUS:
        return None
    if comparison.baseline.is_reference or comparison.candidate.is_reference:
        return Undecided.PUBLISHED
    if is_apart(comparison):
        return Undecided.APART
    if comparison.design.stopped is Stopped.UNFINISHED:
        return Undecided.UNFINISHED
    if comparison.ci95_family is None:
        return Undecided.FEW
    if _for_a_verdict(comparison) is not None:
        return Undecided.WIDE
    return Undecided.AT_MARGIN if _to_the_margin(comparison) is None else Undecided.NOISE


def needed_repeats(comparison: Comparison, points: int = 1) -> int | None:
    """The repeats of each side, or blocks, that would probably decide an undecided comparison; None if more will not
    help, or their number is unknown. `points` counts those of its curve, whose interval needs no more than that of
    one."""
    why = why_undecided(comparison)
    if why is Undecided.FEW:
        return _for_an_interval(comparison, points)
    if why is Undecided.NOISE:
        return _to_the_margin(comparison)
    return _for_a_verdict(comparison) if why is Undecided.WIDE else None


def _for_an_interval(comparison: Comparison, points: int) -> int | None:
    curves = max(1, math.ceil(comparison.family / points))
    made, alpha = repeats_made(comparison), comparison.design.alpha
    if not comparison.design.is_interleaved:
        least = least_repeats(alpha / curves, is_paired=False)
    elif comparison.design.stopped in (Stopped.BUDGET, Stopped.MAXIMUM):
        return needed_blocks(1.0, None, made, comparison.margin, alpha, curves)
    else:
        least = least_blocks(curves)
    return least if least > made else None  # else the values themselves allow no interval


def repeats_to_exclude(ratio: float, ends: tuple[float, float], excluded: float, made: int) -> int | None:
    """The repeats with which the interval of a ratio would exclude a value, if its width falls with the root of their
    number and the estimate stays; None if that is more than 30 times as many, or never."""
    if made < 1 or not all(0.0 < value < math.inf for value in (ratio, *ends, excluded)):
        return None
    half = max(math.log(ratio / ends[0]), math.log(ends[1] / ratio))
    room = abs(math.log(ratio / excluded))
    if room <= 0 or half <= 0 or half / room > math.sqrt(MOST_GROWTH):
        return None
    return max(made + 1, math.ceil(made * (half / room) ** 2))


def half_width(comparison: Comparison) -> float | None:
    """Half of the interval behind the verdict, as a share of the ratio (0.23 of "+2 % [-19, +27]"); None: unknown."""
    ends = comparison.ci95_family
    if ends is None or not all(0.0 < end < math.inf for end in ends):
        return None
    return math.expm1(math.log(ends[1] / ends[0]) / 2)


def _to_the_margin(comparison: Comparison) -> int | None:
    """The repeats with which an interval that is wide against the margin would be as narrow, if its width falls with
    the root of their number. None if it is not wide: then the difference is at the edge of the margin, and more do not
    help. It is wide if it allows every verdict, or is `_WIDE` times as wide as the margin."""
    half, made, ends = half_width(comparison), repeats_made(comparison), comparison.ci95_family
    if half is None or ends is None or made < 1:
        return None
    allows_all = ends[0] < 1 / (1 + comparison.margin) and ends[1] > 1 + comparison.margin
    if not allows_all and half <= _WIDE * comparison.margin:
        return None
    return max(made + 1, math.ceil(made * (math.log1p(half) / math.log1p(comparison.margin)) ** 2))


def _for_a_verdict(comparison: Comparison) -> int | None:
    """The repeats for the nearest verdict."""
    ends, made = comparison.ci95_family, repeats_made(comparison)
    alpha = comparison.design.alpha
    if comparison.asks_equivalence and abs(math.log(comparison.ratio)) < math.log1p(comparison.margin):
        ends, alpha = comparison.ci90_family, 2.0 * alpha  # equivalence is the nearest verdict
    if ends is None or not all(0.0 < value < math.inf for value in (comparison.ratio, *ends)):
        return None
    if not comparison.design.is_interleaved:
        edge = math.copysign(math.log1p(comparison.margin), math.log(comparison.ratio))
        return repeats_to_exclude(comparison.ratio, ends, math.exp(edge), made)
    family = comparison.family
    half_steps = math.log1p(comparison.resolution)
    needed = needed_blocks(comparison.ratio, ends, made, comparison.margin, alpha, family, half_steps)
    return needed if needed is not None and needed <= MOST_GROWTH * made else None


def needed_budget(
    comparisons: Iterable[Comparison], repeat_s: Mapping[str, float], spent_s: float
) -> NeededBudget | None:
    """What the ambiguous comparisons of a finished study still need; None if there are none.

    `repeat_s` has the mean time of a repeat by the id of its experiment, `spent_s` the time that the study took so far
    and that another start of the command takes, both in seconds. Sides that are measured in the same blocks need as
    many as the comparison that needs most.
    """
    comparisons = decisive(comparisons)
    points = Counter(map(_curve, comparisons))
    ended = [one for one in comparisons if one.design.stopped in (Stopped.BUDGET, Stopped.MAXIMUM)]
    undecided = [one for one in ended if one.verdict is Verdict.AMBIGUOUS and one.design.is_interleaved]
    if not undecided:
        return None
    missing: dict[str, int] = {}
    repeats, is_known = 0, True
    for one in undecided:
        made = one.design.blocks
        needed = needed_repeats(one, points[_curve(one)])
        if needed is None:
            is_known = False
            continue
        repeats = max(repeats, needed)
        for key in (*one.baseline.experiments, *one.candidate.experiments):
            missing[key] = max(missing.get(key, 0), needed - made)
    more_s = sum(count * repeat_s.get(key, 0.0) for key, count in missing.items())
    budget_s = spent_s + ROOM * more_s if is_known else None
    return NeededBudget(len(undecided), budget_s, repeats, any(one.ci95_family is None for one in undecided))


def _curve(one: Comparison) -> Hashable:
    return (one.benchmark, one.figure, one.baseline.experiments, one.candidate.experiments)


_ALIKE = 2e-3
"""Ratios this close (as logarithms) are one: a median of rates differs from the rate of a median time by less."""


def restated_figures(comparisons: Iterable[Comparison]) -> Mapping[tuple[Hashable, str], str]:
    """(sides, figure) -> the earlier figure that it restates at every point, of the same benchmark and sides."""
    curves: dict[Hashable, dict[str, dict[Hashable, Comparison]]] = {}
    for one in comparisons:
        if one.is_secondary:  # it is measured by itself
            continue
        point = tuple(sorted((name, distinct(value)) for name, value in one.parameters.items()))
        figures = curves.setdefault(sides_of(one), {})
        figures.setdefault(one.figure, {})[point] = one
    found: dict[tuple[Hashable, str], str] = {}
    for sides, figures in curves.items():
        originals: list[str] = []
        for figure, points in figures.items():
            same = next(
                (
                    other
                    for other in originals
                    if figures[other].keys() == points.keys()
                    and all(_restates(figures[other][point], one) for point, one in points.items())
                ),
                None,
            )
            if same is None:
                originals.append(figure)
            else:
                found[sides, figure] = same
    return found


def sides_of(one: Comparison) -> Hashable:
    """What figures that may restate each other share."""
    return (one.benchmark, one.baseline.name, one.candidate.name)


def _restates(first: Comparison, second: Comparison) -> bool:
    """Whether both have the same verdict, ratio and interval, or inverse ones if only one of them is better higher."""
    own, other = _logs(first, 1), _logs(second, 1 if first.better is second.better else -1)
    return (
        first.verdict is second.verdict
        and own[0] is not None
        and all(a is b if a is None or b is None else abs(a - b) <= _ALIKE for a, b in zip(own, other, strict=True))
    )


def _logs(one: Comparison, sign: int) -> list[float | None]:
    """Of the ratio and of the ends of its interval, or of their inverses."""
    ends = one.simultaneous or (None, None)
    values = (one.ratio, *(ends if sign > 0 else reversed(ends)))
    return [sign * math.log(value) if value is not None and 0.0 < value < math.inf else None for value in values]


class Curve(Frozen):
    """One figure on two sides along one numeric setting, in its order. Without such a setting (`along` None) it is a
    single point. `axis` is what the sides are values of, `restated` are figures that say the same."""

    axis: str
    restated: tuple[str, ...]
    along: str | None
    where: Mapping[str, Value]
    points: tuple[Comparison, ...]


def curves_of(compared: Iterable[Compared]) -> list[Curve]:
    """The curves of comparisons, in order of appearance; without secondary figures, unless there are no others."""
    compared = list(compared)
    deciding = {id(one) for one in decisive(each for one in compared for each in one.comparisons)}
    same = restated_figures(comparison for one in compared for comparison in one.comparisons)
    families: dict[Hashable, list[Comparison]] = {}
    axes: dict[Hashable, str] = {}
    restated: dict[Hashable, list[str]] = {}
    for one in compared:
        for comparison in (each for each in one.comparisons if id(each) in deciding):
            sides = sides_of(comparison)
            original = same.get((sides, comparison.figure))
            if original is not None:
                names = restated.setdefault((sides, original), [])
                names += [comparison.figure] if comparison.figure not in names else []
                continue
            families.setdefault((sides, comparison.figure), []).append(comparison)
            axes[sides, comparison.figure] = one.along
    return [
        replace(curve, axis=axes[key], restated=tuple(restated.get(key, ())))
        for key, family in families.items()
        for curve in _curves(family)
    ]


def stretches_of(curves: Iterable[Curve]) -> tuple[Stretch, ...]:
    """The stretches of all curves, decided ones first; figures that share one are joined."""
    found = [stretch for curve in curves for stretch in _stretches(curve)]
    joined: dict[Hashable, Stretch] = {}
    for one in found:
        key = _common(one)
        joined[key] = _join(joined[key], one) if key in joined else one
    return tuple(sorted(joined.values(), key=lambda one: one.why is not None))


def coarse(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The same stretches, with those of a figure that have one verdict joined wherever they are: for data whose verdict
    changes so often that positions say nothing."""
    totals: dict[Hashable, int] = {}
    joined: dict[Hashable, Stretch] = {}
    for one in stretches:
        for figure in one.figures:
            own = replace(one, figures=(figure,), along=None, values=(), where={}, is_first=False, is_last=False)
            sides = (one.benchmark, figure, one.baseline, one.candidate)
            totals[sides] = totals.get(sides, 0) + one.points
            key = (*sides, one.verdict, one.why)
            if key in joined:
                points = joined[key].points + one.points
                own = replace(_join(joined[key], own), figures=(figure,), restated=one.restated, points=points)
            joined[key] = own
    return tuple(
        replace(one, total=totals[one.benchmark, one.figures[0], one.baseline, one.candidate])
        for one in joined.values()
    )


def _curves(family: Sequence[Comparison]) -> list[Curve]:
    """The curves of one figure on two sides: along the numeric setting with the most values."""
    settings = [comparison.parameters for comparison in family]
    names = distinguishing(settings)
    values = {name: {distinct(own.get(name)) for own in settings} for name in names}
    numeric = [name for name in names if all(is_number(own.get(name)) for own in settings)]
    if not numeric:
        return [Curve("", (), None, _where(one, names), (one,)) for one in family]
    along = max(numeric, key=lambda name: len(values[name]))
    others = [name for name in names if name != along]
    groups = grouped((tuple(distinct(one.parameters.get(name)) for name in others), one) for one in family)
    return [
        Curve("", (), along, _where(own[0], others), tuple(sorted(own, key=lambda one: _number(one.parameters[along]))))
        for own in groups.values()
    ]


def _where(comparison: Comparison, names: Sequence[str]) -> dict[str, Value]:
    return {name: comparison.parameters[name] for name in names if name in comparison.parameters}


def _stretches(curve: Curve) -> list[Stretch]:
    """Runs of neighbouring decided points with one verdict, then the undecided points by reason. An undecided point
    between two with the same verdict does not end their run: it is named among the undecided."""
    decided = [n for n, one in enumerate(curve.points) if one.verdict is not Verdict.AMBIGUOUS]
    runs = groupby(decided, key=lambda n: curve.points[n].verdict)
    found = [_stretch(curve, list(run)) for _, run in runs]
    reasons = grouped((why, n) for n, one in enumerate(curve.points) if (why := why_undecided(one)) is not None)
    return found + [_stretch(curve, own, why) for why, own in reasons.items()]


def _stretch(curve: Curve, places: Sequence[int], why: Undecided | None = None) -> Stretch:
    points = [curve.points[n] for n in places]
    first = points[0]
    needed = [needed_repeats(one, len(curve.points)) for one in points]
    known = [number for number in needed if number is not None]
    return Stretch(
        benchmark=first.benchmark,
        figures=(first.figure,),
        unit=first.unit,
        better=first.better,
        baseline=first.baseline.name,
        candidate=first.candidate.name,
        axis=curve.axis,
        margin=first.margin,
        verdict=first.verdict,
        along=curve.along,
        values=() if curve.along is None else tuple(one.parameters[curve.along] for one in points),
        points=len(points),
        total=len(curve.points),
        is_first=places[0] == 0,
        is_last=places[-1] == len(curve.points) - 1,
        where=curve.where,
        ratios=_range(one.ratio for one in points),
        ci95_family=_hull([one.simultaneous for one in points]),
        why=why,
        made=(min(len(one.baseline.values) for one in points), min(len(one.candidate.values) for one in points)),
        needed=max(known, default=None) if why is not None else None,
        restated=curve.restated,
    )


def _common(one: Stretch) -> Hashable:
    """What figures share in one stretch: all but their names and numbers."""
    where = tuple((name, distinct(value)) for name, value in one.where.items())
    sides = (one.baseline, one.candidate, one.margin, one.verdict, one.why)
    return (one.benchmark, one.unit, one.better, *sides, one.along, one.values, one.total, where)


def _join(first: Stretch, second: Stretch) -> Stretch:
    needed = [number for number in (first.needed, second.needed) if number is not None]
    return replace(
        first,
        figures=(*first.figures, *second.figures),
        restated=(*first.restated, *second.restated),
        ratios=_range(ratio for own in (first.ratios, second.ratios) if own is not None for ratio in own),
        ci95_family=_hull([first.ci95_family, second.ci95_family]),
        made=(min(first.made[0], second.made[0]), min(first.made[1], second.made[1])),
        needed=max(needed, default=None),
    )


def _range(ratios: Iterable[float]) -> Interval | None:
    known = [ratio for ratio in ratios if 0.0 < ratio < math.inf]
    return (min(known), max(known)) if known else None


def _hull(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [ends for ends in intervals if ends is not None]
    if not known or len(known) < len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
