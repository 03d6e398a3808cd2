"""A fabric: switches, the adapters and nodes on them, and the links between them.

Unknown is None, never 0. Rates are in B/s per direction, after encoding, before protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

from seatrial.model.finding import Finding
from seatrial.model.frozen import Frozen


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


class FabricSwitch(Frozen):
    """A switch. `level` is its distance from the nodes: 1 for a leaf; None if it is not connected to any."""

    id: str
    name: str
    level: int | None
    model: str | None = None


class FabricAdapter(Frozen):
    """An adapter, or another end of the fabric. `node` is the host's name for kind HOST, else None."""

    id: str
    name: str
    kind: AdapterKind
    node: str | None = None
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
    width: int | None = None
    speed: str | None = None
    trained_Bps: float | None = None
    capable_Bps: float | None = None
    capable_basis: CapableBasis | None = None

    @property
    def is_low(self) -> bool:
        """Whether it runs below what both ends can."""
        return None not in (self.trained_Bps, self.capable_Bps) and (self.trained_Bps or 0) < (self.capable_Bps or 0)


class PortDown(Frozen):
    """A port without a working link. `state` is the logical state ("Down"), `physical` the physical one ("Polling")."""

    device: str
    port: int
    state: str
    physical: str = ""


class Oversubscription(Frozen):
    """Bandwidth of the links below a level over that of the links above, all switches of the level together.

    `worst` is the switch with the highest ratio. Everything but `level` is None if a rate is unknown (`why`).
    """

    level: int
    ratio: float | None = None
    down_Bps: float | None = None
    up_Bps: float | None = None
    worst: str | None = None
    worst_ratio: float | None = None
    why: str = ""


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

    def level_of(self, device: str) -> int | None:
        """The level of a switch; 0 for everything else."""
        return self.switch_by_id[device].level if device in self.switch_by_id else 0
