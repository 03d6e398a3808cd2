"""Links that counted errors while a cluster was measured: damaged data, or a link that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from seatrial.model.machine.links import LINK_COUNTERS, CounterKind
from seatrial.model.study.screen import LinkCount, Odd, OddKind

_RARE = 0.1
"""Links of more than this share of the nodes have no odd one among them: of few nodes, a single one is odd."""
_FAILURES = frozenset(
    {"link_downed", "link_error_recovery", "local_link_integrity_errors", "excessive_buffer_overrun_errors"}
)
"""Each of these is a failure of the link; of damaged data, a sound link may count some."""
_LEAST_DAMAGED = 10
COUNTED = "counted while it was measured"


def links_with_errors(counts: Sequence[LinkCount], nodes: int, switch_of: Mapping[str, str]) -> tuple[Odd, ...]:
    """The links that counted errors where those of most nodes did not. Discards and congestion name nobody: both are
    normal under load."""
    by_counter: dict[str, list[LinkCount]] = {}
    for one in counts:
        if LINK_COUNTERS[one.counter].kind is CounterKind.ERROR and one.grew_by >= _least(one.counter):
            by_counter.setdefault(one.counter, []).append(one)
    found = []
    for counter, own in by_counter.items():
        if len({one.node for one in own}) > max(1, int(_RARE * nodes)):
            continue
        named = {(one.node, one.port) for one in own}
        others = [one.grew_by for one in counts if one.counter == counter and (one.node, one.port) not in named]
        usual = median([*others, *[0] * max(1, nodes - len(others))])
        found += [_odd(one, usual, nodes, switch_of) for one in own]
    return tuple(found)


def _least(counter: str) -> int:
    return 1 if counter in _FAILURES else _LEAST_DAMAGED


def _odd(one: LinkCount, usual: float, nodes: int, switch_of: Mapping[str, str]) -> Odd:
    switch = switch_of.get(one.node)
    return Odd(
        kind=OddKind.LINK,
        what=f"{one.node} - {switch}" if switch else f"link of {one.node}",
        nodes=(one.node,),
        benchmark="",
        figure=f"{one.port} {one.counter}",
        unit="1",
        value=float(one.grew_by),
        usual=usual,
        ratio=one.grew_by / max(1.0, usual),
        distance=None,
        sureness=1.0,
        false_alarm_rate=0.0,
        remedy=f"clean or exchange the cable at {one.port} of {one.node}, and read the counters of both ends again",
        n=nodes,
        why=f"{COUNTED}: {LINK_COUNTERS[one.counter].meaning}",
    )
