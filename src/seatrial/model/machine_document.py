"""The JSON object `seatrial.machine/1` of a `Machine` (CONTRACT.md, "discover").

The conversion is lossless: `machine_from_document(machine_document(m)) == m`. What can be derived from the rest
(`disagreements`) is written for scripts and not read back.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.model.fact import Disagreement, Fact, FactKind, FactValue
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
from seatrial.model.platform import Platform, Sign
from seatrial.model.units import Unit

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
