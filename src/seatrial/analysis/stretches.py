"""Comparisons of curves as stretches: neighbouring points with the same verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.needed_repeats import needed_repeats, restated_figures, sides_of, why_undecided
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.study.answer import Interval, Stretch, Undecided
from seatrial.model.study.comparison import Comparison, Verdict, decisive
from seatrial.model.study.result import Compared
from seatrial.model.study.study import distinct, distinguishing, is_number


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
    changes so often that places say nothing."""
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
