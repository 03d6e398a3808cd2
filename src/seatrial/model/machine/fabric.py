"""A fabric: switches, the adapters and nodes on them, and the links between them.

Unknown is None, never 0. Rates are in B/s per direction, after encoding, before protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Keywords, NonNegative, OneOrMore, Positive, Sparse, Text, published
from seatrial.model.machine.fact import Finding


class AdapterKind(StrEnum):
    """What an end of the fabric is."""

    HOST = "host"  # of a node whose name is known
    UNNAMED = "unnamed"  # of a node whose name the dump does not give
    AGGREGATION = "aggregation"  # part of a switch that reduces data in the network (SHARP)
    ROUTER = "router"


class CapableBasis(StrEnum):
    """How the capable rate of a link is known."""

    STATED = "stated"  # by the tool
    INFERRED = "inferred"  # from other links of the same switches, or of adapters of the same model


@published("Switch")
class FabricSwitch(Frozen):
    """A switch.

    `level` is its distance from the nodes.
    """

    id: Text
    name: str
    level: Annotated[int | None, Keywords(minimum=1), "1: a leaf; null: not connected to any leaf."]
    model: Annotated[str | None, "vendor:device, as the dump states them."] = None
    facts: Sparse[Annotated[Mapping[str, str], "Power supplies, fans, temperatures, as ibswinfo states them."]] = field(
        default_factory=dict
    )


@published("Adapter")
class FabricAdapter(Frozen):
    """An adapter, or another end of the fabric."""

    id: Text
    name: str
    kind: AdapterKind
    node: Annotated[str | None, "Name of the node; null unless the kind is host."] = None
    model: str | None = None


class LinkEnd(Frozen):
    """One end of a link: the id of a switch or adapter (or a node's name, if adapters are unknown), and its port."""

    device: str
    port: int | None = None


class FabricLink(Frozen):
    """A cable that is up. `a` is the upper end: the switch, or the switch of the higher level.

    `width` is the number of lanes, `speed` the InfiniBand name of their speed ("EDR").
    """

    a: LinkEnd
    b: LinkEnd
    width: Annotated[int | None, Keywords(minimum=1), "Lanes."] = None
    speed: Annotated[str | None, "InfiniBand name of the speed of a lane: SDR to XDR."] = None
    trained_Bps: Positive | None = None
    capable_Bps: Positive | None = None
    capable_basis: Annotated[
        CapableBasis | None, "stated: by the tool; inferred: from other links of the same switches or adapter model."
    ] = None

    @property
    def is_low(self) -> bool:
        """Whether it runs below what both ends can."""
        return None not in (self.trained_Bps, self.capable_Bps) and (self.trained_Bps or 0) < (self.capable_Bps or 0)


class PortDown(Frozen):
    """A port of a switch or adapter without a link.

    `state` is the logical state ("Down"), `physical` the physical one ("Polling").
    """

    device: Text
    port: Count
    state: str
    physical: str = ""


class PortCounters(Frozen):
    """Counters of a port since they were last cleared, which is usually unknown; names as in sysfs.

    `device` is the id of a switch or adapter, or "lid 7" where the dump has no other name; `port` is null for all ports
    together.
    """

    device: Text
    port: Count | None
    counters: Mapping[str, int]


class Oversubscription(Frozen):
    """Bandwidth of the links below a level over that of the links above; null if a rate is unknown.

    All switches of the level together. Everything but `level` is None if a rate is unknown (`why`).
    """

    level: OneOrMore
    ratio: NonNegative | None = None
    down_Bps: NonNegative | None = None
    up_Bps: Positive | None = None
    worst: Annotated[str | None, "Id of the switch with the highest ratio."] = None
    worst_ratio: NonNegative | None = None
    why: Annotated[str, "Why the ratio is unknown."] = ""


class Fabric(Frozen, dict=True):
    """A whole fabric, from one source. `nodes` are host names, sorted."""

    sources: tuple[str, ...]
    switches: tuple[FabricSwitch, ...]
    adapters: tuple[FabricAdapter, ...]
    nodes: tuple[str, ...]
    links: tuple[FabricLink, ...]
    ports_down: tuple[PortDown, ...] = ()
    oversubscription: tuple[Oversubscription, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, str] = {}
    unread: tuple[str, ...] = ()
    port_counters: tuple[PortCounters, ...] = ()

    @cached_property
    def switch_by_id(self) -> Mapping[str, FabricSwitch]:
        """Id -> switch."""
        return {switch.id: switch for switch in self.switches}

    @cached_property
    def adapter_by_id(self) -> Mapping[str, FabricAdapter]:
        """Id -> adapter."""
        return {adapter.id: adapter for adapter in self.adapters}

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The levels with switches, lowest first."""
        return tuple(sorted({switch.level for switch in self.switches if switch.level is not None}))

    @cached_property
    def nodes_of_switch(self) -> Mapping[str, tuple[str, ...]]:
        """Id of a switch -> the names of the nodes that are connected to it directly; only switches that have some."""
        found: dict[str, dict[str, None]] = {}
        for link in self.links:
            name = self.place(link.b.device)
            if link.a.device in self.switch_by_id and name in self._node_names:
                found.setdefault(link.a.device, {})[name] = None
        return {switch: tuple(sorted(names)) for switch, names in found.items()}

    @cached_property
    def _node_names(self) -> frozenset[str]:
        return frozenset(self.nodes)

    def place(self, device: str) -> str:
        """The node that an adapter belongs to, if it is known, else the device itself."""
        adapter = self.adapter_by_id.get(device)
        return adapter.node if adapter is not None and adapter.node is not None else device

    def name(self, device: str) -> str:
        """The name of a switch or adapter as people know it."""
        if device in self.switch_by_id:
            return self.switch_by_id[device].name
        return self.adapter_by_id[device].name if device in self.adapter_by_id else device

    def port_name(self, device: str, port: int | None) -> str:
        """Such as: "leaf-1 port 5"; the device itself if the port is None."""
        return self.name(device) if port is None else f"{self.name(device)} port {port}"

    def level_of(self, device: str) -> int | None:
        """The level of a switch; 0 for everything else."""
        return self.switch_by_id[device].level if device in self.switch_by_id else 0
