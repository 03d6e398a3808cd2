"""The machine's devices as a tree with identical parts folded into one line, and a core with its private caches too.

The terminal and the page print the same folds, so that their counts agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.links import links_above
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, NamedLimit
from seatrial.model.spelling import count, cpu_list, show

CPU_SIDE = frozenset({DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU})
_FOLDED = frozenset({DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE})
"""Kinds of which identical parts are folded; each device has its own address and is not folded."""
_TRAINED_ENOUGH = 0.99

Children = Mapping[str | None, Sequence[Device]]

_DEEPEST = 64
"""The deepest level of the tree. Deeper devices, which only a damaged or hostile dump has, are shown at this level."""


class Fold(Frozen):
    """A device, or `number` identical ones from `first` to `last`, with their contents.

    `what` names it ("L3 32 MiB", "core"), `about` describes it; `cpus` are the OS numbers of the CPUs in all of them.
    `is_warning`: its link runs below its capability.
    """

    first: Device
    last: Device
    what: str
    about: str
    cpus: tuple[int, ...] = ()
    inside: tuple[Fold, ...] = ()
    is_warning: bool = False
    number: int = 1

    @property
    def cpu_text(self) -> str:
        """Its CPUs as "CPUs 0-3,8", unless the lines below it list them."""
        is_listed = self.first.kind is DeviceKind.CORE or (self.number > 1 and self.first.kind in CPU_SIDE)
        if not is_listed or not self.cpus:
            return ""
        return f"CPU{'' if len(self.cpus) == 1 else 's'} {cpu_list(sorted(self.cpus))}"

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for parts that are identical, including their contents."""
        inside = tuple((fold.number, fold.shape) for fold in self.inside)
        return self.first.kind, self.what, self.about, self.is_warning, inside


def fold(machine: Machine) -> tuple[Fold, ...]:
    """The whole machine without the memory modules in its slots. Devices without a parent are at the top level."""
    children: dict[str | None, list[Device]] = {}
    modules = {module.id for module in machine.memory_modules()}
    place: dict[str, tuple[int, str | None]] = {}  # depth, and the device that it is shown under
    for device in machine.devices:  # parents first
        depth, above = place.get(device.parent or "", (-1, None))
        parent = device.parent if device.parent in place else None
        place[device.id] = (depth + 1, parent) if depth + 1 < _DEEPEST else (depth, above)
        if device.id not in modules:
            children.setdefault(place[device.id][1], []).append(device)
    # A port that faces down has no link in the drawing, but is not a host bridge either.
    links = dict.fromkeys((link.b for link in machine.links if machine.device(link.b)), None) | links_above(machine)
    return _folded(part for device in children.get(None, ()) for part in _parts(device, children, links))


def walk(folds: Iterable[Fold], depth: int = 0, *, each: bool = False) -> Iterator[tuple[int, Fold, bool]]:
    """(depth, fold, whether it is in each of several identical parts), depth first."""
    for part in folds:
        yield depth, part, each
        yield from walk(part.inside, depth + 1, each=each or part.number > 1)


def _parts(device: Device, children: Children, links: Mapping[str, Link | None]) -> list[Fold]:
    """The part of a device, or those behind a bridge with a single device."""
    stack = _core_stack(device, children)
    if stack is not None:
        return [_core(stack)]
    if device.kind is DeviceKind.PU:  # of a source that does not state the cores
        number = device.facts.integer("os_index")
        return [Fold(device, device, "hardware thread", "", () if number is None else (number,))]
    below = [part for child in children.get(device.id, ()) for part in _parts(child, children, links)]
    is_host = device.kind is DeviceKind.BRIDGE and device.parent not in links and device.id not in links
    if device.kind is DeviceKind.BRIDGE and len(below) == 1 and not is_host:
        return below
    what, about, is_warning = _described(device, links.get(device.id))
    cpus = tuple(cpu for part in below for cpu in part.cpus)
    return [Fold(device, device, what, about, cpus, _folded(below), is_warning)]


def _core_stack(device: Device, children: Children) -> list[Device] | None:
    """The device and all below it if they are one core with its threads and private caches; else None."""
    if device.kind not in (DeviceKind.CACHE, DeviceKind.CORE):
        return None
    stack, found, cores = [device], [device], 0
    while stack:
        current = stack.pop()
        cores += current.kind is DeviceKind.CORE
        if cores > 1 or current.kind not in CPU_SIDE:
            return None
        below = children.get(current.id, ())
        found += below
        stack += below
    return found if cores == 1 else None


def _core(stack: Sequence[Device]) -> Fold:
    core = next(device for device in stack if device.kind is DeviceKind.CORE)
    caches = sorted(
        (d for d in stack if d.kind is DeviceKind.CACHE), key=lambda d: (d.facts.integer("level") or 0, d.id)
    )
    pus = [device for device in stack if device.kind is DeviceKind.PU]
    parts = (
        core.facts.text("microarchitecture"),
        count(len(pus), "thread"),
        ", ".join(_cache(cache) for cache in caches),
    )
    cpus = tuple(number for pu in pus if (number := pu.facts.integer("os_index")) is not None)
    return Fold(core, core, "core", "; ".join(part for part in parts if part), cpus)


def _folded(parts: Iterable[Fold]) -> tuple[Fold, ...]:
    """Identical consecutive siblings as one part with a number."""
    kept: list[Fold] = []
    for part in parts:
        last = kept[-1] if kept else None
        if last is not None and last.first.kind in _FOLDED and last.shape == part.shape:
            kept[-1] = replace(last, last=part.last, cpus=(*last.cpus, *part.cpus), number=last.number + 1)
        else:
            kept.append(part)
    return tuple(kept)


def _described(device: Device, link: Link | None) -> tuple[str, str, bool]:
    """(what it is, its description, whether its link runs below its capability)."""
    facts = device.facts
    if device.kind is DeviceKind.PACKAGE:
        details = (
            facts.text("microarchitecture"),
            f"family {facts.text('family')} model {facts.text('model')}" if "family" in facts else None,
            f"stepping {facts.text('stepping')}" if "stepping" in facts else None,
            f"microcode {facts.text('microcode')}" if "microcode" in facts else None,
        )
        name = device.name if device.name not in ("", device.id) else facts.text("model_name") or "package"
        return name, ", ".join(detail for detail in details if detail), False
    if device.kind is DeviceKind.NUMA:
        memory, distances = facts.number("memory_total"), facts.text("distances") or ""
        rate, cache = facts.number("memory_bandwidth"), facts.number("memory_side_cache")
        about = (
            facts.text("memory_kind"),
            show(memory, "B", binary=True) if memory is not None else None,
            f"memory-side cache {show(cache, 'B', binary=True)}" if cache is not None else None,
            f"{show(rate, 'B/s')} stated" if rate is not None else None,
            f"distances {distances}" if " " in distances else None,
        )
        return "NUMA node", ", ".join(part for part in about if part), False
    if device.kind is DeviceKind.CACHE:
        return _cache(device), "", False
    return _device(device, link)


def _cache(cache: Device) -> str:
    suffix = {"data": "d", "instruction": "i"}.get((cache.facts.text("type") or "").lower(), "")
    size = cache.facts.number("size")
    return (
        f"L{cache.facts.integer('level') or '?'}{suffix} "
        f"{'of unknown size' if size is None else show(size, 'B', binary=True)}"
    )


def _device(device: Device, link: Link | None) -> tuple[str, str, bool]:
    """The same for a device outside the processors."""
    facts = device.facts
    rate_text, is_warning = _link(device, link)
    if device.kind is DeviceKind.BRIDGE:
        what = "host bridge" if device.name.startswith("host") else "PCI bridge"
        return what, ", ".join(part for part in (facts.text("pci_name"), rate_text) if part), is_warning
    name = "" if device.name == device.id else device.name
    size, rate = facts.number("size"), facts.number("rate")
    ids = f"{facts.text('vendor_id')}:{facts.text('device_id')}" if "device_id" in facts else None
    parts = (
        f"also {', '.join(device.aliases)}" if device.aliases else None,
        facts.text("memory_device"),
        facts.text("memory_kind"),
        next((text for text in (facts.text("model_name"), facts.text("pci_name")) if text and text != name), None),
        show(size, "B", binary=device.kind is DeviceKind.MEMORY) if size is not None else None,
        show(rate, "B/s") if rate is not None else None,
        f"memory is NUMA node {facts.integer('gpu_numa')}" if "gpu_numa" in facts else None,
        facts.text("state"),
        f"driver {facts.text('driver')}" if "driver" in facts else None,
        facts.text("attachment"),
        count(functions, "virtual function") if (functions := facts.integer("virtual_functions")) else None,
        f"PCI {device.pci}" if device.pci else None,
        f"[{ids}]" if ids else None,
        rate_text,
    )
    what = name if name != device.id.partition("-")[2] else ""
    return what, ", ".join(part for part in parts if part), is_warning


def _link(device: Device, link: Link | None) -> tuple[str | None, bool]:
    if link is None:
        return None, False
    if link.capable_Bps is None or link.trained_Bps is None:
        known = link.capable_Bps if link.capable_Bps is not None else link.trained_Bps
        word = "capable" if link.capable_Bps is not None else "trained"
        return (f"link {show(known, 'B/s')} {word}" if known is not None else None), False
    if link.trained_Bps < _TRAINED_ENOUGH * link.capable_Bps:
        shape = _generation(device)
        rates = f"{show(link.trained_Bps, 'B/s')} trained of {show(link.capable_Bps, 'B/s')} capable"
        return f"link {rates}{shape} (idle?)", True
    return f"link {show(link.trained_Bps, 'B/s')}{_generation(device)}", False


def _generation(device: Device) -> str:
    rate, lanes = device.facts.number("pcie_GTps"), device.facts.integer("pcie_lanes")
    return f", x{lanes} at {rate:g} GT/s" if rate is not None and lanes is not None else ""


_LINKS = "pcie"


def folded_limits(limits: Sequence[NamedLimit], to: str) -> Iterator[tuple[str, Limit]]:
    """(name, limit): consecutive limits of links with one value, such as those of eight GPUs, share a line, named by
    the first and the last with `to` between them."""
    for (kind, limit), group in groupby(limits, key=lambda named: (named.name.partition(".")[0], named.limit)):
        names = [named.name for named in group]
        if kind == _LINKS and len(names) > 1:
            yield f"{names[0]}{to}{names[-1].removeprefix(f'{_LINKS}.')}", limit
        else:
            yield from ((name, limit) for name in names)
