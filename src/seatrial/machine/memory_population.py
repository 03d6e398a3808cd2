"""Memory modules -> devices, and `Memory`: channels, peak and verdict as far as the modules themselves tell.

Two things are known without tables of boards: channels that slot names NAME, and that a socket whose every slot is
filled alike fills all its channels. Anything else stays unknown. (The population rules by platform and the slot tables
by vendor, knowledge/topology.md, belong here: into `_verdict` and `readers.memory_locators`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.machine.survey import FactBook, MemoryModule
from seatrial.model.limit import Limit, dram_bandwidth
from seatrial.model.machine import Device, DeviceKind, Memory, Population, SocketMemory

_CHANNEL_IS_8_BYTES = frozenset({"DDR3", "DDR4", "DDR5"})
"""LPDDR and HBM channels have other widths, which SMBIOS does not tell."""


@dataclass(frozen=True, slots=True)
class _Socket:
    """The slots of one socket; `is_complete` when no slot can be missing from the list, `is_confirmed` when somebody
    looked up the channels that the table gives."""

    modules: tuple[MemoryModule, ...]
    table_channels: int | None
    is_confirmed: bool
    is_complete: bool

    @property
    def filled(self) -> tuple[MemoryModule, ...]:
        """The slots with a module in them."""
        return tuple(module for module in self.modules if module.size_bytes)


def judge_memory(
    modules: Sequence[MemoryModule],
    slots: int | None,
    cpu_devices: Sequence[Device],
    *,
    is_virtual: bool,
    why_none: str = "no source describes the memory modules",
) -> Memory:
    """The memory of a machine with these modules. `slots` is the declared number, `why_none` why there may be none.

    A virtual machine's SMBIOS describes no real modules: sizes are kept, everything else is unknown.
    """
    if not any(module.size_bytes for module in modules):
        return Memory(why=why_none, peak=Limit.unknown("B/s", f"populated channels: {why_none}"))
    sockets = _by_socket(modules, slots, cpu_devices)
    if sockets is None:
        why = "the slots' names do not tell their sockets"
        return Memory(why=why, peak=Limit.unknown("B/s", f"populated channels: {why}"))
    told = tuple(_socket_memory(socket, is_virtual) for socket in sockets)
    if is_virtual:
        why = "a virtual machine's firmware describes no real modules"
        return Memory(why=why, peak=Limit.unknown("B/s", f"populated channels: {why}"), sockets=told)
    verdict, why = _verdict(sockets, told)
    other = _other_memory(cpu_devices)
    peak = Limit.unknown("B/s", other) if other is not None else _peak(sockets, told)
    return Memory(verdict, why, peak, told)


def _other_memory(cpu_devices: Sequence[Device]) -> str | None:
    """Why the modules do not bound the bandwidth of memory: there is memory beside them. None where there is none.

    A processor's own memory may work as a cache that nobody sees (Xeon Max); as nodes, it shows as memory without CPUs.
    """
    for package in cpu_devices:
        memory = package.facts.text("package_memory") if package.kind is DeviceKind.PACKAGE else None
        if memory is not None:
            return f"the modules are not all: {package.name} has {memory} in its package, whose rate is not told"
    of_cpus = {device.numa for device in cpu_devices if device.kind is DeviceKind.PU}
    for node in cpu_devices:
        if node.kind is DeviceKind.NUMA and of_cpus and node.numa not in of_cpus and node.facts.number("memory_total"):
            return (
                f"the modules are not all: {node.id} is memory without CPUs (HBM, CXL, a GPU's), its rate is not told"
            )
    return None


def _by_socket(
    modules: Sequence[MemoryModule], slots: int | None, cpu_devices: Sequence[Device]
) -> list[_Socket] | None:
    packages = [device for device in cpu_devices if device.kind is DeviceKind.PACKAGE]
    channels = {package.facts.integer("memory_channels") for package in packages}
    table = channels.pop() if len(channels) == 1 else None
    confirmed = all(fact.value is True for p in packages if (fact := p.facts.best("memory_channels_confirmed")))
    complete = slots is not None and slots == len(modules)
    named = {module.socket for module in modules}
    if None in named:
        return [_Socket(tuple(modules), table, confirmed, complete)] if len(packages) == 1 else None
    numbers = sorted(number for number in named if number is not None)
    if packages and len(numbers) > len(packages):
        return None
    return [_Socket(tuple(m for m in modules if m.socket == number), table, confirmed, complete) for number in numbers]


def _socket_memory(socket: _Socket, is_virtual: bool) -> SocketMemory:
    filled = socket.filled
    channels, populated = (None, None) if is_virtual else _channels(socket)
    return SocketMemory(
        channels=channels,
        populated_channels=populated,
        dimms=len(filled),
        capacity_bytes=sum(module.size_bytes or 0 for module in filled),
        configured_MTps=_common([module.configured_MTps for module in filled]),
        rated_MTps=_common([module.rated_MTps for module in filled]),
    )


def _channels(socket: _Socket) -> tuple[int | None, int | None]:
    """Channels of the socket, and how many have a module."""
    named = {module.channel for module in socket.modules}
    channels = socket.table_channels
    if channels is None and None not in named and socket.is_complete:
        channels = len(named)
    if _channels_are_named(socket):
        return channels, len({module.channel for module in socket.filled})
    if _filled_alike(socket):
        return channels, channels
    return channels, None


def _channels_are_named(socket: _Socket) -> bool:
    """Whether the name of every filled slot tells its channel: then no table is needed to count them."""
    filled = {module.channel for module in socket.filled}
    return bool(filled) and None not in filled


def _filled_alike(socket: _Socket) -> bool:
    """Whether every slot there is holds the same module."""
    return socket.is_complete and len(socket.filled) == len(socket.modules) and _alike(socket.modules)


def _alike(modules: Sequence[MemoryModule]) -> bool:
    return len({(m.size_bytes, m.memory_type, m.rank, m.configured_MTps) for m in modules}) == 1


def _common(values: Sequence[float | None]) -> float | None:
    """The value that all have; None where one is unknown or they differ."""
    return values[0] if values and len(set(values)) == 1 else None


def _verdict(sockets: Sequence[_Socket], told: Sequence[SocketMemory]) -> tuple[Population, str]:
    """Balanced where that needs no table; else unknown, saying what is missing."""
    every = [module for socket in sockets for module in socket.filled]
    equal_sockets = len({(t.dimms, t.capacity_bytes, t.populated_channels) for t in told}) == 1
    if all(_filled_alike(socket) for socket in sockets) and equal_sockets and _alike(every):
        return Population.BALANCED, "every slot is filled with the same module"
    if any(t.channels is None or t.populated_channels is None for t in told):
        return Population.UNKNOWN, "which channel each slot belongs to is not told by the slots' names"
    per_channel = {
        (index, channel): sum(module.channel == channel for module in socket.filled)
        for index, socket in enumerate(sockets)
        for channel in {module.channel for module in socket.filled}
    }
    full = all(t.populated_channels == t.channels for t in told)
    if full and equal_sockets and _alike(every) and len(set(per_channel.values())) == 1:
        return Population.BALANCED, "every channel is filled alike with the same module"
    return Population.UNKNOWN, "not every channel is filled alike; no rule for this platform is known yet"


def _peak(sockets: Sequence[_Socket], told: Sequence[SocketMemory]) -> Limit:
    """Sum over the sockets of populated channels x 8 B x configured rate; unknown where one of them is."""
    types = {module.memory_type for socket in sockets for module in socket.filled}
    if not types <= _CHANNEL_IS_8_BYTES:
        names = ", ".join(sorted(str(name) for name in types))
        return Limit.unknown("B/s", f"the width of a channel of {names} is not told")
    rates = {t.configured_MTps for t in told}
    if None in rates or len(rates) != 1:
        return Limit.unknown("B/s", "the modules' configured speed is not told, or differs between them")
    populated = [t.populated_channels for t in told]
    known = [count for count in populated if count is not None]
    if len(known) != len(populated):
        return Limit.unknown("B/s", "which channels are populated is not told by the slots' names")
    rate = rates.pop()
    where = f"{len(told)} socket{'s' if len(told) > 1 else ''}, from SMBIOS"
    confirmed = all(socket.is_confirmed or _channels_are_named(socket) for socket in sockets)
    if not confirmed:
        where += "; the channels of a socket are unconfirmed"
    return dram_bandwidth(sum(known), rate if rate is not None else 0.0, where, confirmed=confirmed)


def memory_devices(modules: Sequence[MemoryModule], cpu_devices: Sequence[Device]) -> tuple[Device, ...]:
    """A device for each module that is there, hung on its package where that is certain."""
    packages = [device.id for device in cpu_devices if device.kind is DeviceKind.PACKAGE]
    numbers = sorted({module.socket for module in modules if module.socket is not None})
    devices: list[Device] = []
    for module in modules:
        if not module.size_bytes:
            continue
        parent = packages[0] if len(packages) == 1 else None
        if module.socket is not None and len(numbers) == len(packages):
            parent = packages[numbers.index(module.socket)]
        device_id = f"memory-{len(devices)}"
        devices.append(
            Device(device_id, DeviceKind.MEMORY, module.locator or device_id, parent, facts=_facts(module).facts())
        )
    return tuple(devices)


def _facts(module: MemoryModule) -> FactBook:
    book = FactBook()
    book.say("size", module.size_bytes, module.source, "B")
    book.say("memory_type", module.memory_type, module.source)
    book.say("rated_MTps", module.rated_MTps, module.source, "1")
    book.say("configured_MTps", module.configured_MTps, module.source, "1")
    book.say("rank", module.rank, module.source, "1")
    book.say("locator", module.locator, module.source)
    book.say("bank_locator", module.bank, module.source)
    book.say("channel", module.channel, module.source)
    book.say("manufacturer", module.manufacturer, module.source)
    book.say("part_number", module.part_number, module.source)
    return book
