"""The machine's tree as lines of text: identical siblings collapsed, a core with its private caches on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from seatrial.model.machine import Device, DeviceKind, Link, Machine
from seatrial.report.units import show

_CPU_SIDE = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line: how deep, what it is (an id or "4 cores"), what is said of it."""

    depth: int
    label: str
    text: str
    is_warning: bool = False


@dataclass(slots=True)
class _Node:
    """A device to show, or `count` like ones. `shape` is what makes siblings alike."""

    first_id: str
    last_id: str
    noun: str
    text: str
    cpus: list[int] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)
    is_warning: bool = False
    is_core: bool = False
    count: int = 1

    @property
    def shape(self) -> tuple[object, ...]:
        return (self.noun, self.text, self.is_core, tuple((child.count, child.shape) for child in self.children))


def tree_lines(machine: Machine) -> tuple[TreeLine, ...]:
    """The lines, depth first. Memory modules are not in it: they stand with the memory."""
    children: dict[str | None, list[Device]] = {}
    known = {device.id for device in machine.devices}
    for device in machine.devices:
        if device.kind is not DeviceKind.MEMORY:
            children.setdefault(device.parent if device.parent in known else None, []).append(device)
    links = {link.b: link for link in machine.links}
    nodes = _collapsed([node for device in children.get(None, []) for node in _nodes(device, children, links)])
    lines: list[TreeLine] = []
    _write(nodes, 0, lines, each=False)
    return tuple(lines)


def _nodes(device: Device, children: dict[str | None, list[Device]], links: dict[str, Link]) -> list[_Node]:
    """The node of a device, or those below a bridge that only passes a link on."""
    stack = _core_stack(device, children)
    if stack is not None:
        return [_core_node(stack)]
    below = [node for child in children.get(device.id, []) for node in _nodes(child, children, links)]
    is_host = device.kind is DeviceKind.BRIDGE and device.parent not in links and device.id not in links
    if device.kind is DeviceKind.BRIDGE and len(below) == 1 and not is_host:
        return below
    text, is_warning = _describe(device, links.get(device.id))
    cpus = [cpu for node in below for cpu in node.cpus]
    return [
        _Node(device.id, device.id, str(device.kind), text, cpus, _collapsed(below), is_warning),
    ]


def _core_stack(device: Device, children: dict[str | None, list[Device]]) -> list[Device] | None:
    """The device and all below it where that is one core with its threads and private caches; else None."""
    if device.kind not in (DeviceKind.CACHE, DeviceKind.CORE):
        return None
    stack, found, cores = [device], [device], 0
    while stack:
        current = stack.pop()
        cores += current.kind is DeviceKind.CORE
        if cores > 1 or current.kind not in _CPU_SIDE:
            return None
        below = children.get(current.id, [])
        found += below
        stack += below
    return found if cores == 1 else None


def _core_node(stack: Sequence[Device]) -> _Node:
    core = next(device for device in stack if device.kind is DeviceKind.CORE)
    caches = sorted(
        (d for d in stack if d.kind is DeviceKind.CACHE), key=lambda d: (d.facts.integer("level") or 0, d.id)
    )
    pus = [device for device in stack if device.kind is DeviceKind.PU]
    sizes = ", ".join(f"{_cache_name(cache)} {_size(cache)}" for cache in caches)
    threads = f"{len(pus)} thread{'' if len(pus) == 1 else 's'}"
    arch = core.facts.text("microarchitecture")
    text = "; ".join(part for part in (arch, threads, sizes) if part)
    cpus = [number for pu in pus if (number := pu.facts.integer("os_index")) is not None]
    return _Node(core.id, core.id, "core", text, cpus, is_core=True)


def _collapsed(nodes: Sequence[_Node]) -> list[_Node]:
    """Like siblings that follow each other as one node with a count."""
    kept: list[_Node] = []
    for node in nodes:
        if kept and kept[-1].noun in ("core", "cache", "numa", "package") and kept[-1].shape == node.shape:
            kept[-1].count += 1
            kept[-1].last_id = node.last_id
            kept[-1].cpus = kept[-1].cpus + node.cpus
        else:
            kept.append(node)
    return kept


def _write(nodes: Sequence[_Node], depth: int, lines: list[TreeLine], *, each: bool) -> None:
    """Append the lines of these nodes; `each` inside a collapsed part, whose first one stands for all the others."""
    for node in nodes:
        label = node.first_id if node.count == 1 else f"{node.first_id} .. {node.last_id}"
        text = node.text
        if node.count > 1:
            text = f"{node.count} x {text}" if not node.is_core else f"{node.count} cores x {text} each"
        if node.cpus and not each and (node.is_core or node.count > 1):
            text += f"; CPUs {spans(node.cpus)}"
        lines.append(TreeLine(depth, "each" if each else label, text, node.is_warning))
        _write(node.children, depth + 1, lines, each=each or node.count > 1)


def _describe(device: Device, link: Link | None) -> tuple[str, bool]:
    """What is said of a device, and whether its link runs below what it can do."""
    facts = device.facts
    if device.kind is DeviceKind.PACKAGE:
        details = [
            facts.text("microarchitecture"),
            f"family {facts.text('family')} model {facts.text('model')}" if "family" in facts else None,
            f"stepping {facts.text('stepping')}" if "stepping" in facts else None,
            f"microcode {facts.text('microcode')}" if "microcode" in facts else None,
        ]
        told = ", ".join(detail for detail in details if detail)
        name = device.name if device.name != device.id else "package"
        return (f"{name} ({told})" if told else name), False
    if device.kind is DeviceKind.NUMA:
        memory = facts.number("memory_total")
        distances = facts.text("distances") or ""
        parts = ["NUMA node", show(memory, "B", binary=True) if memory is not None else None]
        parts.append(f"distances {distances}" if " " in distances else None)
        return ", ".join(part for part in parts if part), False
    if device.kind is DeviceKind.CACHE:
        return f"{_cache_name(device)} {_size(device)}", False
    return _describe_io(device, link)


def _describe_io(device: Device, link: Link | None) -> tuple[str, bool]:
    facts = device.facts
    name = "" if device.name == device.id else device.name
    size, rate = facts.number("size"), facts.number("rate")
    ids = f"{facts.text('vendor_id')}:{facts.text('device_id')}" if "device_id" in facts else None
    is_bridge = device.kind is DeviceKind.BRIDGE
    if is_bridge:
        told, is_warning = _link(device, link)
        what = "host bridge" if device.name.startswith("host") else "PCI bridge"
        return ", ".join(part for part in (what, facts.text("pci_name"), told) if part), is_warning
    parts = [
        name if name != device.id.partition("-")[2] else None,
        f"also {', '.join(device.aliases)}" if device.aliases else None,
        next((text for text in (facts.text("model_name"), facts.text("pci_name")) if text and text != name), None),
        show(size, "B") if size is not None else None,
        show(rate, "B/s") if rate is not None else None,
        facts.text("state"),
        f"driver {facts.text('driver')}" if "driver" in facts else None,
        f"PCI {device.pci}" if device.pci else None,
        f"[{ids}]" if ids else None,
    ]
    told, is_warning = _link(device, link)
    return ", ".join(part for part in (*parts, told) if part), is_warning


def _link(device: Device, link: Link | None) -> tuple[str | None, bool]:
    if link is None:
        return None, False
    if link.capable_Bps is None or link.trained_Bps is None:
        known = link.capable_Bps if link.capable_Bps is not None else link.trained_Bps
        word = "capable" if link.capable_Bps is not None else "trained"
        return (f"link {show(known, 'B/s')} {word}" if known is not None else None), False
    if link.trained_Bps < 0.99 * link.capable_Bps:
        shape = _generation(device)
        told = f"link {show(link.trained_Bps, 'B/s')} trained of {show(link.capable_Bps, 'B/s')} capable{shape} (idle?)"
        return told, True
    return f"link {show(link.trained_Bps, 'B/s')}{_generation(device)}", False


def _generation(device: Device) -> str:
    rate, lanes = device.facts.number("pcie_GTps"), device.facts.integer("pcie_lanes")
    return f", x{lanes} at {rate:g} GT/s" if rate is not None and lanes is not None else ""


def _cache_name(cache: Device) -> str:
    suffix = {"data": "d", "instruction": "i"}.get((cache.facts.text("type") or "").lower(), "")
    return f"L{cache.facts.integer('level') or '?'}{suffix}"


def _size(device: Device) -> str:
    size = device.facts.number("size")
    return "of unknown size" if size is None else show(size, "B", binary=True)


def spans(cpus: Sequence[int]) -> str:
    """The numbers as Linux writes lists of CPUs: "0-3,8"."""
    spans: list[list[int]] = []
    for number in sorted(cpus):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
