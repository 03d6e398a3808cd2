"""The odd link of a node, pair of nodes or uplink of a switch, from figures of pairs of nodes.

The rate of a pair is that of the slowest part of its way: the links of both nodes, and across switches both uplinks.
So the best pairs of a node show its own link, whatever its other partners have; the best pairs of a switch with others,
relative to what the nodes at both ends can, show its uplink; and a pair that is slower than all of these is odd itself.
What all pairs of a node share and the pairs without it do not is the fault of its link. Times are inverted: slow is
low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.screening.nodes import Share, over_nodes, screen_figure
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import count
from seatrial.model.study.screen import (
    FALSE_ALARM_RATE,
    FigureOverNodes,
    HalfFigure,
    Item,
    ItemFigure,
    Odd,
    OddKind,
    PairFigure,
)
from seatrial.stats.far_values import FEWEST, far_values

_BEST = 0.75
"""The rate of a node's link is at this quantile of its pairs: up to three quarters of them may be slow for others."""
_MOST_OF_A_SWITCH = 0.75
"""So many of a switch's nodes must be slow to name the switch instead."""
_LEAST_UPLINK = 0.75
"""With two switches, or all of them alike: a share of the designed bandwidth below this is named."""
_LEAST_PAIR = 0.1
"""A pair that is slower than its nodes by less than this is not named."""
_TESTS = 4
"""Nodes' links, uplinks and pairs share the error rate of a figure, with one in reserve."""

Pair = tuple[str, str]


class LinkAnswer(Frozen):
    """The odd ones of one figure of pairs, the distributions of links and uplinks, and what could not be screened."""

    odd: tuple[Odd, ...] = ()
    figures: tuple[FigureOverNodes, ...] = ()
    not_screened: tuple[str, ...] = ()


def screen_pairs(
    figure: PairFigure, switch_of: Mapping[str, str], share: Share, oversubscription: float | None = None
) -> LinkAnswer:
    """The odd links, uplinks and pairs of one figure; `oversubscription` is the design's, None if it is unknown.

    Raises ValueError for a value that is not positive.
    """
    each = Share(share.rate / _TESTS, share.margin)
    quick = _Quickness(figure, switch_of)
    links = quick.links()
    if len(links.items) < FEWEST:
        few = (
            f"{figure.benchmark} {figure.figure}: {count(len(links.items), 'node')} with messages to two others or "
            f"more: which end is slow cannot be said of fewer than {FEWEST}"
        )
        return LinkAnswer(not_screened=(few,))
    odd, _, why = screen_figure(links, {}, each, lambda item: _named_link(item.node, switch_of))
    slow = [one for one in odd if one.ratio < 1.0]  # a link faster than the others is not a fault
    slow = _whole_switches(slow, quick, links)
    slow_switches = {one.what for one in slow if one.kind is OddKind.SWITCH}
    uplinks, told = _uplinks(quick, each, figure, oversubscription) if not slow_switches else ([], "")
    slow += uplinks
    excused = {node for one in slow if one.kind is OddKind.LINK for node in one.nodes}
    of_switches = {node for one in slow if one.kind is OddKind.SWITCH for node in one.nodes}
    switches = {switch_of[node] for node in of_switches if node in switch_of}
    slow += _pairs(quick, figure, each, excused, switches)
    shown = [_restored(one, figure) for one in slow]
    distribution = over_nodes(OddKind.LINK, _own_unit(links, figure))
    texts = tuple(f"{figure.benchmark} {figure.figure}: {text}" for text in (why, told) if text)
    return LinkAnswer(tuple(shown), (distribution,), texts)


class _Quickness:
    """The quickness of each pair in each repeat: the rate, or the inverse of a time, over the median of pairs of its
    kind where distance adds time."""

    def __init__(self, figure: PairFigure, switch_of: Mapping[str, str]) -> None:
        self.figure = figure
        self.switch_of = switch_of
        is_rate = figure.better is Better.HIGHER
        self.of: dict[Pair, list[float]] = {
            pair: [value if is_rate else 1.0 / value for value in own]
            for pair, own in zip(figure.pairs, figure.values, strict=True)
        }
        if not is_rate:  # another switch on the way takes time, which is not a fault
            self.of = self._over_kind()
        self.partners = grouped((node, pair) for pair in self.of for node in pair)
        self.repeats = min((len(own) for own in self.of.values()), default=0)
        self.link: dict[str, list[float]] = {node: self._link(node) for node in sorted(self.partners)}

    def is_inside(self, pair: Pair) -> bool | None:
        """Whether both are on one switch; None: not known."""
        a, b = (self.switch_of.get(node) for node in pair)
        return None if a is None or b is None else a == b

    def _over_kind(self) -> dict[Pair, list[float]]:
        kinds = grouped((self.is_inside(pair), own) for pair, own in self.of.items())
        usual = {kind: median(median(own) for own in each) for kind, each in kinds.items()}
        return {pair: [value / usual[self.is_inside(pair)] for value in own] for pair, own in self.of.items()}

    def _link(self, node: str) -> list[float]:
        """The quickness of a node's own link in each repeat: the best quarter of its pairs, or the best on its own
        switch, which pass no uplink."""
        own = self.partners[node]
        inside = [pair for pair in own if self.is_inside(pair)]
        found = []
        for k in range(self.repeats):
            best = _upper([self.of[pair][k] for pair in own])
            found.append(max([best, *(self.of[pair][k] for pair in inside)]))
        return found

    def links(self) -> ItemFigure:
        """The links of the nodes as a figure; of two partners only one is known, so these are left out."""
        nodes = [node for node in self.link if len(self.partners[node]) >= 2]
        return _items(self.figure, {node: self.link[node] for node in nodes})

    def expected(self, pair: Pair) -> list[float]:
        """What the links of both ends allow, in each repeat."""
        a, b = pair
        return [min(one, other) for one, other in zip(self.link[a], self.link[b], strict=True)]

    def remaining(self, pair: Pair) -> list[float]:
        """The quickness of a pair over what the links of its ends allow, in each repeat."""
        return [value / most for value, most in zip(self.of[pair], self.expected(pair), strict=False)]


def _upper(values: Sequence[float]) -> float:
    """The 75 % quantile, the next higher value."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(_BEST * (len(ordered) - 1)))]


def _items(figure: PairFigure | HalfFigure, values: Mapping[str, Sequence[float]]) -> ItemFigure:
    """Rates of nodes or switches, from a figure of pairs or halves."""
    items = tuple(map(Item, values))
    return ItemFigure(
        figure.benchmark, figure.figure, figure.unit, Better.HIGHER, items, tuple(values.values()), figure.parameters
    )


def link_name(node: str, switch_of: Mapping[str, str]) -> str:
    """The link of a node: to its switch if that is known."""
    switch = switch_of.get(node)
    return f"{node} - {switch}" if switch else f"link of {node}"


def _named_link(node: str, switch_of: Mapping[str, str]) -> tuple[OddKind, str, str]:
    return (
        OddKind.LINK,
        link_name(node, switch_of),
        f"check cable, port and adapter of {node}, and their error counters",
    )


def _whole_switches(slow: Sequence[Odd], quick: _Quickness, links: ItemFigure) -> list[Odd]:
    """Slow links; where nearly all nodes of a switch are slow and other switches are not, the switch instead."""
    switches = ((quick.switch_of.get(item.node), item.node) for item in links.items)
    members = grouped((switch, node) for switch, node in switches if switch is not None)
    by_node = {one.nodes[0]: one for one in slow}
    found = list(slow)
    for switch, nodes in members.items():
        own = [by_node[node] for node in nodes if node in by_node]
        if len(members) < 2 or len(nodes) < 2 or len(own) < _MOST_OF_A_SWITCH * len(nodes):
            continue
        middle = sorted(own, key=lambda one: one.ratio)[len(own) // 2]
        usual = 0.5 * (1.0 + middle.ratio) * middle.usual
        inside = {pair for node in nodes for pair in quick.partners[node] if quick.is_inside(pair)}
        slow_inside = sum(median(quick.of[pair]) < usual for pair in inside)
        tested = f"{slow_inside} of {count(len(inside), 'pair')} inside it are slow, too"
        why = f"{len(own)} of its {len(nodes)} nodes are slow with the nodes of other switches; " + (
            tested if inside else "no pair inside it was measured"
        )
        found = [one for one in found if one not in own]
        found.append(
            replace(
                middle,
                kind=OddKind.SWITCH,
                what=switch,
                nodes=tuple(nodes),
                sureness=max(one.sureness for one in own),
                remedy=_switch_remedy(switch),
                why=why,
            )
        )
    return found


def _switch_remedy(switch: str) -> str:
    return f"check the uplinks of {switch}: cables that are down or slow, and error counters of their ports"


def _uplinks(
    quick: _Quickness, share: Share, figure: PairFigure, oversubscription: float | None
) -> tuple[list[Odd], str]:
    """Odd uplinks, by the pairs that cross them: relative to what the nodes' links allow.

    One pair at a time has an uplink for itself. Pairs at once share it, as far as the design lets them.
    """
    across = (pair for pair in quick.of if quick.is_inside(pair) is False)
    crossing = grouped((tuple(sorted(quick.switch_of[node] for node in pair)), pair) for pair in across)
    switches = sorted({switch for ends in crossing for switch in ends})
    if not switches:
        return [], ""
    between = {
        ends: [median(quick.remaining(pair)[k] for pair in pairs) for k in range(quick.repeats)]
        for ends, pairs in crossing.items()
    }
    own = {
        switch: [
            _upper([values[k] for ends, values in between.items() if switch in ends]) for k in range(quick.repeats)
        ]
        for switch in switches
    }
    designed: float | None = None
    if figure.better is Better.HIGHER:
        is_alone = figure.parameters.get("at_once", 1) == 1
        designed = 1.0 if is_alone else _designed(oversubscription, len(switches))
    return _odd_uplinks(figure, own, quick.switch_of, share, designed)


def _designed(oversubscription: float | None, switches: int) -> float | None:
    """The share of its link that a node is to have across the uplinks while all nodes use them.

    Where the design is unknown, several switches are compared with each other; of two, the full rate is expected.
    """
    if oversubscription:
        return 1.0 / max(1.0, oversubscription)
    return 1.0 if switches < FEWEST else None


def screen_halves(
    figure: HalfFigure,
    switch_of: Mapping[str, str],
    usual_link: float | None,
    oversubscription: float | None,
    share: Share,
) -> LinkAnswer:
    """Odd uplinks under load: the bandwidth between the nodes of each switch and all others.

    `usual_link` is the rate of a node's link as measured, `oversubscription` the design's; None: not known.
    """
    nodes = {switch: [node for node, its in switch_of.items() if its == switch] for switch in figure.switches}
    values: dict[str, list[float]] = {}
    for switch, own in zip(figure.switches, figure.values, strict=True):
        busy = 2.0 * min(len(nodes[switch]), len(switch_of) - len(nodes[switch]))  # both directions count
        if busy:
            values[switch] = [value / busy / (usual_link or 1.0) for value in own]
    known = None if usual_link is None else _designed(oversubscription, len(values))
    odd, why = _odd_uplinks(figure, values, switch_of, share, known)
    texts = (f"{figure.benchmark} {figure.figure}: {why}",) if why else ()
    scale = usual_link or 1.0
    shown = replace(
        _items(figure, {switch: [value * scale for value in own] for switch, own in values.items()}),
        figure=f"{figure.figure} for each node across the uplinks",
    )
    odd = [replace(one, value=one.value * scale, usual=one.usual * scale) for one in odd]
    return LinkAnswer(tuple(odd), (over_nodes(OddKind.SWITCH, shown),) if values else (), texts)


def _odd_uplinks(
    figure: PairFigure | HalfFigure,
    own: Mapping[str, Sequence[float]],
    switch_of: Mapping[str, str],
    share: Share,
    designed: float | None,
) -> tuple[list[Odd], str]:
    """The odd ones of shares of bandwidth by switch: among several, else against the design."""
    switches = list(own)
    members = {switch: tuple(node for node, its in switch_of.items() if its == switch) for switch in switches}
    found: list[Odd] = []
    why = ""
    if len(switches) >= FEWEST:
        odd, _, why = screen_figure(
            _items(figure, own), {}, share, lambda item: (OddKind.SWITCH, item.node, _switch_remedy(item.node))
        )
        found = [replace(one, nodes=members[one.what]) for one in odd if one.ratio < 1.0]
    if found or designed is None:
        return found, why
    middles = {switch: median(values) / designed for switch, values in own.items()}
    slow = [switch for switch, middle in middles.items() if middle < _LEAST_UPLINK]
    if len(slow) == len(switches) and len(switches) == 2:
        worst = max(slow, key=lambda switch: max(own[switch]))
        found.append(_below_design(figure, " or ".join(switches), sum(members.values(), ()), own[worst], designed))
    else:
        found += [_below_design(figure, switch, members[switch], own[switch], designed) for switch in slow]
    return found, why


def _below_design(
    figure: PairFigure | HalfFigure, what: str, nodes: tuple[str, ...], shares: Sequence[float], designed: float
) -> Odd:
    value = median(shares)
    # All repeats are below: of equal chances above and below, that is 2^-n.
    p = 0.5 ** len(shares) if max(shares) < designed else 1.0
    return Odd(
        kind=OddKind.SWITCH,
        what=what,
        nodes=nodes,
        benchmark=figure.benchmark,
        figure=figure.figure,
        unit=figure.unit,
        value=value,
        usual=designed,
        ratio=value / designed,
        distance=None,
        sureness=1.0 - p,
        false_alarm_rate=FALSE_ALARM_RATE,
        remedy=_switch_remedy(what),
        n=1,
        why=f"pairs across the uplink get {value:.2g} of what the links of their nodes allow, "
        f"where {designed:.2g} is expected; pairs on one switch are not slow",
        parameters=figure.parameters,
    )


def _pairs(quick: _Quickness, figure: PairFigure, share: Share, nodes: set[str], switches: set[str]) -> list[Odd]:
    """Odd pairs among those that no slow link and no slow uplink explains."""
    left = []
    for pair in quick.of:
        crosses = quick.is_inside(pair) is False and {quick.switch_of[node] for node in pair} & switches
        if not crosses and not nodes & set(pair):
            left.append(pair)
    if len(left) < FEWEST:
        return []
    far, _ = far_values([quick.remaining(pair) for pair in left], share.rate, max(share.margin, _LEAST_PAIR))
    found = []
    for one in far:
        if one.ratio >= 1.0:
            continue
        a, b = pair = left[one.index]
        value = median(quick.of[pair])
        found.append(
            Odd(
                kind=OddKind.LINK,
                what=f"{a} - {b}",
                nodes=pair,
                benchmark=figure.benchmark,
                figure=figure.figure,
                unit=figure.unit,
                value=value,
                usual=value / one.ratio,
                ratio=one.ratio,
                distance=one.distance,
                sureness=1.0 - min(1.0, one.p * FALSE_ALARM_RATE / share.rate),
                false_alarm_rate=FALSE_ALARM_RATE,
                remedy=f"look for a slow cable on the way between {a} and {b}: both are fast with all others",
                n=len(left),
                parameters=figure.parameters,
            )
        )
    return found


def _own_unit(links: ItemFigure, figure: PairFigure) -> ItemFigure:
    """The figure of links in the unit of the pairs: times again where these are times."""
    if figure.better is Better.HIGHER:
        return links
    usual = median(median(own) for own in figure.values)
    values = tuple([usual / value for value in own] for own in links.values)
    return replace(links, better=Better.LOWER, values=values)


def _restored(one: Odd, figure: PairFigure) -> Odd:
    """As the figure states it: the ratio of times is that of the quickness inverted; a share of a rate is a rate."""
    if figure.better is Better.LOWER:
        usual = median(median(own) for own in figure.values)
        return replace(one, value=usual / one.ratio, usual=usual, ratio=1.0 / one.ratio)
    if one.kind is OddKind.SWITCH and one.usual <= 1.0 + _LEAST_PAIR:
        usual = median(median(own) for own in figure.values)
        return replace(one, value=usual * one.ratio, usual=usual)
    return one
