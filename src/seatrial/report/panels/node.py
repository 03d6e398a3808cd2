"""The node: its processors, caches and memory as a tree, its devices and links, its own limits.

The drawing goes into `drawing`: an `Svg` takes its place above the tables, which stay as its accessible text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.model.machine import Device, DeviceKind, Link, Machine
from seatrial.report.panels.panel import Panel
from seatrial.report.svg import Svg
from seatrial.report.tables import Cell, Column, Table
from seatrial.report.units import show, show_percent
from seatrial.report.view import TrialView

_CPU_SIDE = frozenset({DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU})
_NAMES = {DeviceKind.NUMA: "NUMA node", DeviceKind.CORE: "core", DeviceKind.PU: "CPU", DeviceKind.MEMORY: "module"}
_MERGED = frozenset({DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU})
"""Parts of which alike ones become one line with a count; packages and nodes always stand alone."""
_INDENT = "\N{NO-BREAK SPACE}" * 3

Children = Mapping[str | None, Sequence[Device]]


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of a tree: how deep, how many alike, what, and what is said of it."""

    depth: int
    number: int
    what: str
    about: str


def _context(view: TrialView) -> Mapping[str, Any] | None:
    machine = view.trial.machine
    if not machine.devices:
        return None
    return {
        "drawing": _drawing(view),
        "tree": list(_tree(machine)),
        "devices": _devices(machine),
        "memory": _memory(machine),
        "limits": _limits(machine),
        "machine": machine,
    }


def _drawing(view: TrialView) -> Svg | None:
    """The place of the node drawing; until there is one, nothing takes its room."""
    return None


def _tree(machine: Machine) -> Iterator[TreeLine]:
    children = _children(machine)
    for root in children.get(None, ()):
        if root.kind in _CPU_SIDE:
            yield from _subtree([root], children, 0)


def _children(machine: Machine) -> dict[str | None, list[Device]]:
    """Parent -> children; whoever hangs on a part that is not there hangs on the top."""
    known = {device.id for device in machine.devices}
    children: dict[str | None, list[Device]] = {}
    for device in machine.devices:
        children.setdefault(device.parent if device.parent in known else None, []).append(device)
    return children


def _subtree(alike: Sequence[Device], children: Children, depth: int) -> Iterator[TreeLine]:
    """The lines of devices of one shape, drawn once with their number, and of what is in one of them.

    A part that holds exactly one part of the CPU side (a cache of one core) stands in one line with it, which keeps the
    tree of a plain machine from being ten levels deep.
    """
    chain, about = [_what(alike[0])], [_about(alike[0])]
    inner = _inside(alike[0], children)
    while len(inner) == 1 and alike[0].kind in _MERGED and inner[0].kind in _MERGED:
        chain.append(_what(inner[0]))
        about.append(_about(inner[0]))
        inner = _inside(inner[0], children)
    yield TreeLine(depth, len(alike), " + ".join(chain), ", ".join(text for text in about if text))
    groups: dict[tuple[object, ...], list[Device]] = {}
    for device in inner:
        groups.setdefault(_shape(device, children) if device.kind in _MERGED else (device.id,), []).append(device)
    for group in groups.values():
        yield from _subtree(group, children, depth + 1)


def _inside(device: Device, children: Children) -> list[Device]:
    return [child for child in children.get(device.id, ()) if child.kind in _CPU_SIDE]


def _shape(device: Device, children: Children) -> tuple[object, ...]:
    """Equal for parts that look alike, with all that is in them."""
    inner = tuple(sorted((_shape(child, children) for child in _inside(device, children)), key=repr))
    return (device.kind.value, _what(device), _about(device), inner)


def _what(device: Device) -> str:
    if device.kind is DeviceKind.CACHE:
        level, kind = device.facts.integer("level"), (device.facts.text("type") or "").lower()
        suffix = {"data": "d", "instruction": "i"}.get(kind, "")
        size = device.facts.number("size")
        name = f"L{level}{suffix}" if level is not None else device.name
        return f"{name} {show(size, 'B', binary=True)}" if size is not None else name
    if device.kind is DeviceKind.NUMA:
        return f"NUMA node {device.numa}" if device.numa is not None else device.name or device.id
    if device.kind is DeviceKind.PACKAGE:
        return device.name or device.facts.text("model_name") or device.id
    return _NAMES.get(device.kind, device.kind.value)


def _about(device: Device) -> str:
    if device.kind is DeviceKind.NUMA:
        size = device.facts.number("memory_total") or device.facts.number("size")
        cpus = device.facts.text("cpus")
        said = [show(size, "B", binary=True) if size else "", f"CPUs {cpus}" if cpus else ""]
        return ", ".join(text for text in said if text)
    if device.kind is DeviceKind.PACKAGE:
        return device.facts.text("microarchitecture") or ""
    return ""


def _devices(machine: Machine) -> Table | None:
    """Everything that is no part of a processor; bridges only where several devices hang on them.

    The columns of links are left out where no link is known, as in most virtual machines.
    """
    children = _children(machine)
    links: dict[str, Link] = {}
    for link in machine.links:
        links.setdefault(link.b, link)
    rows: list[list[Cell]] = []
    for device, depth in _walk_devices(machine, children):
        rows.append(_device_row(device, depth, links.get(device.id)))
    if not rows:
        return None
    columns = [Column("Device"), Column("Kind"), Column("Address"), Column("NUMA", numeric=True)]
    if not links:
        return Table("Devices", columns, [row[: len(columns)] for row in rows])
    columns += [
        Column("Link capable of", numeric=True),
        Column("Trained at", numeric=True),
        Column("Share", numeric=True),
        Column("Measured", numeric=True),
    ]
    return Table("Devices, and the links towards the processor, per direction", columns, rows)


def _walk_devices(machine: Machine, children: Children) -> Iterator[tuple[Device, int]]:
    """Depth first from every device that is not on the CPU side but hangs on it, or on nothing."""
    stack = [
        (device, 0) for device in reversed(machine.devices) if device.kind not in _CPU_SIDE and _is_top(machine, device)
    ]
    while stack:
        device, depth = stack.pop()
        below = [child for child in children.get(device.id, ()) if child.kind not in _CPU_SIDE]
        hidden = device.kind is DeviceKind.BRIDGE and len(below) < 2
        if device.kind is DeviceKind.BRIDGE and not below:
            continue
        if not hidden:
            yield device, depth
        stack += [(child, depth if hidden else depth + 1) for child in reversed(below)]


def _is_top(machine: Machine, device: Device) -> bool:
    parent = machine.device(device.parent) if device.parent is not None else None
    return parent is None or parent.kind in _CPU_SIDE


def _device_row(device: Device, depth: int, link: Link | None) -> list[Cell]:
    model = device.facts.text("model_name")
    name = device.name or device.id
    about = f" ({model})" if model and model != name else ""
    capable, trained = (link.capable_Bps, link.trained_Bps) if link else (None, None)
    share = trained / capable if capable and trained else None
    size = device.facts.number("size")
    kind = device.kind.value + (f", {show(size, 'B')}" if size and device.kind is not DeviceKind.BRIDGE else "")
    return [
        Cell(_INDENT * depth + name + about),
        Cell(kind),
        Cell(device.pci or ""),
        Cell("" if device.numa is None else str(device.numa)),
        _rate(capable if link else None, link),
        _rate(trained if link else None, link),
        Cell("" if share is None else show_percent(share), share),
        Cell("not measured" if link and link.measured_Bps is None else show(link.measured_Bps, "B/s") if link else ""),
    ]


def _rate(value: float | None, link: Link | None) -> Cell:
    if link is None:
        return Cell("")
    return Cell(show(value, "B/s"), value)


def _memory(machine: Machine) -> Table | None:
    if not machine.memory.sockets:
        return None
    columns = [
        Column("Socket"),
        Column("Modules", numeric=True),
        Column("Capacity", numeric=True),
        Column("Channels filled", numeric=True),
        Column("Configured", numeric=True),
        Column("Rated", numeric=True),
    ]
    rows = [
        [
            Cell(str(number)),
            Cell(str(socket.dimms), socket.dimms),
            Cell(show(socket.capacity_bytes, "B", binary=True), socket.capacity_bytes),
            Cell(f"{_or_unknown(socket.populated_channels)} of {_or_unknown(socket.channels)}"),
            Cell("unknown" if socket.configured_MTps is None else f"{socket.configured_MTps:g} MT/s"),
            Cell("unknown" if socket.rated_MTps is None else f"{socket.rated_MTps:g} MT/s"),
        ]
        for number, socket in enumerate(machine.memory.sockets)
    ]
    return Table(f"Memory modules: {machine.memory.verdict.value} ({machine.memory.why})", columns, rows)


def _or_unknown(value: int | None) -> str:
    return "?" if value is None else str(value)


def _limits(machine: Machine) -> Table | None:
    if not machine.limits:
        return None
    rows = [
        [
            Cell(named.name),
            Cell(show(named.limit.value, named.limit.unit), named.limit.value),
            Cell(named.limit.basis.value),
            Cell(named.limit.derivation),
        ]
        for named in machine.limits
    ]
    columns = [Column("Limit"), Column("Value", numeric=True), Column("Basis"), Column("Derivation")]
    return Table("What this machine can do at most", columns, rows)


NODE_PANEL = Panel("node", "The node", _context)
