"""A machine as a graph of devices with facts from all sources, what it is inside of, and the nodes of its allocation.

A `Machine` is immutable. Measured values are overlaid when it is shown; rules are pure functions of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import (
    As,
    Count,
    Flat,
    Hidden,
    Key,
    Keywords,
    Later,
    OneOrMore,
    Positive,
    Sparse,
    Text,
    key,
    published,
)
from seatrial.model.machine.fact import Disagreement, Facts, StatedFacts
from seatrial.model.machine.guest import Guest
from seatrial.model.machine.limit import FmaUnit, Limit


class Sign(Frozen):
    """A hypervisor or container runtime, and what shows it.

    `kind` is "kvm", "docker".
    """

    kind: Text
    evidence: Text


class Platform(Frozen):
    """What the machine is inside of; empty if it is neither virtual nor a container, or that is unknown.

    All layers around the machine, the outermost first.
    """

    virtualization: tuple[Sign, ...] = ()
    container: tuple[Sign, ...] = ()


class Node(Frozen):
    """A node: `name` as launchers take it, which may not be its host name; `machine` what it is; `switch` the leaf
    switch that it is below, None if that is unknown."""

    name: str
    machine: Machine
    switch: str | None = None


class LeftOut(Frozen):
    """A node that is not used, and why."""

    name: str
    why: str


class Allocation(Frozen):
    """`source` is what gave the nodes, for messages ("Slurm job 12"). `nodes` are alike, and this one is the first.
    `order`: their names as the batch system lists them, which ranks keep; empty: as in `nodes`."""

    source: str
    nodes: tuple[Node, ...]
    left_out: tuple[LeftOut, ...] = ()
    order: tuple[str, ...] = ()

    def first(self, count: int) -> tuple[Node, ...]:
        """So many of the first nodes, in the order of ranks."""
        return self._ordered(self.nodes[:count])

    @property
    def in_order(self) -> tuple[Node, ...]:
        """All nodes in the order of ranks."""
        return self._ordered(self.nodes)

    def _ordered(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        number = {name: at for at, name in enumerate(self.order)}
        return tuple(sorted(nodes, key=lambda node: number.get(node.name, -1)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, in their order."""
        return tuple(node.name for node in self.nodes)

    @property
    def shortage(self) -> str:
        """Why there are not more nodes, for messages."""
        words = f"{self.source} has {len(self.nodes)} like this one"
        if self.left_out:
            words += "; left out: " + "; ".join(f"{one.name} ({one.why})" for one in self.left_out)
        return words


class DeviceKind(StrEnum):
    """The closed set of kinds in `seatrial.machine/1`."""

    PACKAGE = "package"
    NUMA = "numa"
    CACHE = "cache"
    CORE = "core"
    PU = "pu"  # processing unit: a hardware thread, what Linux calls a CPU (hwloc's word)
    BRIDGE = "bridge"
    SWITCH = "switch"
    GPU = "gpu"
    NIC = "nic"
    NVME = "nvme"
    BLOCK = "block"
    MEMORY = "memory"  # a memory module, a CXL memory device or a DAX device


class Device(Frozen):
    """One part of the machine.

    `parent` is the id of the device above it; `numa` the operating system's node number.
    """

    id: Text
    kind: DeviceKind
    name: str
    parent: str | None = None
    numa: Count | None = None
    pci: str | None = None
    aliases: tuple[str, ...] = ()
    facts: StatedFacts = Facts()


class Link(Frozen):
    """A link; rates per direction, after encoding, before protocol. `a` is the end towards the processor: a device, or
    `host` if unknown.

    Rates are in B/s, for all links between the two together.
    """

    a: str
    b: str
    kind: str
    capable_Bps: Positive | None
    trained_Bps: Positive | None
    source: str
    measured_Bps: Positive | None = None
    count: Sparse[Annotated[OneOrMore | None, "Number of links between the two (NVLink, XGMI); absent: unknown."]] = (
        None
    )


class Path(Frozen):
    """The proximity of two devices, in the classes of topology matrices."""

    a: str
    b: str
    path_class: Annotated[
        str | None,
        As(Literal["X", "NV", "C2C", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS", "PCI"] | None),
        Key("class"),
    ]
    links: Count | None = None


class Affinity(Frozen):
    """CPUs and NUMA node next to a device.

    None is unknown.
    """

    device: str
    cpus: tuple[Count, ...] | None
    numa: Count | None
    numa_nodes: Sparse[
        Annotated[
            tuple[Count, ...] | None,
            "All NUMA nodes next to the device if the source lists several; `numa` is then null.",
        ]
    ] = None


class PeerAccess(Frozen):
    """Whether one device can read and write another's memory, as the driver reports it.

    OK, CNS, ...
    """

    a: str
    b: str
    read: str | None
    write: str | None


class Population(StrEnum):
    """How well the memory slots are filled."""

    BALANCED = "balanced"
    NEAR_BALANCED = "near-balanced"
    UNBALANCED = "unbalanced"
    UNKNOWN = "unknown"


@published("Socket")
class SocketMemory(Frozen):
    """The memory modules of one socket.

    None is unknown.
    """

    channels: Annotated[int | None, Keywords(minimum=1)]
    populated_channels: Count | None
    dimms: Count
    capacity_bytes: Count
    configured_MTps: Positive | None
    rated_MTps: Positive | None


class OddSlot(Frozen):
    """A memory slot unlike most others; an empty one has no device, and the property `module`.

    `property` has the value `own`, where `others` slots have `usual`. `channel` is None if it is unknown.
    """

    slot: str
    socket: str
    channel: str | None
    device: str | None
    property: str
    own: str
    usual: str
    others: Annotated[Count, "Slots that have the usual value."]


class Memory(Frozen):
    """The memory modules, socket by socket."""

    verdict: Population = Population.UNKNOWN
    why: str = "no source describes the memory modules"
    peak: Limit = Limit.unknown("B/s", "no source describes the memory modules")
    sockets: tuple[SocketMemory, ...] = ()
    odd_slots: Sparse[
        Annotated[tuple[OddSlot, ...], "Slots whose module differs from most others, or is missing; absent: none."]
    ] = ()

    @property
    @key
    def peak_Bps(self) -> Positive | None:
        """The value of the peak; None if it is unknown."""
        return self.peak.value


class NamedLimit(Frozen):
    """A limit of the machine itself.

    Such as `dram.bandwidth` or `cpu.fp64`.
    """

    name: str
    limit: Flat[Limit]


UNNAMED = "not told"
"""The name of a machine that results of other tools do not state, as in records of the first versions: it identifies
the machine."""


@published(keywords={"$id": "https://seatrial.dev/schemas/machine-1.json"})
class Machine(Frozen, dict=True, eq=False):
    """What a machine is: the output of `seatrial discover --format json`. Sizes are in bytes, rates in B/s per
    direction, clocks in Hz. Unknown is null or absent, never 0.

    It is all that the sources report; `facts` are kernel, firmware, memory.
    """

    schema: ClassVar[Literal["seatrial.machine/1"]] = "seatrial.machine/1"
    name: Annotated[str, "Host name."]
    devices: Annotated[tuple[Device, ...], "The parts, as a depth-first walk of the tree that `parent` makes."] = ()
    facts: Annotated[StatedFacts, "Facts of the whole machine."] = Facts()
    links: tuple[Link, ...] = ()
    paths: Annotated[
        tuple[Path, ...], "Proximity of GPUs and network adapters, in the classes of topology matrices."
    ] = ()
    affinity: tuple[Affinity, ...] = ()
    p2p: tuple[PeerAccess, ...] = ()
    memory: Memory = Memory()
    limits: tuple[NamedLimit, ...] = ()
    platform: Later[Annotated[Platform, "Missing from documents of the first versions."]] = Platform()
    allowed_cpus: Annotated[
        tuple[Count, ...], "CPUs that the discovering process may use; empty if the machine is not this one."
    ] = ()
    """Sorted: affinity mask and cpuset."""
    sources: tuple[str, ...] = ()
    unread: Annotated[tuple[str, ...], "What could not be read and why, one sentence each."] = ()
    allocation: Hidden[Allocation | None] = None
    """The nodes that ranks can be started on, this machine first; None: only this machine. It does not identify the
    machine."""
    guests: Hidden[tuple[Guest, ...]] = ()
    """The guests that programs can run in. They do not identify the machine either."""

    def __eq__(self, other: object) -> bool:
        """Whether it is the same machine, whatever its allocation and its guests."""
        return isinstance(other, Machine) and all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if name not in ("allocation", "guests")
        )

    @property
    def title(self) -> str:
        """Its name, in the words of a page."""
        return "a machine" if self.name in ("", UNNAMED) else self.name

    @cached_property
    def _by_id(self) -> Mapping[str, Device]:
        """Derived once, as what follows: a large machine has thousands, and rules look up each CPU."""
        by_id: dict[str, Device] = {}
        for device in self.devices:
            by_id.setdefault(device.id, device)
        return by_id

    @cached_property
    def _fma_units(self) -> dict[int, FmaUnit | None]:
        return {}

    def guest(self, name: str) -> Guest | None:
        """The guest of that name; None if nothing is known of it."""
        return next((guest for guest in self.guests if guest.name == name), None)

    def at(self, vm: str | None) -> Machine:
        """The machine that programs run on if `environment.vm` is this: a guest, if it can be used, else this one."""
        found = None if vm is None else self.guest(vm)
        return self if found is None or found.machine is None else found.machine

    def of_kind(self, kind: DeviceKind) -> tuple[Device, ...]:
        """The devices of one kind, in their order."""
        return tuple(device for device in self.devices if device.kind is kind)

    def memory_modules(self) -> tuple[Device, ...]:
        """The modules in slots: memory devices other than those on a bus (CXL) and DAX devices."""
        return tuple(
            device
            for device in self.devices
            if device.kind is DeviceKind.MEMORY and device.pci is None and "memory_device" not in device.facts
        )

    def device(self, device_id: str) -> Device | None:
        """The device with this id, or None."""
        return self._by_id.get(device_id)

    def ancestors(self, device: Device) -> Iterator[Device]:
        """The device's parent, its parent, and so on up to a root."""
        seen: set[str] = set()
        above = self._by_id.get(device.parent or "")
        while above is not None and above.id not in seen:  # a damaged document may contain a cycle
            seen.add(above.id)
            yield above
            above = self._by_id.get(above.parent or "")

    def named_limit(self, name: str) -> Limit | None:
        """The limit of that name, or None."""
        return next((named.limit for named in self.limits if named.name == name), None)

    @cached_property
    def pus(self) -> Mapping[int, Device]:
        """Operating-system CPU number -> its PU device."""
        numbers = ((device.facts.integer("os_index"), device) for device in self.of_kind(DeviceKind.PU))
        return {number: device for number, device in numbers if number is not None}

    @cached_property
    def cpus_one_per_core(self) -> tuple[int, ...]:
        """The first allowed CPU of each core, in core order, to pin one thread per core."""
        pus = self.pus
        seen_cores: set[str | None] = set()
        chosen: list[int] = []
        for cpu in self.allowed_cpus:
            core = pus[cpu].parent if cpu in pus else f"cpu-{cpu}"
            if core not in seen_cores:
                seen_cores.add(core)
                chosen.append(cpu)
        return tuple(chosen)

    def package_of(self, cpu: int) -> Device | None:
        """The package that holds a CPU, or None."""
        return next((device for device in self._above(cpu) if device.kind is DeviceKind.PACKAGE), None)

    def fma_unit(self, cpu: int) -> FmaUnit | None:
        """The FMA hardware asserted for a CPU's core, else for its package; None if pipes or width are unknown.

        Cores of one package may differ (big and little cores), so the core is looked up first.
        """
        if cpu not in self._fma_units:
            self._fma_units[cpu] = self._find_fma_unit(cpu)
        return self._fma_units[cpu]

    def _find_fma_unit(self, cpu: int) -> FmaUnit | None:
        for device in self._above(cpu):
            facts = device.facts
            pipes, bits = facts.integer("fma_pipes"), facts.integer("fma_vector_bits")
            stated, confirmed = facts.best("fma_pipes"), facts.best("fma_confirmed")
            if pipes and bits and stated is not None:
                is_confirmed = confirmed is None or confirmed.value is True
                return FmaUnit(pipes, bits, facts.number("fma_latency_cycles"), stated.source, is_confirmed)
        return None

    def _above(self, cpu: int) -> Iterator[Device]:
        """The devices that contain a CPU, the core first; empty if the machine has no such CPU."""
        pu = self.pus.get(cpu)
        return iter(()) if pu is None else self.ancestors(pu)

    def last_level_cache_bytes(self, cpus: Iterable[int]) -> int | None:
        """The total size of the last-level caches of these CPUs, each counted once; None if the caches are unknown."""
        pus = self.pus
        sizes: dict[str, int] = {}
        for cpu in cpus:
            if cpu not in pus:
                return None
            caches = [device for device in self.ancestors(pus[cpu]) if device.kind is DeviceKind.CACHE]
            if not caches:
                return None
            last = max(caches, key=lambda cache: cache.facts.integer("level") or 0)
            size = last.facts.integer("size")
            if size is None:
                return None
            sizes[last.id] = size
        return sum(sizes.values()) or None

    @key
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Facts on which sources differ; those of a device are named `<device>.<fact>`."""
        found = list(self.facts.disagreements())
        for device in self.devices:
            found += [Disagreement(f"{device.id}.{d.name}", d.facts) for d in device.facts.disagreements()]
        return tuple(found)
