"""The facts on which nodes differ, and the nodes that have less of something than the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.machine.fact import FactValue
from seatrial.model.study.screen import FactThatDiffers, Odd, OddKind, ValueOfFact
from seatrial.model.units import Unit

_RARE = 0.1
"""Up to this share of the nodes, a value is rare, and those who have it are odd; of few nodes, a single one is."""

CAPACITIES: Mapping[str, Unit] = {
    "memory": "B",
    "packages": "1",
    "cores": "1",
    "CPUs": "1",
    "NUMA nodes": "1",
    "memory modules": "1",
    "GPUs": "1",
    "network adapters": "1",
    "disks": "1",
}
"""Facts that state how much a node has: less than the others is a fault."""

_RATES = (" link rate", " link width", " link speed")
"""The ends of the names of facts of a link of a device: less than the others is a fault of that device."""

_LEAST_MEMORY = 0.02
"""Sizes of memory within this share are equal: firmware and the kernel keep parts that differ between boots."""


def facts_that_differ(facts: Mapping[str, Mapping[str, FactValue]]) -> tuple[FactThatDiffers, ...]:
    """The facts on which nodes differ, in the order of their names. A node without a fact has the value None."""
    found = []
    for name in sorted({name for own in facts.values() for name in own}):
        by_value: dict[FactValue | None, list[str]] = {}
        for node, own in facts.items():
            by_value.setdefault(own.get(name), []).append(node)
        if name == "memory":
            by_value = _alike_sizes(by_value)
        if len(by_value) < 2:
            continue
        ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), str(item[0])))
        values = tuple(ValueOfFact(value, tuple(nodes)) for value, nodes in ordered)
        found.append(FactThatDiffers(name, values, _odd_nodes(values, len(facts))))
    return tuple(found)


def unit_of_fact(fact: str) -> Unit:
    """The unit of the numbers of a fact."""
    return CAPACITIES.get(fact, "B/s" if fact.endswith(" link rate") else "1")


def _alike_sizes(by_value: Mapping[FactValue | None, list[str]]) -> dict[FactValue | None, list[str]]:
    """Sizes of memory that are nearly equal, as one value: the most frequent of them."""
    merged: dict[FactValue | None, list[str]] = {}
    for value, nodes in sorted(by_value.items(), key=lambda item: -len(item[1])):
        alike = next((one for one in merged if _is_alike(one, value)), value)
        merged.setdefault(alike, []).extend(nodes)
    return merged


def _is_alike(a: FactValue | None, b: FactValue | None) -> bool:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return False
    return abs(a - b) <= _LEAST_MEMORY * max(a, b)


def _odd_nodes(values: Sequence[ValueOfFact], n: int) -> tuple[str, ...]:
    """The nodes with rare values, if most nodes share one value."""
    if n < 3 or 2 * len(values[0].nodes) <= n:
        return ()
    most = max(1, int(_RARE * n))
    return tuple(node for value in values[1:] if len(value.nodes) <= most for node in value.nodes)


def nodes_with_less(differ: Sequence[FactThatDiffers], n: int) -> tuple[Odd, ...]:
    """The nodes that have less than the others, by facts that state how much: memory, CPUs, links of devices."""
    found = []
    for fact in differ:
        is_rate = fact.fact.endswith(_RATES)
        usual = fact.values[0].value
        if not (is_rate or fact.fact in CAPACITIES) or isinstance(usual, bool) or not isinstance(usual, int | float):
            continue
        unit = unit_of_fact(fact.fact)
        for value in fact.values[1:]:
            own = value.value
            if isinstance(own, bool) or not isinstance(own, int | float) or not own < usual or not usual > 0:
                continue
            found += [
                _less(fact.fact, node, float(own), float(usual), unit, n) for node in value.nodes if node in fact.odd
            ]
    return tuple(found)


def _less(fact: str, node: str, own: float, usual: float, unit: Unit, n: int) -> Odd:
    is_device = fact.endswith(_RATES)
    what = f"{fact.rsplit(' link ', 1)[0]} of {node}" if is_device else node
    return Odd(
        kind=OddKind.DEVICE if is_device else OddKind.NODE,
        what=what,
        nodes=(node,),
        benchmark="",
        figure=fact,
        unit=unit,
        value=own,
        usual=usual,
        ratio=own / usual,
        distance=None,
        sureness=1.0,
        false_alarm_rate=0.0,
        remedy=_remedy(fact, node),
        n=n,
        why="read on the node, not measured",
    )


def _remedy(fact: str, node: str) -> str:
    if fact.endswith(_RATES):
        return f"reseat the device or its riser in {node} and read the link again with lspci -vv"
    if fact in ("memory", "memory modules"):
        return f"look for a memory module of {node} that is missing or switched off: dmidecode -t memory, the BMC's log"
    return f"check what firmware and kernel of {node} see of its {fact}, and limits that are set on it"
