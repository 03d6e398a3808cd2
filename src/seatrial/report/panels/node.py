"""The node: the drawing, the same as tables, paths between devices, how to bind to each, and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.device_copies import with_measured
from seatrial.analysis.grouped import grouped
from seatrial.analysis.rank_layout import bindings
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import NO_VALUE, cpu_list, few_names, show, show_transfers
from seatrial.report.blocks import Cell, Cells, Table, headings, right
from seatrial.report.drawing import machine_svg_fragment
from seatrial.report.folded_tree import CPU_SIDE, Fold, fold, folded_limits, walk
from seatrial.report.pages.view import TrialView
from seatrial.report.panels.charts import Panel
from seatrial.report.panels.path_matrix import matrix

_MOST_NAMED = 12


def bindings_table(machine: Machine) -> Table | None:
    """The table; None if the CPUs next to the devices are unknown, or all CPUs are next to every device."""
    alike = grouped((replace(binding, device=""), binding.device) for binding in bindings(machine) if binding.cpus)
    everywhere = set(machine.allowed_cpus or machine.pus)
    if all(set(binding.cpus or ()) == everywhere for binding in alike):
        return None
    rows: list[Cells] = []
    for binding, devices in alike.items():
        commands = (binding.numactl, binding.mpirun, binding.srun)
        shown = [Cell(NO_VALUE) if one is None else Cell(one, is_code=True) for one in commands]
        numa = NO_VALUE if binding.numa is None else str(binding.numa)
        rows.append([few_names(devices, _MOST_NAMED), numa, cpu_list(binding.cpus or ()), *shown])
    columns = headings("Device", *right("NUMA"), "CPUs", "numactl", "Open MPI", "Slurm")
    return Table.of("Bindings for each device", columns, rows)


_INDENT = "\N{NO-BREAK SPACE}" * 3


class TreeLine(Frozen):
    """One line of a tree: depth, number of identical parts, name and description."""

    depth: int
    number: int
    what: str
    about: str


def _context(view: TrialView) -> Mapping[str, Any] | None:
    machine = view.trial.machine
    if not machine.devices:
        return None
    folds = fold(machine)
    measured = with_measured(machine, view.trial.results, view.trial.seen)
    return {
        "drawing": machine_svg_fragment(measured, view.anchor("topology")),
        "matrix": matrix(machine),
        "bindings": bindings_table(machine),
        "tree": list(_tree(folds)),
        "devices": _devices(measured, folds),
        "memory": _memory(machine),
        "limits": _limits(machine),
        "machine": machine,
    }


def _tree(folds: Sequence[Fold]) -> Iterator[TreeLine]:
    """The processors with their memory and caches."""
    for depth, part, each in walk(folds):
        if part.first.kind in CPU_SIDE:
            about = "; ".join(filter(None, (part.about, "" if each else part.cpu_text)))
            is_node = part.first.kind is DeviceKind.NUMA and part.number == 1 and part.first.numa is not None
            yield TreeLine(depth, part.number, f"{part.what} {part.first.numa}" if is_node else part.what, about)


def _devices(machine: Machine, folds: Sequence[Fold]) -> Table | None:
    """All devices outside the processors; bridges only if several devices are behind them.

    The columns of links are left out if no link is known, as in most virtual machines.
    """
    links: dict[str, Link] = {}
    for link in machine.links:
        links.setdefault(link.b, link)
    rows = [_device_row(device, depth, links.get(device.id)) for device, depth in _outside(folds, 0)]
    columns = headings("Device", "Kind", "Address", *right("NUMA"))
    if not links:
        return Table.if_any("Devices", columns, [row[: len(columns)] for row in rows])
    columns += right("Link capability", "Trained", "Share", "Measured")
    return Table.if_any("Devices and their links towards the processor, per direction", columns, rows)


def _outside(folds: Sequence[Fold], depth: int) -> Iterator[tuple[Device, int]]:
    """(device, depth among devices), depth first."""
    for part in folds:
        is_bridge = part.first.kind is DeviceKind.BRIDGE
        shown = part.first.kind not in CPU_SIDE and not (is_bridge and len(part.inside) < 2)
        if shown:
            yield part.first, depth
        yield from _outside(part.inside, depth + shown)


def _device_row(device: Device, depth: int, link: Link | None) -> Cells:
    model = device.facts.text("model_name")
    name = device.name or device.id
    about = f" ({model})" if model and model != name else ""
    size = device.facts.number("size")
    kind = device.kind.value + (f", {show(size, 'B')}" if size and device.kind is not DeviceKind.BRIDGE else "")
    numa = "" if device.numa is None else str(device.numa)
    cells: list[Cell | str] = [_INDENT * depth + name + about, kind, device.pci or "", numa]
    if link is None:
        return [*cells, *[""] * 4]
    rates = [Cell(show(rate, "B/s"), rate) for rate in (link.capable_Bps, link.trained_Bps)]
    share = link.trained_Bps / link.capable_Bps if link.capable_Bps and link.trained_Bps else None
    measured = "not measured" if link.measured_Bps is None else show(link.measured_Bps, "B/s")
    return [*cells, *rates, "" if share is None else Cell.share(share), measured]


def _memory(machine: Machine) -> Table | None:
    rows: list[Cells] = []
    for number, socket in enumerate(machine.memory.sockets):
        channels = ["?" if known is None else str(known) for known in (socket.populated_channels, socket.channels)]
        size = Cell(show(socket.capacity_bytes, "B", binary=True), socket.capacity_bytes)
        speeds = [show_transfers(socket.configured_MTps), show_transfers(socket.rated_MTps)]
        rows.append([str(number), Cell.number(socket.dimms), size, " of ".join(channels), *speeds])
    columns = headings("Socket", *right("Modules", "Capacity", "Populated channels", "Configured", "Rated"))
    return Table.if_any(f"Memory modules: {machine.memory.verdict.value} ({machine.memory.why})", columns, rows)


def _limits(machine: Machine) -> Table | None:
    rows = [
        (name, Cell(show(limit.value, limit.unit), limit.value), limit.basis.value, limit.derivation)
        for name, limit in folded_limits(machine.limits, " to ")
    ]
    return Table.if_any("Limits of this machine", ["Limit", *right("Value"), "Basis", "Derivation"], rows)


NODE_PANEL = Panel("node", "The node", _context)
