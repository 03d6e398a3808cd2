"""The level of each switch, and the oversubscription of levels.

InfiniBand does not state levels. In a fat tree, leaves are the switches that nodes are on, and the level of another
switch is its distance from the nearest leaf, plus one. Two things would break this rule: a few servers on a spine (a
subnet manager, storage), and a leaf without nodes. So switches with the same neighbours are judged together, and a
group with hardly any nodes, compared with the switches that have some, is not a group of leaves. The same holds further
up: a line module of a director without cables has the same spines above it as its neighbours, and is not a fourth
level.

Oversubscription of a level: the bandwidth of its links to the level below over that of its links to the level above.

Only links that are up and in use count: an adapter that is part of a switch (SHARP) takes no bandwidth from the nodes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from statistics import median

from seatrial.fabric.parts import FabricSource
from seatrial.model.machine.fabric import AdapterKind, FabricAdapter, FabricLink, FabricSwitch, Oversubscription

_FEW = 0.1  # The largest share of links to nodes of a switch that is not a leaf.
_OF_USUAL = 0.25  # The same, relative to the usual share of switches with nodes; both must hold.


def fabric_levels(
    switches: Sequence[str], cables: Iterable[tuple[str, str]], on_nodes: Mapping[str, int]
) -> dict[str, int]:
    """Switch -> level. `cables` are links between switches; `on_nodes` is the number of links to nodes of a switch.

    Switches that no leaf can reach are missing.
    """
    neighbours: dict[str, list[str]] = {switch: [] for switch in switches}
    for a, b in cables:
        if a != b:
            neighbours[a].append(b)
            neighbours[b].append(a)
    levels = dict.fromkeys(_leaves(neighbours, on_nodes), 1)
    queue = deque(levels)
    while queue:
        switch = queue.popleft()
        new = [other for other in neighbours[switch] if other not in levels]
        levels.update(dict.fromkeys(new, levels[switch] + 1))
        queue.extend(dict.fromkeys(new))
    return levels | _unused(levels, neighbours)


def _leaves(neighbours: Mapping[str, Sequence[str]], on_nodes: Mapping[str, int]) -> list[str]:
    groups: dict[frozenset[str], list[str]] = {}
    for switch, others in neighbours.items():
        # Switches without neighbours have nothing in common.
        groups.setdefault(frozenset(others) if others else frozenset({switch}), []).append(switch)
    shares = [
        on_nodes[switch] / (on_nodes[switch] + len(others))
        for switch, others in neighbours.items()
        if on_nodes.get(switch)
    ]
    usual = median(shares) if shares else 0.0
    leaves: list[str] = []
    for group in groups.values():
        nodes = sum(on_nodes.get(switch, 0) for switch in group)
        share = nodes / max(nodes + sum(len(neighbours[switch]) for switch in group), 1)
        if nodes and not (share <= _FEW and share <= _OF_USUAL * usual):
            leaves += group
    return leaves


def _unused(levels: Mapping[str, int], neighbours: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The levels of switches that only look as if they were above all others: nothing is connected to them but the
    switches that are above some switch of the level they belong to."""
    above = {
        (level, frozenset(other for other in neighbours[switch] if levels.get(other) == level + 1))
        for switch, level in levels.items()
    }
    found: dict[str, int] = {}
    for switch, level in levels.items():
        others = frozenset(neighbours[switch])
        if level > 2 and {levels.get(other) for other in others} == {level - 1} and (level - 2, others) in above:
            found[switch] = level - 2
    return found


def tree_levels(children: Mapping[str, Sequence[str]], sources: Mapping[str, FabricSource]) -> dict[str, int]:
    """Switch -> level, where the switches below each are stated: one more than the highest of them.

    Raises ParseError if a switch is below itself.
    """
    levels: dict[str, int] = {}
    try:
        for switch in TopologicalSorter(children).static_order():
            levels[switch] = 1 + max((levels[child] for child in children[switch]), default=0)
    except CycleError as error:
        switch = next(switch for switch in children if switch in error.args[1])
        raise sources[switch].error(f"switch {switch} is below itself, or below a switch that is") from None
    return levels


_NOT_NODES = (AdapterKind.AGGREGATION, AdapterKind.ROUTER)


def oversubscription(
    switches: Iterable[FabricSwitch], adapters: Mapping[str, FabricAdapter], links: Iterable[FabricLink], why: str
) -> tuple[Oversubscription, ...]:
    """The ratio of each level but the highest. `why` is a reason for which no ratio is known; "" if there is none."""
    levels = {switch.id: switch.level for switch in switches if switch.level is not None}
    down: defaultdict[str, float] = defaultdict(float)
    up: defaultdict[str, float] = defaultdict(float)
    unknown: set[int] = set()
    top = max(levels.values(), default=0)
    for link in links:
        upper, lower = levels.get(link.a.device), levels.get(link.b.device, 0)
        if upper is None or upper == lower or ((adapter := adapters.get(link.b.device)) and adapter.kind in _NOT_NODES):
            continue
        if link.trained_Bps is None:
            unknown |= {upper, lower}
            continue
        down[link.a.device] += link.trained_Bps
        if link.b.device in levels:
            up[link.b.device] += link.trained_Bps
    found: list[Oversubscription] = []
    for level in range(1, top):
        here = [switch for switch, its in levels.items() if its == level]
        down_Bps, up_Bps = (sum(side.get(switch, 0.0) for switch in here) for side in (down, up))
        ratios = {switch: down.get(switch, 0.0) / up[switch] for switch in here if up.get(switch)}
        reason = why or ("the rate of some links is unknown" if level in unknown else "")
        reason = reason or ("" if up_Bps else "no links to the level above")
        if reason:
            found.append(Oversubscription(level, why=reason))
        else:
            worst = max(ratios, key=ratios.__getitem__)
            found.append(Oversubscription(level, down_Bps / up_Bps, down_Bps, up_Bps, worst, ratios[worst]))
    return tuple(found)
