"""Nodes that lose packets, by what was counted on every node beside each repeat of a program with messages.

TCP repairs what was lost, so a figure that is the best or the median of many messages hardly changes. Its counters say
so: what is lost on the way to a node arrives there after a gap, and what is lost on the way from it, it sends again.
Bursts of messages that are late show the same without TCP.

Links in full use lose packets, too, on all nodes. So a node is named if it has many times what the others have, and not
in one repeat only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import LATE_BURSTS, LEAST_LOST, lost_segments
from seatrial.model.study.screen import CountsOfNodes

_TIMES = 5.0
"""A node has at least so many times the median of the others, in total and in most repeats."""
_MOST_REPEATS = 0.75
_FEWEST_REPEATS = 2
_FEWEST_NODES = 3
_RARE = 0.1
_SENT_AGAIN, _AFTER_A_GAP = "TcpRetransSegs", "TcpExtTCPOFOQueue"


class Losing(Frozen):
    """A node that loses packets, or whose messages are late. `usual`: the median of the others; `others`: their sum of
    the counter that is the other side of it (what the others sent again); `seen_in` of `repeats`."""

    node: str
    counter: str
    total: int
    usual: float
    others: int
    seen_in: int
    repeats: int


_VALUES: Mapping[str, Callable[[Mapping[str, int]], int]] = {
    _AFTER_A_GAP: lambda own: own.get(_AFTER_A_GAP, 0),
    _SENT_AGAIN: lost_segments,
    LATE_BURSTS: lambda own: own.get(LATE_BURSTS, 0),
}


def losing_nodes(repeats: Sequence[CountsOfNodes]) -> Iterator[Losing]:
    """The nodes that lose packets, or whose messages are late, by counter."""
    nodes = list(dict.fromkeys(node for repeat in repeats for node in repeat))
    if len(nodes) < _FEWEST_NODES:
        return
    for counter, value_of in _VALUES.items():
        each = [{node: value_of(own) for node, own in repeat.items()} for repeat in repeats]
        total = {node: sum(values.get(node, 0) for values in each) for node in nodes}
        counted = [values for values in each if any(values.values())]
        found = []
        for node in nodes:
            seen_in = sum(_is_far(values, node, 1) for values in counted if node in values)
            is_repeated = seen_in >= max(_FEWEST_REPEATS, _MOST_REPEATS * sum(node in values for values in counted))
            if is_repeated and _is_far(total, node, LEAST_LOST):
                usual = median(value for other, value in total.items() if other != node)
                others = sum(lost_segments(own) for repeat in repeats for other, own in repeat.items() if other != node)
                found.append(Losing(node, counter, total[node], usual, others, seen_in, len(repeats)))
        if len(found) <= max(1, int(_RARE * len(nodes))):
            yield from found


def _is_far(values: Mapping[str, int], node: str, least: int) -> bool:
    others = [value for other, value in values.items() if other != node]
    return bool(others) and values[node] >= max(least, _TIMES * median(others))
