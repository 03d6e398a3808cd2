"""Output of other tools as sources of a fabric: `--from KIND=FILE`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.fabric.findings import fabric_findings
from seatrial.fabric.levels import fabric_levels, oversubscription, tree_levels
from seatrial.fabric.links import Cable, Capabilities, join_devices, join_links, shared_guids, without_links_of
from seatrial.fabric.parts import DevicePart, FabricDump, FabricText, PartKind, rate_Bps
from seatrial.fabric.readers.iblinkinfo import read_iblinkinfo
from seatrial.fabric.readers.ibnetdiscover import read_ibnetdiscover
from seatrial.fabric.readers.ibswinfo import read_ibswinfo
from seatrial.fabric.readers.infiniband import adapter_kind, host_of, switch_name
from seatrial.fabric.readers.opafabricinfo import read_opafabricinfo
from seatrial.fabric.readers.port_counters import read_perfquery_ports, read_queried_errors
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
from seatrial.model.spelling import count


def assemble_fabric(dump: FabricDump) -> Fabric:
    """The fabric of a dump. Raises ParseError if the dump contradicts itself or is incomplete."""
    shared = shared_guids(dump)
    dump = without_links_of(dump, shared)
    devices = join_devices(dump.devices)
    cables, unread = join_links(dump, devices)
    levels = _levels(dump, devices, cables)
    switches = tuple(
        FabricSwitch(
            part.id, switch_name(part.name), levels.get(part.id), part.model, dump.switch_facts.get(part.id, {})
        )
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
        port_counters=tuple(dump.counters),
    )
    is_partial = any(not part.is_described for part in devices.values() if part.kind is PartKind.SWITCH)
    why = "the links of some switches are not in the dump" if is_partial or dump.missing else ""
    ratios = oversubscription(switches, fabric.adapter_by_id, links, why)
    states = {cable.ends[0]: cable.port.state for cable in cables}
    fabric = replace(fabric, oversubscription=ratios)
    found = fabric_findings(fabric, states, shared, is_whole=not (is_partial or dump.missing))
    return replace(fabric, findings=found)


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
    "perfquery": read_perfquery_ports,
    "ibqueryerrors": read_queried_errors,
    "ibswinfo": read_ibswinfo,
    "opafabricinfo": read_opafabricinfo,
}
"""Kind -> its reader, which takes the files that a dump was saved in, in their order."""

FROM_DOCUMENTATION = frozenset({"opafabricinfo"})
"""Kinds of which no test reads a real dump; lists label them so."""

TOPOLOGIES = ("ibnetdiscover", "iblinkinfo", "slurm-topology")
"""The kinds that have links or nodes; the others have the state of ports, switches or the whole."""


def read_fabrics(texts: Mapping[str, Sequence[FabricText]]) -> Fabric:
    """The fabric in dumps of several kinds: one topology at most, and the state of its ports and switches. Raises as
    `read_fabric`."""
    kinds = sorted(texts, key=lambda kind: kind not in TOPOLOGIES)
    base, *others = (FABRIC_READERS[kind](texts[kind]) for kind in kinds)
    names = {part.id: part.name for part in base.devices}
    if kinds[0] in TOPOLOGIES:
        others = [_with_ids_of(names, other) for other in others]
    unknown = [part.name for other in others for part in other.devices if part.id not in names]
    missing = (
        f"{count(len(unknown), 'device')} of {others[0].tool} not in {base.tool}: is it complete?" if unknown else ""
    )
    every = (base, *others)
    joined = replace(
        base,
        tool=", ".join(dump.tool for dump in every),
        devices=[device for dump in every for device in dump.devices],
        counters=[one for dump in every for one in dump.counters],
        switch_facts={switch: facts for dump in every for switch, facts in dump.switch_facts.items()},
        facts={name: value for dump in every for name, value in dump.facts.items()},
        notes=[note for dump in every for note in dump.notes],
        missing=base.missing or (missing if kinds[0] in TOPOLOGIES else ""),
    )
    return replace(assemble_fabric(joined), sources=tuple(dump.tool for dump in every))


def _with_ids_of(names: Mapping[str, str], dump: FabricDump) -> FabricDump:
    """The dump with the ids that a topology has. Where only one port of an adapter has errors, its id is the GUID of
    that port: the GUID of the adapter plus the number of the port, if the adapter has several."""
    same: dict[str, str] = {}
    described = {part.id: part.name for part in dump.devices}
    for one in dump.counters:
        if one.device in names or not one.device.startswith("H-") or one.port is None:
            continue
        adapter = f"H-{int(one.device[2:], 16) - one.port:016x}"
        if names.get(adapter) == described.get(one.device):
            same[one.device] = adapter
    return replace(
        dump,
        devices=[replace(part, id=same.get(part.id, part.id)) for part in dump.devices],
        counters=[replace(one, device=same.get(one.device, one.device)) for one in dump.counters],
    )


def read_fabric(kind: str, texts: Sequence[FabricText]) -> Fabric:
    """The fabric in one dump. Raises ParseError if it is damaged or incomplete, UsageError if there are several."""
    return assemble_fabric(FABRIC_READERS[kind](texts))
