"""Packages, NUMA nodes, cores, caches and memory of a machine, summarized for the boxes of a drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from seatrial.model.machine.machine import Device, DeviceKind, Machine, Population, SocketMemory
from seatrial.model.spelling import count, cpu_list, show, show_transfers
from seatrial.report.drawing.geometry import clean, model_name, several
from seatrial.report.drawing.scene import Area, DrawnSlot, Modules, Note, Tone

OUTER = frozenset({DeviceKind.PACKAGE, DeviceKind.NUMA})
CPU_KINDS = OUTER | {DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU}
_MOST_SLOTS = 32
_TIMES = "\N{MULTIPLICATION SIGN}"


class Processors:
    """The CPU part of one machine, by device."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._children: dict[str | None, list[Device]] = {}
        known = {device.id for device in machine.devices if device.kind in CPU_KINDS}
        for device in machine.devices:
            if device.kind in CPU_KINDS:
                self._children.setdefault(device.parent if device.parent in known else None, []).append(device)

    def roots(self) -> list[Device]:
        """The outermost packages and NUMA nodes."""
        return self._nearest(self._children.get(None, ()))

    def inner(self, device: Device) -> list[Device]:
        """The packages or NUMA nodes directly inside a package or node."""
        return self._nearest(self._children.get(device.id, ()))

    def has_bare_cores(self) -> bool:
        """Whether there are cores but no packages or nodes."""
        return not self.roots() and any(device.kind is DeviceKind.CORE for device in self._machine.devices)

    def below(self, device: Device | None) -> list[Device]:
        """All CPU devices below a device; all of them for None."""
        return list(self._walk(self._children.get(device.id if device is not None else None, ()), frozenset()))

    def parts(self, device: Device | None, without: Sequence[Device] = ()) -> tuple[Area, ...]:
        """Cores, last-level caches and memory of a package or node, without the nodes `without` drawn inside it."""
        apart = {inside.id for node in without for inside in (node, *self.below(node))}
        own = [inside for inside in self.below(device) if inside.id not in apart]
        memory = _memory_lines(device) if device is not None else ()
        parts = (Area("cores", _core_lines(own)), Area("cache", _cache_lines(own)), Area("memory", memory))
        return tuple(part for part in parts if part.lines)

    def cpus(self, device: Device) -> str:
        """The OS numbers of the CPUs in a device: "CPUs 0-3", "" if unknown."""
        numbers = sorted(
            number
            for inside in self.below(device)
            if inside.kind is DeviceKind.PU and (number := inside.facts.integer("os_index")) is not None
        )
        cpus = cpu_list(numbers) if numbers else device.facts.text("cpus")
        return f"CPUs {clean(cpus)}" if cpus else ""

    def _nearest(self, devices: Sequence[Device]) -> list[Device]:
        return [device for device in self._walk(devices, OUTER) if device.kind in OUTER]

    def _walk(self, devices: Sequence[Device], ends: frozenset[DeviceKind]) -> Iterator[Device]:
        """Devices and what is below them, but for what is below those of the kinds `ends`."""
        seen: set[str] = set()
        stack = list(reversed(devices))
        while stack:
            device = stack.pop()
            if device.id not in seen:
                seen.add(device.id)
                yield device
                stack += [] if device.kind in ends else reversed(self._children.get(device.id, ()))


def package_lines(package: Device) -> tuple[Note, ...]:
    """Model and microarchitecture of a package."""
    facts = package.facts
    name = facts.text("model_name") or (package.name if package.name != package.id else "")
    lines = [Note(model_name(name))] if name else []
    if "microarchitecture" in facts:
        lines.append(Note(clean(facts.text("microarchitecture") or ""), Tone.MUTED))
    return tuple(lines)


def modules_of(memory: SocketMemory, devices: Sequence[Device]) -> Modules | None:
    """The memory modules of a socket: a slot per channel if channels are known, else per module."""
    if not memory.dimms and not memory.channels:
        return None
    return Modules(_slots(memory, devices), _module_lines(memory, devices))


def population_line(machine: Machine) -> Note | None:
    """The verdict on the population, and the bandwidth limit; None if no modules are known."""
    memory = machine.memory
    peak = memory.peak.value
    if not memory.sockets and peak is None:
        return None
    parts = [f"memory population {memory.verdict.value}"] if memory.sockets else []
    parts += [f"DRAM at most {show(peak, 'B/s')}"] if peak is not None else []
    is_bad = memory.verdict in (Population.UNBALANCED, Population.NEAR_BALANCED)
    why = f": {clean(memory.why, 1000)}" if is_bad else ""
    return Note(", ".join(parts) + why, Tone.WARNING if is_bad else Tone.PLAIN)


def _slots(memory: SocketMemory, devices: Sequence[Device]) -> tuple[DrawnSlot, ...]:
    hints = [_in_words(device) for device in devices]
    if memory.channels is not None and 0 < memory.channels <= _MOST_SLOTS and memory.populated_channels is not None:
        by_channel: dict[str, list[str]] = {}
        for device, hint in zip(devices, hints, strict=True):
            by_channel.setdefault(device.facts.text("channel") or "", []).append(hint)
        named = [channel for channel in sorted(by_channel) if channel]
        filled = min(memory.populated_channels, memory.channels)
        texts = [f"channel {clean(name)}: {'; '.join(by_channel[name])}" for name in named]
        texts = texts if len(texts) == filled else ["a populated channel"] * filled
        return tuple(DrawnSlot(True, hint) for hint in texts) + (DrawnSlot(False, "an empty channel"),) * (
            memory.channels - filled
        )
    number = min(memory.dimms, _MOST_SLOTS)
    hints = hints if len(hints) == memory.dimms else ["a memory module"] * number
    return tuple(DrawnSlot(True, hint) for hint in hints[:number])


def _module_lines(memory: SocketMemory, devices: Sequence[Device]) -> tuple[Note, ...]:
    sizes = Counter(size for device in devices if (size := device.facts.number("size")) is not None)
    kinds = {kind for device in devices if (kind := device.facts.text("memory_type"))}
    kind = f" {clean(kinds.pop())}" if len(kinds) == 1 else ""
    if len(devices) == memory.dimms and sizes:
        each = sorted(sizes.items(), reverse=True)
        what = " + ".join(f"{number} {_TIMES} {show(size, 'B', binary=True)}" for size, number in each[:3]) + kind
    else:
        what = f"{count(memory.dimms, 'module')}, {show(memory.capacity_bytes, 'B', binary=True)}"
    speed = []
    if memory.configured_MTps is not None:
        rated = memory.rated_MTps
        lower = rated is not None and rated > memory.configured_MTps
        speed = [show_transfers(memory.configured_MTps) + (f" of {show_transfers(rated)} rated" if lower else "")]
    elif memory.rated_MTps is not None:
        speed = [f"rated {show_transfers(memory.rated_MTps)}"]
    channels = "channels unknown"
    few = False
    if memory.channels is not None and memory.populated_channels is not None:
        channels = f"{memory.populated_channels} of {memory.channels} channels populated"
        few = memory.populated_channels < memory.channels
    elif memory.populated_channels is not None:
        channels = f"{count(memory.populated_channels, 'channel')} populated"
    elif memory.channels is not None:
        channels = f"{count(memory.channels, 'channel')}, populated ones unknown"
    return Note(", ".join([what, *speed])), Note(channels, Tone.WARNING if few else Tone.MUTED)


def _in_words(module: Device) -> str:
    facts = module.facts
    words = (
        clean(module.name),
        show(facts.number("size"), "B", binary=True),
        clean(facts.text("memory_type") or ""),
        show_transfers(facts.number("configured_MTps")) if "configured_MTps" in facts else "",
    )
    return " ".join(word for word in words if word)


def _core_lines(own: Sequence[Device]) -> tuple[Note, ...]:
    cores = [device for device in own if device.kind is DeviceKind.CORE]
    packages = sum(device.kind is DeviceKind.PACKAGE for device in own)
    lines = [Note(count(packages, "package"))] if packages else []
    ids = {core.id for core in cores}
    threads = Counter(device.parent for device in own if device.kind is DeviceKind.PU and device.parent in ids)
    kinds = Counter((core.facts.text("microarchitecture") or "", threads.get(core.id, 0)) for core in cores)
    for (what, each), number in list(kinds.items())[:3]:
        name = f" {clean(what)}" if what and len(kinds) > 1 else ""
        smt = f" {_TIMES} {count(each, 'thread')}" if each > 1 else ""
        lines.append(Note(f"{number}{name} {'core' if number == 1 else 'cores'}{smt}"))
    if len(kinds) > 3:
        lines.append(Note(f"{len(kinds) - 3} more kinds of core", Tone.MUTED))
    return tuple(lines)


def _cache_lines(own: Sequence[Device]) -> tuple[Note, ...]:
    levels = [level for device in own if device.kind is DeviceKind.CACHE and (level := device.facts.integer("level"))]
    if not levels or max(levels) < 2:
        return ()
    last = max(levels)
    sizes = Counter(
        device.facts.number("size")
        for device in own
        if device.kind is DeviceKind.CACHE and device.facts.integer("level") == last
    )
    spelled = []
    for size, number in sorted(sizes.items(), key=lambda pair: -(pair[0] or 0))[:3]:
        text = f"L{last} {'of unknown size' if size is None else show(size, 'B', binary=True)}"
        spelled.append(Note(text if number == 1 else f"{number} {_TIMES} {text}"))
    return tuple(spelled)


def _memory_lines(device: Device) -> tuple[Note, ...]:
    size = device.facts.number("memory_total")
    if device.kind is not DeviceKind.NUMA or size is None:
        return ()
    return (Note(f"{show(size, 'B', binary=True)} memory"),)


def title_of(device: Device) -> str:
    """The kind and its number ("package 0", "NUMA node 1"), else the id."""
    number = device.facts.integer("os_index")
    number = device.numa if number is None and device.kind is DeviceKind.NUMA else number
    word = "package" if device.kind is DeviceKind.PACKAGE else "NUMA node"
    return f"{word} {number}" if number is not None else clean(device.id)


def summary(devices: Sequence[Device], noun: str) -> str:
    """The devices that are not drawn: "12 more packages: package-4 to package-15"."""
    return f"{count(len(devices), f'more {noun}')}: {several([device.id for device in devices])}"
