"""The parts of a dump -> one `Fabric`: levels, links with their rates, nodes, oversubscription and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.fabric.capability import Capabilities
from seatrial.fabric.findings import fabric_findings
from seatrial.fabric.levels import fabric_levels, oversubscription, tree_levels
from seatrial.fabric.links import Cable, join_devices, join_links
from seatrial.fabric.parts import DevicePart, FabricDump, PartKind
from seatrial.fabric.rates import rate_Bps
from seatrial.fabric.readers.infiniband import adapter_kind, host_of, switch_name
from seatrial.model.machine.fabric import (
    AdapterKind,
    Fabric,
    FabricAdapter,
    FabricLink,
    FabricSwitch,
    LinkEnd,
    PortDown,
)


def assemble_fabric(dump: FabricDump) -> Fabric:
    """The fabric of a dump. Raises ParseError if the dump contradicts itself or is incomplete."""
    devices = join_devices(dump.devices)
    cables, unread = join_links(dump, devices)
    levels = _levels(dump, devices, cables)
    switches = tuple(
        FabricSwitch(part.id, switch_name(part.name), levels.get(part.id), part.model)
        for part in devices.values()
        if part.kind is PartKind.SWITCH
    )
    adapters = tuple(_adapter(part) for part in devices.values() if part.kind in (PartKind.ADAPTER, PartKind.ROUTER))
    named = {adapter.node for adapter in adapters if adapter.node is not None}
    nodes = named | {part.id for part in devices.values() if part.kind is PartKind.NODE}
    capabilities = Capabilities(cables, devices)
    links = tuple(_link(cable, levels, capabilities) for cable in cables)
    fabric = Fabric(
        sources=(dump.tool,),
        switches=switches,
        adapters=adapters,
        nodes=tuple(sorted(nodes)),
        links=links,
        ports_down=tuple(
            dict.fromkeys(  # a line that is there twice is one port
                PortDown(port.device, port.port, port.state, port.physical)
                for port in dump.ports
                if port.peer is None and port.port is not None
            )
        ),
        facts=dump.facts,
        unread=(*filter(None, (dump.missing,)), *dump.notes, *unread),
    )
    is_partial = any(not part.is_described for part in devices.values() if part.kind is PartKind.SWITCH)
    why = "the links of some switches are not in the dump" if is_partial or dump.missing else ""
    ratios = oversubscription(switches, fabric.adapter_by_id, links, why)
    states = {cable.ends[0]: cable.port.state for cable in cables}
    fabric = replace(fabric, oversubscription=ratios)
    return replace(fabric, findings=fabric_findings(fabric, states, is_whole=not (is_partial or dump.missing)))


def _levels(dump: FabricDump, devices: Mapping[str, DevicePart], cables: Sequence[Cable]) -> dict[str, int]:
    switches = [part.id for part in devices.values() if part.kind is PartKind.SWITCH]
    known = frozenset(switches)
    pairs = [(cable.ends[0][0], cable.ends[1][0]) for cable in cables]
    between = [(a, b) for a, b in pairs if a in known and b in known]
    if dump.is_one_sided:
        children: dict[str, list[str]] = {switch: [] for switch in switches}
        for upper, lower in between:
            children[upper].append(lower)
        return tree_levels(children, {switch: devices[switch].source for switch in switches})
    on_nodes: dict[str, int] = {}
    for pair in pairs:
        for switch, other in (pair, pair[::-1]):
            if switch in known and other not in known and _is_host(devices[other]):
                on_nodes[switch] = on_nodes.get(switch, 0) + 1
    return fabric_levels(switches, between, on_nodes)


def _is_host(part: DevicePart) -> bool:
    return part.kind is PartKind.ADAPTER and adapter_kind(part.name) is not AdapterKind.AGGREGATION


def _adapter(part: DevicePart) -> FabricAdapter:
    kind = AdapterKind.ROUTER if part.kind is PartKind.ROUTER else adapter_kind(part.name)
    return FabricAdapter(part.id, part.name, kind, host_of(part.name) if kind is AdapterKind.HOST else None, part.model)


def _link(cable: Cable, levels: Mapping[str, int], capabilities: Capabilities) -> FabricLink:
    upper, lower = sorted(cable.ends, key=lambda end: (-levels.get(end[0], 0), end[0], end[1] or 0))
    capable, basis = capabilities.of(cable)
    return FabricLink(
        LinkEnd(*upper), LinkEnd(*lower), cable.rate.width, cable.rate.speed, rate_Bps(cable.rate), capable, basis
    )
