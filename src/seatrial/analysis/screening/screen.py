"""The screen of a cluster: all figures of nodes, devices, links and switches, and the facts of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.analysis.screening.facts import COUNTED, facts_that_differ, links_with_errors, nodes_with_less
from seatrial.analysis.screening.links import screen_halves, screen_pairs
from seatrial.analysis.screening.nodes import Share, confirmed, over_nodes, screen_figure
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.study.screen import (
    FALSE_ALARM_RATE,
    MARGIN,
    FigureOverNodes,
    Item,
    NodeClasses,
    NotSeenAgain,
    Odd,
    OddKind,
    PairFigure,
    Screen,
    ScreenInput,
)

_RANK_OF_KIND = {OddKind.SWITCH: 0, OddKind.NODE: 1, OddKind.LINK: 2, OddKind.DEVICE: 3}


def screen_cluster(given: ScreenInput, margin: float = MARGIN) -> Screen:
    """The odd ones, most certain first, and what else a reader must know.

    The false alarm rate is divided equally among all figures (Bonferroni), so it holds for the whole screen.
    """
    given = replace(given, pairs=tuple(filter(None, (_apart(one, given.not_apart) for one in given.pairs))))
    tests = len(given.figures) + len(given.pairs) + len(given.halves)
    share = Share(FALSE_ALARM_RATE / max(1, tests), margin)
    odd: list[Odd] = []
    classes: list[NodeClasses] = []
    figures: list[FigureOverNodes] = []
    not_seen_again: list[NotSeenAgain] = []
    not_screened = list(given.failed)
    for figure in given.figures:
        found, of_classes, why = screen_figure(figure, given.facts, share, _named_node)
        found, passed = confirmed(figure, found, share, _named_node)
        odd += found
        not_seen_again += passed
        classes += of_classes
        kind = OddKind.DEVICE if any(item.device for item in figure.items) else OddKind.NODE
        figures.append(over_nodes(kind, figure))
        if why:
            not_screened.append(f"{figure.benchmark} {figure.figure}: {why}")
    links = [screen_pairs(pairs, given.switch_of, share, given.oversubscription) for pairs in given.pairs]
    odd += [one for answer in links for one in answer.odd]
    # As pairs of nodes showed it.
    rates = [one.median for answer in links for one in answer.figures if one.better is Better.HIGHER]
    usual_link = max(rates, default=None)
    links += [screen_halves(half, given.switch_of, usual_link, given.oversubscription, share) for half in given.halves]
    odd += [one for answer in links[len(given.pairs) :] for one in answer.odd]
    figures += [one for answer in links for one in answer.figures]
    not_screened += [text for answer in links for text in answer.not_screened]
    differ = facts_that_differ(given.facts)
    odd += nodes_with_less(differ, len(given.facts))
    odd += links_with_errors(given.link_counts, len(given.nodes), given.switch_of)
    return Screen(
        nodes=given.nodes,
        switch_of=given.switch_of,
        odd=tuple(sorted(_links_of_slow_nodes(odd), key=_order)),
        facts_that_differ=differ,
        classes=tuple(classes),
        figures=tuple(figures),
        pairs=given.pairs,
        not_screened=tuple(dict.fromkeys(not_screened)),
        false_alarm_rate=FALSE_ALARM_RATE,
        margin=margin,
        link_counts=given.link_counts,
        not_seen_again=tuple(not_seen_again),
    )


def _apart(figure: PairFigure, not_apart: frozenset[tuple[str, str]]) -> PairFigure | None:
    """The figure without pairs of nodes that share CPUs; None if there are no others."""
    kept = [k for k, (a, b) in enumerate(figure.pairs) if (a, b) not in not_apart and (b, a) not in not_apart]
    if not kept:
        return None
    return replace(figure, pairs=tuple(figure.pairs[k] for k in kept), values=tuple(figure.values[k] for k in kept))


def _named_node(item: Item) -> tuple[OddKind, str, str]:
    kind = OddKind.DEVICE if item.device else OddKind.NODE
    return kind, item.name, drain(item.node, f"{item.name} differs from the others")


def drain(node: str, reason: str) -> str:
    """The command that takes a node out of service in Slurm; seatrial never runs it."""
    return f"scontrol update nodename={node} state=drain reason='seatrial: {reason}'"


def _order(one: Odd) -> tuple[float, float, int, str]:
    far = max(one.ratio, 1.0 / one.ratio) if one.ratio > 0 else float("inf")
    if one.why.startswith(COUNTED):  # a number of errors is no ratio
        far = 1.0
    return (-round(one.sureness, 6), -far, _RANK_OF_KIND[one.kind], one.what)


def _links_of_slow_nodes(odd: Sequence[Odd]) -> list[Odd]:
    """Without links that are slow because their node is: by less than half as much again as the node itself."""
    nodes = {one.nodes[0]: one for one in odd if one.kind is OddKind.NODE and one.benchmark}
    found = list(odd)
    for one in odd:
        node = nodes.get(one.nodes[0]) if one.kind is OddKind.LINK and len(one.nodes) == 1 else None
        if node is None or abs(math.log(one.ratio)) > 1.5 * abs(math.log(node.ratio)):
            continue
        found.remove(one)
        place = found.index(node)
        link = f"its link is slow, too ({one.figure} {one.ratio:.2f} x), which may follow"
        found[place] = replace(node, why="; ".join(filter(None, (node.why, link))))
        nodes[one.nodes[0]] = found[place]
    return found
