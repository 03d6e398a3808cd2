"""`Machine` <-> the JSON object `seatrial.machine/1` (CONTRACT.md, "discover"), and what identifies a machine.

The conversion is lossless: `machine_from_document(machine_document(m)) == m`. What can be derived from the rest
(`disagreements`) is written for scripts and not read back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.errors import UsageError
from seatrial.model.fact import Disagreement, Fact, FactKind, Facts, FactValue
from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import ABSENT, Count, From, Keywords, Positive, Text, filled, shape
from seatrial.model.limit import Basis, Limit
from seatrial.model.machine import (
    Affinity,
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    NamedLimit,
    OddSlot,
    Path,
    PeerAccess,
    Population,
    SocketMemory,
)
from seatrial.model.memory_size import discovered, installed_memory_B
from seatrial.model.platform import Platform, Sign
from seatrial.model.units import UNITS, Unit

SCHEMA = "seatrial.machine/1"


@shape(Fact)
class FactJson(TypedDict):
    """The value of a fact from one source."""

    value: FactValue
    unit: Unit | None
    source: Text
    kind: FactKind
    volatile: bool


FactsJson = Annotated[
    dict[str, Annotated[list[FactJson], Keywords(minItems=1)]],
    "Name -> the facts of all sources, the most trusted first.",
]


@shape(Device)
class DeviceJson(TypedDict):
    """One part of the machine."""

    id: Text
    kind: DeviceKind
    name: str
    aliases: list[str]
    parent: str | None
    numa: Count | None
    pci: str | None
    facts: FactsJson


PathJson = TypedDict(
    "PathJson",
    {
        "a": str,
        "b": str,
        "class": Annotated[
            Literal["X", "NV", "C2C", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS", "PCI"] | None, From("path_class")
        ],
        "links": Count | None,
    },
)
shape(Path)(PathJson)


@shape(Affinity)
class AffinityJson(TypedDict):
    """CPUs and NUMA node next to a device."""

    device: str
    cpus: list[Count] | None
    numa: Count | None
    numa_nodes: NotRequired[
        Annotated[
            list[Count],
            From(lambda affinity: ABSENT if affinity.numa_nodes is None else list(affinity.numa_nodes)),
            "All NUMA nodes next to the device if the source lists several; `numa` is then null.",
        ]
    ]


@shape(PeerAccess)
class PeerAccessJson(TypedDict):
    """Whether one device can read and write another's memory, as the driver reports it."""

    a: str
    b: str
    read: str | None
    write: str | None


@shape(Link)
class LinkJson(TypedDict):
    """A link; rates per direction, after encoding, before protocol. `a` is the end towards the processor: a device, or
    `host` if unknown."""

    a: str
    b: str
    kind: str
    capable_Bps: Positive | None
    trained_Bps: Positive | None
    measured_Bps: Positive | None
    source: str
    count: NotRequired[
        Annotated[
            int,
            Keywords(minimum=1),
            From(lambda link: ABSENT if link.count is None else link.count),
            "Number of links between the two (NVLink, XGMI); absent: unknown.",
        ]
    ]


@shape(Limit)
class LimitJson(TypedDict):
    """The upper bound of a figure, with its derivation."""

    value: Positive | None
    unit: Unit
    derivation: str
    basis: Basis
    confirmed: NotRequired[
        Annotated[bool, From(lambda limit: ABSENT if limit.confirmed else False), "Absent: confirmed."]
    ]


@shape(NamedLimit)
class NamedLimitJson(TypedDict):
    """A limit of the machine itself."""

    name: str
    value: Annotated[Positive | None, From("limit.value")]
    unit: Annotated[Unit, From("limit.unit")]
    derivation: Annotated[str, From("limit.derivation")]
    basis: Annotated[Basis, From("limit.basis")]
    confirmed: NotRequired[Annotated[bool, From(lambda named: ABSENT if named.limit.confirmed else False)]]


@shape(SocketMemory)
class SocketJson(TypedDict):
    """The memory modules of one socket."""

    channels: Annotated[int | None, Keywords(minimum=1)]
    populated_channels: Count | None
    dimms: Count
    capacity_bytes: Count
    configured_MTps: Positive | None
    rated_MTps: Positive | None


@shape(OddSlot)
class OddSlotJson(TypedDict):
    """A memory slot unlike most others; an empty one has no device, and the property `module`."""

    slot: str
    socket: str
    channel: str | None
    device: str | None
    property: str
    own: str
    usual: str
    others: Annotated[Count, "Slots that have the usual value."]


@shape(Memory)
class MemoryJson(TypedDict):
    """The memory modules, socket by socket."""

    verdict: Population
    why: str
    peak_Bps: Annotated[Positive | None, From("peak.value")]
    peak: LimitJson
    sockets: list[SocketJson]
    odd_slots: NotRequired[
        Annotated[
            list[OddSlotJson],
            From(lambda memory: memory.odd_slots or ABSENT),
            "Slots whose module, or lack of one, differs from most others; absent: none.",
        ]
    ]


@shape(Sign)
class SignJson(TypedDict):
    """A hypervisor or container runtime, and what shows it."""

    kind: Text
    evidence: Text


@shape(Platform)
class PlatformJson(TypedDict):
    """What the machine is inside of; empty if it is neither virtual nor a container, or that is unknown."""

    virtualization: list[SignJson]
    container: list[SignJson]


@shape(Disagreement)
class DisagreementJson(TypedDict):
    """A fact on which sources differ; that of a device is named `<device>.<fact>`."""

    name: str
    facts: Annotated[list[FactJson], Keywords(minItems=2)]


@shape(Machine, {"$id": "https://seatrial.dev/schemas/machine-1.json"})
class MachineJson(TypedDict):
    """What a machine is: the output of `seatrial discover --format json`. Sizes are in bytes, rates in B/s per
    direction, clocks in Hz. Unknown is null or absent, never 0."""

    schema: Literal["seatrial.machine/1"]
    name: Annotated[str, "Host name."]
    facts: Annotated[FactsJson, "Facts of the whole machine."]
    devices: Annotated[list[DeviceJson], "The parts, as a depth-first walk of the tree that `parent` makes."]
    paths: Annotated[
        list[PathJson],
        "Proximity of GPUs and network adapters, in the classes of topology matrices.",
    ]
    affinity: list[AffinityJson]
    p2p: list[PeerAccessJson]
    links: list[LinkJson]
    memory: MemoryJson
    limits: list[NamedLimitJson]
    platform: NotRequired[Annotated[PlatformJson, "Missing from documents of the first versions."]]
    disagreements: Annotated[list[DisagreementJson], From(Machine.disagreements)]
    allowed_cpus: Annotated[
        list[Count], "CPUs that the discovering process may use; empty if the machine is not this one."
    ]
    sources: list[str]
    unread: Annotated[list[str], "What could not be read and why, one sentence each."]


class KeptMachineJson(MachineJson):
    """A machine as stored in a results folder."""

    identity: Annotated[str, "The key that experiments refer to."]


def machine_document(machine: Machine) -> MachineJson:
    """The machine as plain JSON values. Raises ValueError for a number that is not finite (a defect)."""
    return filled(MachineJson, machine)


def machine_from_document(document: Mapping[str, Any]) -> Machine:
    """The machine that such an object describes. Raises UsageError if it is invalid."""
    if document.get("schema") != SCHEMA:
        raise UsageError(f"not a {SCHEMA} object: its schema is {document.get('schema')!r}")
    try:
        check_shape(MachineJson, document)
        return Machine(
            name=_text(document["name"]),
            devices=tuple(_device_in(entry) for entry in document["devices"]),
            facts=_facts_in(document["facts"]),
            links=tuple(_link_in(entry) for entry in document["links"]),
            paths=tuple(Path(p["a"], p["b"], p["class"], p["links"]) for p in document["paths"]),
            affinity=tuple(
                Affinity(
                    a["device"],
                    None if a["cpus"] is None else tuple(a["cpus"]),
                    a["numa"],
                    tuple(a["numa_nodes"]) if "numa_nodes" in a else None,
                )
                for a in document["affinity"]
            ),
            p2p=tuple(PeerAccess(p["a"], p["b"], p["read"], p["write"]) for p in document["p2p"]),
            memory=_memory_in(document["memory"]),
            limits=tuple(NamedLimit(entry["name"], _limit_in(entry)) for entry in document["limits"]),
            platform=_platform_in(document.get("platform")),
            allowed_cpus=tuple(document["allowed_cpus"]),
            sources=tuple(document["sources"]),
            unread=tuple(document["unread"]),
        )
    except ValueError as error:
        raise UsageError(f"invalid {SCHEMA} object: {error}") from error


IDENTIFYING: Mapping[DeviceKind | None, frozenset[str]] = {
    None: frozenset(
        {
            *("kernel", "kernel_parameters", "mitigations", "architecture", "page_size", "clocksource"),
            *("governor", "frequency_driver", "boost", "smt_active", "thp_enabled", "thp_defrag", "numa_balancing"),
            *("product", "bios_version", "hypervisor", "container", "cgroup_cpu_limit"),
        }
    ),
    DeviceKind.PACKAGE: frozenset(
        {"vendor", "model_name", "family", "model", "stepping", "implementer", "part", "microcode", "isa"}
    ),
    DeviceKind.CORE: frozenset({"implementer", "part"}),
    DeviceKind.PU: frozenset(
        {
            *("governor", "frequency_driver", "energy_preference"),
            *("max_frequency", "min_frequency", "base_frequency", "allowed_max_frequency"),
        }
    ),
    DeviceKind.CACHE: frozenset({"level", "type", "size"}),
    DeviceKind.NUMA: frozenset(),
    DeviceKind.GPU: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.SWITCH: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.NIC: frozenset({"vendor_id", "device_id", "subsystem_id"}),
}
"""Kind of device (None: the whole machine) -> the facts that are part of its identity; other kinds are not
part of it. A fact belongs here only if figures measured before and after a change of it are not comparable."""

_CPU_SIDE = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)
_PCI_SIDE = (DeviceKind.GPU, DeviceKind.SWITCH, DeviceKind.NIC)
_NETWORK_CLASS = "02"  # a network adapter on USB has the address of the USB controller (class 0c)


def machine_identity(machine: Machine) -> str:
    """SHA-256 (hex) of everything that makes measurements on this machine, with its settings, not comparable to others.

    Host name; the tree of packages, NUMA nodes, caches, cores and hardware threads; GPUs and network adapters on PCI
    with the capable rates of their links; the size of memory; the CPUs that this process may use; and the facts of
    `IDENTIFYING`, each from the most trusted source that discovered it. Nothing that varies without a change of the
    machine, that is asserted by a document, or that only root can read: docs/adr/0003-what-identifies-a-machine.md.
    """
    content = {
        "name": machine.name,
        "facts": _identifying(machine.facts, None),
        "memory": installed_memory_B(machine.facts),
        "cpus": [
            [device.id, device.kind, device.parent, device.numa, _identifying(device.facts, device.kind)]
            for device in machine.devices
            if device.kind in _CPU_SIDE
        ],
        "pci": sorted(_on_pci(machine)),
        "allowed_cpus": machine.allowed_cpus,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _identifying(facts: Facts, kind: DeviceKind | None) -> dict[str, FactValue]:
    chosen = ((name, discovered(facts, name)) for name in IDENTIFYING[kind])
    return {name: fact.value for name, fact in chosen if fact is not None}


def _on_pci(machine: Machine) -> Iterator[tuple[str, str]]:
    """(address, all that identifies it) of each GPU, NVSwitch and network adapter that is a PCI function.

    Includes the links above it, whose rate it shares, but no bridges that lead only to other devices.
    """
    above = {link.b: link for link in machine.links if link.capable_Bps is not None and link.kind.lower() == "pcie"}
    for device in machine.devices:
        if device.kind not in _PCI_SIDE or device.pci is None:
            continue
        if device.kind is DeviceKind.NIC and not (device.facts.text("class_id") or "").startswith(_NETWORK_CLASS):
            continue
        ids = _identifying(device.facts, device.kind)
        path = (device, *machine.ancestors(device))
        links = [above[part.id].capable_Bps for part in path if part.id in above]
        yield device.pci, json.dumps([device.kind, device.numa, ids, links], sort_keys=True, allow_nan=False)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _facts_in(entries: Mapping[str, Any]) -> Facts:
    return Facts({name: tuple(_fact_in(entry) for entry in statements) for name, statements in entries.items()})


def _fact_in(entry: Mapping[str, Any]) -> Fact:
    value = entry["value"]
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{value!r} is not the value of a fact")
    return Fact(value, _text(entry["source"]), FactKind(entry["kind"]), _unit(entry["unit"]), bool(entry["volatile"]))


def _unit(value: object) -> Unit | None:
    for unit in UNITS:
        if value == unit:
            return unit
    if value is not None:
        raise ValueError(f"{value!r} is not a unit")
    return None


def _device_in(entry: Mapping[str, Any]) -> Device:
    return Device(
        id=_text(entry["id"]),
        kind=DeviceKind(entry["kind"]),
        name=_text(entry["name"]),
        parent=entry["parent"],
        numa=entry["numa"],
        pci=entry["pci"],
        aliases=tuple(entry["aliases"]),
        facts=_facts_in(entry["facts"]),
    )


def _link_in(entry: Mapping[str, Any]) -> Link:
    return Link(
        a=entry["a"],
        b=entry["b"],
        kind=entry["kind"],
        capable_Bps=entry["capable_Bps"],
        trained_Bps=entry["trained_Bps"],
        source=entry["source"],
        measured_Bps=entry["measured_Bps"],
        count=entry.get("count"),
    )


def _limit_in(entry: Mapping[str, Any]) -> Limit:
    unit = _unit(entry["unit"])
    if unit is None:
        raise ValueError("a limit without a unit")
    return Limit(
        entry["value"], unit, _text(entry["derivation"]), Basis(entry["basis"]), bool(entry.get("confirmed", True))
    )


def _platform_in(entry: Mapping[str, Any] | None) -> Platform:
    """The platform; documents of earlier versions have none."""
    if entry is None:
        return Platform()
    return Platform(*(tuple(Sign(_text(s["kind"]), _text(s["evidence"])) for s in entry[name])
                      for name in ("virtualization", "container")))  # fmt: skip


def _memory_in(entry: Mapping[str, Any]) -> Memory:
    return Memory(
        verdict=Population(entry["verdict"]),
        why=_text(entry["why"]),
        peak=_limit_in(entry["peak"]),
        sockets=tuple(
            SocketMemory(
                channels=socket["channels"],
                populated_channels=socket["populated_channels"],
                dimms=socket["dimms"],
                capacity_bytes=socket["capacity_bytes"],
                configured_MTps=socket["configured_MTps"],
                rated_MTps=socket["rated_MTps"],
            )
            for socket in entry["sockets"]
        ),
        odd_slots=tuple(
            OddSlot(
                slot=_text(odd["slot"]),
                socket=_text(odd["socket"]),
                channel=None if odd["channel"] is None else _text(odd["channel"]),
                device=None if odd["device"] is None else _text(odd["device"]),
                property=_text(odd["property"]),
                own=_text(odd["own"]),
                usual=_text(odd["usual"]),
                others=odd["others"],
            )
            for odd in entry.get("odd_slots", ())
        ),
    )
