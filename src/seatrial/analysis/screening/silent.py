"""Nodes with which no other exchanges messages: by `mpi.pairs` on two nodes at a time.

Where it gives no result on all nodes together, any of them may be why. So two nodes at a time are measured: first all,
then each node without a result with others that have one. What is common to the pairs without a result is the fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import count, few_names
from seatrial.model.study.screen import NodePair

FEWEST_TRIES = 2
"""A node is named by so many pairs without a result, or more."""
_MOST_NAMED = 4


class SilentNode(Frozen):
    """A node that had no result in any of its pairs: their partners, and why the first had none; `others`: how many
    pairs without it had one."""

    node: str
    partners: tuple[str, ...]
    why: str
    others: int


def next_pairs(
    nodes: Sequence[str], tried: Mapping[NodePair, str], not_apart: Collection[NodePair] = ()
) -> list[NodePair]:
    """The pairs to measure next, all at once; none if it is known which nodes are silent. `tried`: pair -> why it had
    no result, "" if it had one. Nodes of `not_apart` share CPUs: their pairs come last."""
    with_result = {node for pair, why in tried.items() if not why for node in pair}
    tries = {node: sum(node in pair for pair in tried) for node in nodes}
    open_ones = [node for node in nodes if node not in with_result and tries[node] < FEWEST_TRIES]
    found: list[NodePair] = []
    free = list(nodes)
    for node in open_ones:
        if node not in free:
            continue
        left = [other for other in free if other != node and not _known(node, other, tried)]
        if with_result:
            left = [other for other in left if other in with_result]
        left.sort(key=lambda other: _known(node, other, not_apart))
        if left:
            pair = sorted((node, left[0]), key=nodes.index)
            found.append((pair[0], pair[1]))
            free = [other for other in free if other not in pair]
    return found


def _known(a: str, b: str, pairs: Collection[NodePair]) -> bool:
    return (a, b) in pairs or (b, a) in pairs


def silent_nodes(tried: Mapping[NodePair, str]) -> tuple[list[SilentNode], str]:
    """The nodes that all pairs without a result have in common, and a sentence on pairs that have no node in common, ""
    if there are none."""
    failed = [pair for pair, why in tried.items() if why]
    passed = [pair for pair, why in tried.items() if not why]
    with_result = {node for pair in passed for node in pair}
    own = grouped((node, pair) for pair in failed for node in pair if node not in with_result)
    found = []
    for node, pairs in own.items():
        partners = tuple(other for pair in pairs for other in pair if other != node)
        if len(pairs) >= FEWEST_TRIES and with_result & set(partners):
            found.append(SilentNode(node, partners, tried[pairs[0]], len(passed)))
    silent = {one.node for one in found}
    left = {f"{a} - {b}": tried[a, b] for a, b in failed if not silent & {a, b}}
    if left:
        which = f"{few_names(list(left), _MOST_NAMED)} ({next(iter(left.values()))})"
        return found, f"no node is common to the pairs without a result, measured two nodes at a time: {which}"
    if failed or not tried:
        return found, ""
    each = f"each of {count(len(tried), 'pair')} of nodes had a result by itself"
    return found, f"no node is common to what failed on all of them together: {each}"
