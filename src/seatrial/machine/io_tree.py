"""Bridges, GPUs, switches, adapters and disks from what any number of surveys say, hung on the CPU tree.

PCI functions are joined by address, named devices by kind and name. A host bridge hangs on the NUMA node (else the
package) that it is next to; where its source says nothing and there is one NUMA node, on that. A function that is
neither a bridge, a GPU nor a switch appears only as what the operating system named on it; a bridge only when it leads
to something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from seatrial.machine.pcie import join_links
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.machine.survey import NamedPart, PciPart, Survey, merge_facts
from seatrial.model.fact import Facts
from seatrial.model.machine import Affinity, Device, DeviceKind, Link

_NO_GPU_VENDORS = frozenset({"1a03", "102b", "1234", "1013", "1af4", "15ad", "80ee", "1b36"})
"""Display controllers of management boards (ASPEED, Matrox) and virtual machines (QEMU, Cirrus, virtio, VMware)."""

_MANAGEMENT_DISPLAYS = frozenset({("1002", "515e"), ("1002", "5969")})  # ATI ES1000, on server boards until about 2012
_NVIDIA = "10de"
_PREFIX = {DeviceKind.GPU: "gpu", DeviceKind.SWITCH: "nvswitch"}


@dataclass(frozen=True, slots=True)
class IoTree:
    """The devices in depth-first order, their links and their places."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    affinity: tuple[Affinity, ...] = ()


@dataclass(slots=True)
class _Slot:
    """A device to be, and what hangs below it."""

    device: Device
    pci: PciPart | None
    children: list[_Slot] = field(default_factory=list)


def build_io_tree(surveys: Sequence[Survey], cpu_devices: Sequence[Device]) -> IoTree:
    """The I/O side of the machine; `cpu_devices` is the tree that it hangs on."""
    pci = _joined_pci(surveys)
    named = _joined_named(surveys)
    slots = _slots(pci, named, cpu_devices)
    roots = [slot for slot in slots.values() if slot.device.parent not in slots]
    for slot in slots.values():
        if slot.device.parent in slots:
            slots[slot.device.parent].children.append(slot)
    kept = [slot for root in sorted(roots, key=_order) for slot in _depth_first(root) if _leads_somewhere(slot)]
    return IoTree(
        devices=tuple(slot.device for slot in kept),
        links=join_links([(slot.device, slot.pci) for slot in kept if slot.pci is not None], pci),
        affinity=tuple(_affinity(slot) for slot in kept if slot.device.kind is not DeviceKind.BRIDGE),
    )


def _joined_pci(surveys: Sequence[Survey]) -> dict[str, PciPart]:
    joined: dict[str, PciPart] = {}
    for survey in surveys:
        for part in survey.pci_parts:
            known = joined.get(part.address)
            if known is None:
                joined[part.address] = part
                continue
            joined[part.address] = replace(
                known,
                parent=known.parent if known.parent is not None else part.parent,
                numa=known.numa if known.numa is not None else part.numa,
                cpus=known.cpus or part.cpus,
                capable=known.capable or part.capable,
                trained=known.trained or part.trained,
                trained_Bps=known.trained_Bps or part.trained_Bps,
                kind=known.kind or part.kind,
                facts=merge_facts(known.facts, part.facts),
            )
    return joined


def _joined_named(surveys: Sequence[Survey]) -> list[NamedPart]:
    """Named devices once each; a name that another survey takes for an alias (ib0 of mlx5_0) is that device."""
    joined: dict[tuple[DeviceKind, str], NamedPart] = {}
    for survey in surveys:
        for part in survey.named_parts:
            key = (part.kind, part.name or f"@{part.pci}")
            is_alias = (k for k, p in joined.items() if part.name and k[0] is part.kind and part.name in p.aliases)
            owner = next(is_alias, key)
            known = joined.get(owner)
            joined[owner] = part if known is None else _join(known, part)
    return list(joined.values())


def _join(known: NamedPart, part: NamedPart) -> NamedPart:
    names = dict.fromkeys((*known.aliases, *part.aliases))
    return replace(
        known,
        pci=known.pci or part.pci,
        numa=known.numa if known.numa is not None else part.numa,
        aliases=tuple(name for name in names if name != known.name),
        facts=merge_facts(known.facts, part.facts),
    )


def _slots(pci: dict[str, PciPart], named: list[NamedPart], cpu_devices: Sequence[Device]) -> dict[str | None, _Slot]:
    slots: dict[str | None, _Slot] = {}
    counters: dict[DeviceKind, int] = {}
    for part in sorted(pci.values(), key=lambda p: p.address):
        kind = _kind(part)
        if kind is None:
            continue
        parent = _bridge_above(part, pci) or _near_cpus(part, cpu_devices)
        device = Device("", kind, "", parent, _numa(part, cpu_devices), part.address, facts=part.facts)
        if kind is DeviceKind.BRIDGE:
            device = replace(device, id=f"pci-{part.address}", name=_bridge_name(part))
        else:
            device = _processor(device, counters.get(kind, 0), [n for n in named if n.kind is DeviceKind.GPU])
            counters[kind] = counters.get(kind, 0) + 1
        slots[device.id] = _Slot(device, part)
    for named_part in named:
        if named_part.kind not in (DeviceKind.GPU, DeviceKind.SWITCH):
            slot = _named_slot(named_part, pci, cpu_devices)
            slots[slot.device.id] = slot
    return slots


def _processor(device: Device, number: int, drivers: list[NamedPart]) -> Device:
    """A GPU or NVSwitch with its number and what its driver says, which goes before what the bus says."""
    mine = [part for part in drivers if part.pci == device.pci]
    facts = merge_facts(*(part.facts for part in mine), device.facts)
    aliases = tuple(dict.fromkeys(part.name for part in mine if part.name))
    device_id = f"{_PREFIX[device.kind]}-{number}"
    return replace(device, id=device_id, name=_gpu_name(facts) or device_id, aliases=aliases, facts=facts)


def _named_slot(part: NamedPart, pci: dict[str, PciPart], cpu_devices: Sequence[Device]) -> _Slot:
    function = pci.get(part.pci) if part.pci is not None else None
    parent = numa = None
    facts = part.facts
    if function is not None:
        parent = _bridge_above(function, pci) or _near_cpus(function, cpu_devices)
        numa = _numa(function, cpu_devices)
        # What the driver says goes before what the bus says; the bus's names stay under their own names.
        facts = merge_facts(part.facts, _without(function.facts, part.facts, "driver"))
    device = Device(
        f"{part.kind}-{part.name}", part.kind, part.name, parent, part.numa if part.numa is not None else numa,
        part.pci, part.aliases, facts,
    )  # fmt: skip
    return _Slot(device, function)


def _without(facts: Facts, told: Facts, *names: str) -> Facts:
    return Facts({name: said for name, said in facts.items() if name not in names or name not in told})


def _kind(part: PciPart) -> DeviceKind | None:
    vendor = part.facts.text("vendor_id")
    if part.kind is not None:
        return part.kind
    if part.is_bridge:
        return DeviceKind.BRIDGE
    is_management = vendor in _NO_GPU_VENDORS or (vendor, part.facts.text("device_id")) in _MANAGEMENT_DISPLAYS
    if part.class_id[:2] in ("03", "12") and not is_management:  # display controller; processing accelerator
        return DeviceKind.GPU
    if part.class_id == "0680" and vendor == _NVIDIA:  # an NVSwitch calls itself "bridge, other"
        return DeviceKind.SWITCH
    return None


def _bridge_name(part: PciPart) -> str:
    return f"host bridge {part.address}" if part.class_id == "" else f"PCI bridge {part.address}"


def _gpu_name(facts: Facts) -> str | None:
    ids = (facts.text("vendor_id"), facts.text("device_id"))
    return facts.text("model_name") or facts.text("pci_name") or (f"PCI {ids[0]}:{ids[1]}" if all(ids) else None)


def _bridge_above(part: PciPart, pci: dict[str, PciPart]) -> str | None:
    """The id of the nearest bridge above; functions that are none (Intel VMD) are passed by."""
    seen: set[str] = set()
    above = part.parent
    while above is not None and above in pci and above not in seen:
        if pci[above].is_bridge:
            return f"pci-{above}"
        seen.add(above)
        above = pci[above].parent
    return None


def _numa(part: PciPart, cpu_devices: Sequence[Device]) -> int | None:
    """The node that the kernel names, else the only one, else the one that has just these CPUs."""
    if part.numa is not None:
        return part.numa
    nodes = [device for device in cpu_devices if device.kind is DeviceKind.NUMA]
    if len(nodes) == 1:
        return nodes[0].numa
    if part.cpus:
        near = [d for d in nodes if d.facts.text("cpus") and part.cpus == _cpus(d)]
        if len(near) == 1:
            return near[0].numa
    return None


def _near_cpus(part: PciPart, cpu_devices: Sequence[Device]) -> str | None:
    numa = _numa(part, cpu_devices)
    if numa is not None and any(device.id == f"numa-{numa}" for device in cpu_devices):
        return f"numa-{numa}"
    packages = [device for device in cpu_devices if device.kind is DeviceKind.PACKAGE]
    return packages[0].id if len(packages) == 1 else None


def _cpus(device: Device) -> frozenset[int]:
    return frozenset(read_cpu_list(device.facts.text("cpus") or ""))


def _order(slot: _Slot) -> tuple[str, str, str]:
    return (slot.device.pci or "~", str(slot.device.kind), slot.device.id)


def _depth_first(slot: _Slot) -> Iterator[_Slot]:
    stack, seen = [slot], set[str]()
    while stack:
        current = stack.pop()
        if current.device.id in seen:  # a damaged source that makes a ring
            continue
        seen.add(current.device.id)
        yield current
        stack += sorted(current.children, key=_order, reverse=True)


def _leads_somewhere(slot: _Slot) -> bool:
    return any(below.device.kind is not DeviceKind.BRIDGE for below in _depth_first(slot))


def _affinity(slot: _Slot) -> Affinity:
    cpus = slot.pci.cpus if slot.pci is not None else None
    return Affinity(slot.device.id, tuple(sorted(cpus)) if cpus else None, slot.device.numa)
