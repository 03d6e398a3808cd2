"""The odd ones among nodes or devices in one figure, classes of nodes, and the distribution over all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import FactValue
from seatrial.model.study.screen import (
    FALSE_ALARM_RATE,
    FigureOverNodes,
    Item,
    ItemFigure,
    NodeClasses,
    NotSeenAgain,
    Odd,
    OddKind,
)
from seatrial.stats.far_values import FarValue, far_values, two_classes

NodeFacts = Mapping[str, Mapping[str, FactValue]]
"""Node -> fact -> value."""

Namer = Callable[[Item], tuple[OddKind, str, str]]
"""Item -> kind, name and remedy."""

_MOST_MEMBERS = 0.95


class Share(Frozen):
    """The part of the false alarm rate that one figure may spend, and the difference that counts as none."""

    rate: float
    margin: float


def screen_figure(
    figure: ItemFigure, facts: NodeFacts, share: Share, namer: Namer
) -> tuple[list[Odd], list[NodeClasses], str]:
    """The odd items of a figure, its two classes if there are any, and why it was not screened ("": it was).

    Of two classes each is screened for itself, so that neither looks odd, and odd ones of both are found.
    """
    values = list(figure.values)
    logs = list(map(math.log, map(median, values)))
    minority = two_classes(logs, share.margin)
    parts: list[list[int]] = [list(range(len(figure.items)))]
    classes: list[NodeClasses] = []
    if minority:
        inside = set(minority)
        others = [k for k in parts[0] if k not in inside]
        parts = [others, list(minority)]
        classes.append(_classes(figure, minority, others, logs, facts))
    odd: list[Odd] = []
    why = ""
    for part in parts:
        far, why = far_values([values[k] for k in part], share.rate / len(parts), share.margin)
        odd += [_odd(figure, part, one, share, namer, len(parts)) for one in far]
    return odd, classes, "" if minority else why


def confirmed(
    figure: ItemFigure, odd: Sequence[Odd], share: Share, namer: Namer
) -> tuple[list[Odd], list[NotSeenAgain]]:
    """The odd ones of a figure that were odd again when they were measured again, or were not; and the others.

    An item is odd again if its later repeats, instead of its first ones, are far from the others in the same
    direction. Later repeats confirm only: what was not odd at first is not odd by them.
    """
    if not figure.later or not odd:
        return list(odd), []
    values = tuple(figure.later.get(place, own) for place, own in enumerate(figure.values))
    again, _, _ = screen_figure(replace(figure, values=values), {}, share, namer)
    ratios = {(one.kind, one.what): one.ratio for one in again}
    places = {namer(item)[:2]: place for place, item in enumerate(figure.items)}
    kept: list[Odd] = []
    passed: list[NotSeenAgain] = []
    for one in odd:
        place = places[one.kind, one.what]
        if place not in figure.later:
            kept.append(one)
            continue
        later = median(figure.later[place]) / one.usual
        ratio = ratios.get((one.kind, one.what))
        if ratio is not None and (ratio > 1.0) is (one.ratio > 1.0):
            kept.append(replace(one, why=f"{(later - 1.0) * 100.0:+.1f} % when measured again"))
        else:
            parts = (one.kind, one.what, one.benchmark, one.figure, one.ratio, later, one.parameters)
            passed.append(NotSeenAgain(*parts))
    return kept, passed


def _odd(figure: ItemFigure, part: Sequence[int], far: FarValue, share: Share, namer: Namer, parts: int) -> Odd:
    place = part[far.index]
    item = figure.items[place]
    kind, what, remedy = namer(item)
    value = median(figure.values[place])
    is_better = (far.ratio > 1.0) is (figure.better is Better.HIGHER)
    # `p` is adjusted for the values of this figure; the share of the rate adjusts it for all figures.
    p = min(1.0, far.p * FALSE_ALARM_RATE / share.rate * parts)
    return Odd(
        kind=kind,
        what=what,
        nodes=(item.node,),
        benchmark=figure.benchmark,
        figure=figure.figure,
        unit=figure.unit,
        value=value,
        usual=value / far.ratio,
        ratio=far.ratio,
        distance=far.distance,
        sureness=1.0 - p,
        false_alarm_rate=FALSE_ALARM_RATE,
        remedy=f"{what} is better than the others: compare its settings and parts with theirs" if is_better else remedy,
        n=len(part),
        parameters=figure.parameters,
    )


def _classes(
    figure: ItemFigure, minority: Sequence[int], others: Sequence[int], logs: Sequence[float], facts: NodeFacts
) -> NodeClasses:
    ratio = math.exp(median(logs[k] for k in minority) - median(logs[k] for k in others))
    small = list(dict.fromkeys(figure.items[k].node for k in minority))
    large = list(dict.fromkeys(figure.items[k].node for k in others))
    separating = tuple(separating_facts(small, large, facts))
    n, parameters = len(figure.items), figure.parameters
    return NodeClasses(figure.benchmark, figure.figure, tuple(small), n, ratio, separating, parameters)


def separating_facts(small: Sequence[str], large: Sequence[str], facts: NodeFacts) -> list[str]:
    """The facts whose values tell the two groups apart: no value is in both (up to one of twenty nodes may deviate)."""
    found = []
    for name in sorted({name for node in (*small, *large) for name in facts.get(node, {})}):
        sides = []
        for side in (small, large):
            ((value, number),) = Counter(facts.get(node, {}).get(name) for node in side).most_common(1)
            sides.append((value, number / len(side)))
        (value, share), (other, of_others) = sides
        if value != other and min(share, of_others) >= _MOST_MEMBERS:
            found.append(name)
    return found


def over_nodes(kind: OddKind, figure: ItemFigure) -> FigureOverNodes:
    """The distribution of a figure over its items."""
    later = figure.later
    medians = [median([*own, *later[place]] if place in later else own) for place, own in enumerate(figure.values)]
    ordered, centre = sorted(medians), median(medians)
    low, high = (ordered[round(share * (len(ordered) - 1))] / centre for share in (0.05, 0.95))
    return FigureOverNodes(
        kind,
        figure.benchmark,
        figure.figure,
        figure.unit,
        figure.better,
        figure.items,
        tuple(medians),
        centre,
        (low, high),
        figure.parameters,
    )
