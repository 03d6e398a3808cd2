"""Output of other tools as sources of a fabric: `--from KIND=FILE`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.fabric.findings import fabric_findings
from seatrial.fabric.levels import fabric_levels, oversubscription, tree_levels
from seatrial.fabric.links import Cable, Capabilities, join_devices, join_links
from seatrial.fabric.parts import DevicePart, FabricDump, FabricText, PartKind, rate_Bps
from seatrial.fabric.readers.iblinkinfo import read_iblinkinfo
from seatrial.fabric.readers.ibnetdiscover import read_ibnetdiscover
from seatrial.fabric.readers.infiniband import adapter_kind, host_of, switch_name
from seatrial.fabric.readers.slurm_topology import read_slurm_topology
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
    down = (
        PortDown(port.device, port.port, port.state, port.physical)
        for port in dump.ports
        if port.peer is None and port.port is not None
    )
    fabric = Fabric(
        sources=(dump.tool,),
        switches=switches,
        adapters=adapters,
        nodes=tuple(sorted(nodes)),
        links=links,
        ports_down=tuple(dict.fromkeys(down)),  # a line that is there twice is one port
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
    hosts = {
        part.id
        for part in devices.values()
        if part.kind is PartKind.ADAPTER and adapter_kind(part.name) is not AdapterKind.AGGREGATION
    }
    both_ways = (*pairs, *((b, a) for a, b in pairs))
    on_nodes = Counter(switch for switch, other in both_ways if switch in known and other in hosts)
    return fabric_levels(switches, between, on_nodes)


def _adapter(part: DevicePart) -> FabricAdapter:
    kind = AdapterKind.ROUTER if part.kind is PartKind.ROUTER else adapter_kind(part.name)
    return FabricAdapter(part.id, part.name, kind, host_of(part.name) if kind is AdapterKind.HOST else None, part.model)


def _link(cable: Cable, levels: Mapping[str, int], capabilities: Capabilities) -> FabricLink:
    upper, lower = sorted(cable.ends, key=lambda end: (-levels.get(end[0], 0), end[0], end[1] or 0))
    capable, basis = capabilities.of(cable)
    return FabricLink(
        LinkEnd(*upper), LinkEnd(*lower), cable.rate.width, cable.rate.speed, rate_Bps(cable.rate), capable, basis
    )


FABRIC_READERS: Mapping[str, Callable[[Sequence[FabricText]], FabricDump]] = {
    "ibnetdiscover": read_ibnetdiscover,
    "iblinkinfo": read_iblinkinfo,
    "slurm-topology": read_slurm_topology,
}
"""Kind -> its reader, which takes the files that a dump was saved in, in their order."""


def read_fabric(kind: str, texts: Sequence[FabricText]) -> Fabric:
    """The fabric in one dump. Raises ParseError if it is damaged or incomplete, UsageError if there are several."""
    return assemble_fabric(FABRIC_READERS[kind](texts))
