"""Bridges, GPUs, switches, adapters and disks from any number of surveys, attached to the CPU tree.

The parent of a host bridge is its local NUMA node (else package); if its source states none and there is one NUMA node,
that one. A function that is not a bridge, GPU or switch, nor an adapter or disk according to its source, appears only
as the devices that the operating system names on it; a bridge appears only if it leads to a device. The id of a device
in a matrix is its label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from seatrial.machine.io_parts import IoParts, kind_of
from seatrial.machine.paths import join_links
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.machine.survey import NamedPart, PciPart, merge_facts
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Link

_PREFIX = {DeviceKind.GPU: "gpu", DeviceKind.SWITCH: "nvswitch"}
_PROCESSORS = (DeviceKind.GPU, DeviceKind.SWITCH)


class IoTree(Frozen):
    """The devices in depth-first order, their links and affinities."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    affinity: tuple[Affinity, ...] = ()


class _Slot(Struct):
    """A device, the parts that it was made from, and its children; `order` is the order of creation."""

    device: Device
    pci: PciPart | None
    named: NamedPart | None = None
    order: int = 0
    children: list[_Slot] = []


def build_io_tree(parts: IoParts, cpu_devices: Sequence[Device]) -> IoTree:
    """The I/O devices of the machine; `cpu_devices` is the tree that they are attached to."""
    slots: dict[str | None, _Slot] = {}
    for order, slot in enumerate(_Maker(parts, cpu_devices).slots()):
        slot.order = order
        slots.setdefault(slot.device.id, slot)
    roots = [slot for slot in slots.values() if slot.device.parent not in slots]
    for slot in slots.values():
        if slot.device.parent in slots:
            slots[slot.device.parent].children.append(slot)
    kept = [slot for root in sorted(roots, key=_order) for slot in _depth_first(root) if _leads_somewhere(slot)]
    return IoTree(
        devices=tuple(slot.device for slot in kept),
        links=join_links([(slot.device, slot.pci) for slot in kept if slot.pci is not None], parts.pci),
        affinity=tuple(_affinity(slot) for slot in kept if slot.device.kind is not DeviceKind.BRIDGE),
    )


class _Maker:
    """Makes a slot for each part that is shown."""

    def __init__(self, parts: IoParts, cpu_devices: Sequence[Device]) -> None:
        self._pci = parts.pci
        self._named = parts.named
        self._cpu_devices = cpu_devices
        self._by_address = {(p.kind, p.pci): p for p in reversed(parts.named) if p.pci is not None}

    def slots(self) -> Iterator[_Slot]:
        """PCI functions in order of address, then devices without an address, or with an address that others share."""
        numbers = self._gpu_numbers()
        with_names = {named.pci for named in self._named if named.kind not in _PROCESSORS}
        counters: dict[DeviceKind, int] = {}
        for part in sorted(self._pci.values(), key=lambda p: p.address):
            kind = kind_of(part)
            if kind is DeviceKind.BRIDGE:
                name = f"{'PCI' if part.class_id else 'host'} bridge {part.address}"
                yield _Slot(self._device(part, f"pci-{part.address}", kind, name, part.facts), part)
            elif kind in _PROCESSORS:
                number = numbers.get(part.address, counters.get(kind, 0))
                counters[kind] = counters.get(kind, 0) + 1
                named = self._by_address.get((kind, part.address))
                yield _Slot(self._processor(part, kind, number, named), part, named)
            elif kind is not None and part.address not in with_names:  # as in lspci output
                name = _gpu_name(part.facts) or f"{kind} {part.address}"
                yield _Slot(self._device(part, f"{kind}-{part.address}", kind, name, part.facts), part)
        for named in self._named:
            if named.kind not in _PROCESSORS or (named.pci not in self._pci and named.is_label):
                yield self._named_slot(named)

    def _gpu_numbers(self) -> dict[str, int]:
        """Address -> the driver's number of a GPU; empty unless all GPUs have distinct numbers."""
        gpus = [part.address for part in self._pci.values() if kind_of(part) is DeviceKind.GPU]
        indexes = {a: p.index for a in gpus if (p := self._by_address.get((DeviceKind.GPU, a))) is not None}
        numbers = {address: index for address, index in indexes.items() if index is not None}
        return numbers if len(numbers) == len(gpus) == len(set(numbers.values())) else {}

    def _processor(self, part: PciPart, kind: DeviceKind, number: int, named: NamedPart | None) -> Device:
        """A GPU or NVSwitch with its number; facts from its driver precede those from the bus."""
        facts = part.facts if named is None else merge_facts(named.facts, part.facts)
        own_id = f"{_PREFIX[kind]}-{number}"
        device_id = named.name if named is not None and named.is_label else own_id
        names = () if named is None else (named.name, *named.aliases)
        device = self._device(part, device_id, kind, _gpu_name(facts) or device_id, facts, named)
        return replace(
            device, aliases=tuple(dict.fromkeys(n for n in names if n and n not in (device_id, device.name)))
        )

    def _device(
        self, part: PciPart, device_id: str, kind: DeviceKind, name: str, facts: Facts, named: NamedPart | None = None
    ) -> Device:
        numa = _numa(part.numa, part.cpus, self._cpu_devices)
        if named is not None and named.numa is not None:
            numa = named.numa
        parent = self._bridge_above(part) or _near_cpus(numa, self._cpu_devices)
        return Device(device_id, kind, name, parent, numa, part.address, facts=facts)

    def _named_slot(self, part: NamedPart) -> _Slot:
        function = self._pci.get(part.pci) if part.pci is not None else None
        facts = part.facts
        numa = part.numa
        if function is not None:
            numa = numa if numa is not None else _numa(function.numa, function.cpus, self._cpu_devices)
            # Facts from the driver precede those from the bus.
            of_bus = {name: known for name, known in function.facts.items() if name != "driver" or name not in facts}
            facts = merge_facts(part.facts, Facts(of_bus))
        is_on_node = function is not None or part.is_label or (part.numa is not None and part.pci is None)
        above = self._bridge_above(function) if function is not None else None
        parent = above or (_near_cpus(numa, self._cpu_devices) if is_on_node else None)
        device_id = part.name if part.is_label else f"{part.kind}-{part.name}"
        device = Device(device_id, part.kind, part.name, parent, numa, part.pci, part.aliases, facts)
        return _Slot(device, function, part)

    def _bridge_above(self, part: PciPart) -> str | None:
        """The id of the nearest bridge above; other functions (Intel VMD) are skipped."""
        seen: set[str] = set()
        above = part.parent
        while above is not None and above in self._pci and above not in seen:
            if kind_of(self._pci[above]) is DeviceKind.BRIDGE:
                return f"pci-{above}"
            seen.add(above)
            above = self._pci[above].parent
        return None


def _gpu_name(facts: Facts) -> str | None:
    ids = (facts.text("vendor_id"), facts.text("device_id"))
    return facts.text("model_name") or facts.text("pci_name") or (f"PCI {ids[0]}:{ids[1]}" if all(ids) else None)


def _numa(stated: int | None, cpus: frozenset[int] | None, cpu_devices: Sequence[Device]) -> int | None:
    """The node that the source states, else the only node, else the smallest node around these CPUs.

    A node is the only one if it has all CPUs: NCCL and lspci list just the nodes of some devices. Of several nodes
    with the same CPUs (DRAM and HBM), it is the first: Linux gives the CPUs to DRAM, which has the lower number.
    """
    if stated is not None:
        return stated
    every = [device for device in cpu_devices if device.kind is DeviceKind.NUMA]
    nodes = [(device, own) for device in every if (own := _cpu_set(device.facts.text("cpus") or ""))]
    around = [(len(own), device.numa or 0) for device, own in nodes if cpus and cpus <= own]
    if around:
        smallest = [own for _, own in nodes if cpus and cpus <= own and len(own) == min(around)[0]]
        return min(around)[1] if len(set(smallest)) == 1 else None
    if any("hidden_nodes" in device.facts for device, _ in nodes):
        return None
    pus = {device.facts.integer("os_index") for device in cpu_devices if device.kind is DeviceKind.PU}
    return nodes[0][0].numa if len(nodes) == 1 and pus and pus <= nodes[0][1] else None


def _near_cpus(numa: int | None, cpu_devices: Sequence[Device]) -> str | None:
    if numa is not None and any(device.id == f"numa-{numa}" for device in cpu_devices):
        return f"numa-{numa}"
    packages = [device for device in cpu_devices if device.kind is DeviceKind.PACKAGE]
    return packages[0].id if len(packages) == 1 else None


@lru_cache(maxsize=1024)
def _cpu_set(text: str) -> frozenset[int]:
    return frozenset(read_cpu_list(text))


def _order(slot: _Slot) -> tuple[str, int]:
    """By address; devices without one in the order of their source."""
    return (slot.device.pci or "~", slot.order)


def _depth_first(slot: _Slot) -> Iterator[_Slot]:
    stack, seen = [slot], set[str]()
    while stack:
        current = stack.pop()
        if current.device.id in seen:  # a cycle in a damaged source
            continue
        seen.add(current.device.id)
        yield current
        stack += sorted(current.children, key=_order, reverse=True)


def _leads_somewhere(slot: _Slot) -> bool:
    return any(below.device.kind is not DeviceKind.BRIDGE for below in _depth_first(slot))


def _affinity(slot: _Slot) -> Affinity:
    """From the driver's matrix, else from the bus; unknown if neither states it."""
    cpus = slot.named.cpus if slot.named is not None else None
    if cpus is None and slot.pci is not None:
        cpus = slot.pci.cpus
    numa = slot.device.numa
    several = slot.named.numa_nodes if slot.named is not None and numa is None else None
    return Affinity(slot.device.id, tuple(sorted(cpus)) if cpus else None, numa, several)
