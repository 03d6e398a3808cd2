"""The rule about paths of a matrix that contradict the NUMA nodes of their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import coherent_gpus, fabric_adapters, gpus, spans
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.spelling import count

Ends = tuple[str, str]
"""The ids of the two devices of a path."""

_WITHIN_A_NODE = frozenset({"PIX", "PXB", "PHB", "NODE"})
_BELOW_ONE_HOST_BRIDGE = frozenset({"PIX", "PXB", "PHB"})


def paths_contradict_nodes(case: Case) -> Iterator[Finding]:
    """Fires if a path class puts two devices on one NUMA node and their affinity on different ones, or the reverse."""
    machine = case.machine
    pairs = contradicted(machine)
    if not pairs:
        return
    nodes = nodes_of(machine)
    has_one_node = len(machine.of_kind(DeviceKind.NUMA)) == 1
    apart = [(pair, found) for pair, found in pairs.items() if found == "SYS"]
    together = [(pair, found) for pair, found in pairs.items() if found != "SYS"]
    said = []
    if apart:
        where = "the machine has only one NUMA node" if has_one_node else "the same NUMA node by their affinity"
        said.append(f"{_pairs(apart)} the path class SYS (between NUMA nodes), but {where}")
    if together:
        said.append(f"{_pairs(together)} a path within one NUMA node, but different nodes by their affinity")
    ends = tuple(dict.fromkeys(end for pair in pairs for end in pair))
    odd = [end for end in ends if all(end in pair for pair in pairs)] if len(pairs) > 1 else []
    also = f" All of them include {odd[0]}." if odd else ""
    yield Finding(
        rule="paths-contradict-numa",
        severity=Severity.WARNING if odd else Severity.INFO,
        devices=tuple(odd) or ends,
        observation=f"{'; '.join(said)}: {spans(ends)}.{also}",
        diagnosis=("The paths or the node of this device are wrong" if odd else "One of the two is wrong")
        + "; these sources do not show which. Possible causes: a virtual machine or "
        "container with an incomplete PCI tree, firmware that assigns a wrong node. Libraries choose paths by such "
        "data, and a binding to a wrong node is slow.",
        remedy="Compare them with `grep . /sys/bus/pci/devices/*/numa_node` and `lstopo` on the host, and measure "
        "which node is near: copies of one device, bound to each node in turn",
        evidence=listed(f"{a} - {b}: {found}, {_where(nodes, a, b)}" for (a, b), found in pairs.items()),
    )


def contradicted(machine: Machine) -> Mapping[Ends, str]:
    """Pair, in the order of the machine's paths -> its class, if that contradicts the NUMA nodes of its ends."""
    nodes = nodes_of(machine)
    has_one_node = len(machine.of_kind(DeviceKind.NUMA)) == 1
    coherent = coherent_gpus(machine)
    found: dict[Ends, str] = {}
    for path in machine.paths:
        a, b, name = nodes.get(path.a), nodes.get(path.b), path.path_class
        if coherent & {path.a, path.b} or name is None:
            continue
        is_known = a is not None and b is not None
        is_same = has_one_node or (is_known and a == b)
        if (name == "SYS" and is_same) or (name in _WITHIN_A_NODE and is_known and a != b):
            found[(path.a, path.b)] = name
    return found


def nodes_of(machine: Machine) -> Mapping[str, int]:
    """Device -> its NUMA node: as reported, else that of a device below the same host bridge, if all of these agree."""
    listed_nodes = {affinity.device: affinity.numa for affinity in machine.affinity}
    reported = {
        device.id: node
        for device in (*gpus(machine), *fabric_adapters(machine))
        if (node := listed_nodes.get(device.id) if device.numa is None else device.numa) is not None
    }
    beside: dict[str, set[int]] = {}
    for path in machine.paths:
        if path.path_class in _BELOW_ONE_HOST_BRIDGE:
            for end, other in ((path.a, path.b), (path.b, path.a)):
                if end not in reported and other in reported:
                    beside.setdefault(end, set()).add(reported[other])
    return {**reported, **{end: nodes.pop() for end, nodes in beside.items() if len(nodes) == 1}}


def _pairs(pairs: Sequence[tuple[Ends, str]]) -> str:
    return f"{count(len(pairs), 'pair')} of devices {'has' if len(pairs) == 1 else 'have'}"


def _where(nodes: Mapping[str, int], a: str, b: str) -> str:
    if a not in nodes or b not in nodes:
        return "one node in all"
    return f"both at node {nodes[a]}" if nodes[a] == nodes[b] else f"nodes {nodes[a]} and {nodes[b]}"
