"""Oversubscription of a level: the bandwidth of its links to the level below over that of its links to the level above.

Only links that are up and in use count: an adapter that is part of a switch (SHARP) takes no bandwidth from the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.model.fabric import AdapterKind, FabricAdapter, FabricLink, FabricSwitch, Oversubscription

_NOT_NODES = (AdapterKind.AGGREGATION, AdapterKind.ROUTER)


def oversubscription(
    switches: Iterable[FabricSwitch], adapters: Mapping[str, FabricAdapter], links: Iterable[FabricLink], why: str
) -> tuple[Oversubscription, ...]:
    """The ratio of each level but the highest. `why` is a reason for which no ratio is known; "" if there is none."""
    levels = {switch.id: switch.level for switch in switches if switch.level is not None}
    down: dict[str, float] = {}
    up: dict[str, float] = {}
    unknown: set[int] = set()
    top = max(levels.values(), default=0)
    for link in links:
        upper, lower = levels.get(link.a.device), levels.get(link.b.device, 0)
        if upper is None or upper == lower or ((adapter := adapters.get(link.b.device)) and adapter.kind in _NOT_NODES):
            continue
        if link.trained_Bps is None:
            unknown |= {upper, lower}
            continue
        down[link.a.device] = down.get(link.a.device, 0.0) + link.trained_Bps
        if link.b.device in levels:
            up[link.b.device] = up.get(link.b.device, 0.0) + link.trained_Bps
    found: list[Oversubscription] = []
    for level in range(1, top):
        reason = why or ("the rate of some links is unknown" if level in unknown else "")
        found.append(Oversubscription(level, why=reason) if reason else _ratio(level, levels, down, up))
    return tuple(found)


def _ratio(
    level: int, levels: Mapping[str, int], down: Mapping[str, float], up: Mapping[str, float]
) -> Oversubscription:
    here = [switch for switch, its in levels.items() if its == level]
    down_Bps, up_Bps = (sum(side.get(switch, 0.0) for switch in here) for side in (down, up))
    if not up_Bps:
        return Oversubscription(level, why="no links to the level above")
    ratios = {switch: down.get(switch, 0.0) / up[switch] for switch in here if up.get(switch)}
    worst = max(ratios, key=lambda switch: ratios[switch])
    return Oversubscription(level, down_Bps / up_Bps, down_Bps, up_Bps, worst, ratios[worst])
