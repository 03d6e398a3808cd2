"""A machine as a graph of devices with facts from all sources, without measured values.

A `Machine` is immutable. Measured values are overlaid when it is shown; rules are pure functions of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property

from seatrial.model.allocation import Allocation
from seatrial.model.fact import Disagreement, Facts
from seatrial.model.frozen import Frozen
from seatrial.model.guest import Guest
from seatrial.model.limit import FmaUnit, Limit
from seatrial.model.platform import Platform


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
    """One part of the machine. `parent` is the id of the device above it; `numa` the operating system's node number."""

    id: str
    kind: DeviceKind
    name: str
    parent: str | None = None
    numa: int | None = None
    pci: str | None = None
    aliases: tuple[str, ...] = ()
    facts: Facts = Facts()


class Link(Frozen):
    """A link between two devices; rates in B/s per direction, after encoding, before protocol.

    `count` is the number of links between the two (NVLink, XGMI); the rates are for all of them together.
    """

    a: str
    b: str
    kind: str
    capable_Bps: float | None
    trained_Bps: float | None
    source: str
    measured_Bps: float | None = None
    count: int | None = None


class Path(Frozen):
    """The proximity of two devices, in the classes of topology matrices."""

    a: str
    b: str
    path_class: str | None
    links: int | None = None


class Affinity(Frozen):
    """The CPUs and NUMA node next to a device. `numa_nodes` are all of its nodes if the source lists several (`numa` is
    then None); None is unknown."""

    device: str
    cpus: tuple[int, ...] | None
    numa: int | None
    numa_nodes: tuple[int, ...] | None = None


class PeerAccess(Frozen):
    """Whether one device can read and write another's memory, as the driver reports it (OK, CNS, ...)."""

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


class SocketMemory(Frozen):
    """The memory modules of one socket; None is unknown."""

    channels: int | None
    populated_channels: int | None
    dimms: int
    capacity_bytes: int
    configured_MTps: float | None
    rated_MTps: float | None


class OddSlot(Frozen):
    """A memory slot unlike most others: `property` has the value `own`, where `others` slots have `usual`. An empty
    slot has no `device`, and the property "module". `channel` is None if it is unknown."""

    slot: str
    socket: str
    channel: str | None
    device: str | None
    property: str
    own: str
    usual: str
    others: int


class Memory(Frozen):
    """All memory modules, socket by socket, and the slots unlike the others."""

    verdict: Population = Population.UNKNOWN
    why: str = "no source describes the memory modules"
    peak: Limit = Limit.unknown("B/s", "no source describes the memory modules")
    sockets: tuple[SocketMemory, ...] = ()
    odd_slots: tuple[OddSlot, ...] = ()


class NamedLimit(Frozen):
    """A limit of the machine itself, such as `dram.bandwidth` or `cpu.fp64`."""

    name: str
    limit: Limit


class Machine(Frozen, dict=True, eq=False):
    """All that the sources report about one machine; `facts` are those of the whole (kernel, firmware, memory)."""

    name: str
    devices: tuple[Device, ...] = ()
    facts: Facts = Facts()
    links: tuple[Link, ...] = ()
    paths: tuple[Path, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    p2p: tuple[PeerAccess, ...] = ()
    memory: Memory = Memory()
    limits: tuple[NamedLimit, ...] = ()
    platform: Platform = Platform()
    allowed_cpus: tuple[int, ...] = ()
    """CPUs that this process may use, sorted (affinity mask and cpuset); empty if the machine is not this one."""
    sources: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """What could not be read and why, one sentence each."""
    allocation: Allocation | None = None
    """The nodes that ranks can be started on, this machine first; None: only this machine. It is no part of what the
    machine is."""
    guests: tuple[Guest, ...] = ()
    """The guests that programs can run in. They are no part of what the machine is either."""

    def __eq__(self, other: object) -> bool:
        """Whether it is the same machine, whatever its allocation and its guests."""
        return isinstance(other, Machine) and all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if name not in ("allocation", "guests")
        )

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

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Facts on which sources differ; those of a device are named `<device>.<fact>`."""
        found = list(self.facts.disagreements())
        for device in self.devices:
            found += [Disagreement(f"{device.id}.{d.name}", d.facts) for d in device.facts.disagreements()]
        return tuple(found)
