"""Memory modules -> devices, and `Memory`: channels, peak and verdict.

The channel of a slot follows from its name (`readers.memory_locators`), or from the vendor's table (`slots`) if
the number of channels is known. `population_rules` makes the verdict. Whatever neither names nor documents settle is
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.machine.population_rules import SocketLoad, is_soldered, judge_population, rule_of
from seatrial.machine.processors import CpuPlatform, platform_of
from seatrial.machine.readers.hwloc_memory import GPU_MEMORY
from seatrial.machine.readers.memory_locators import read_places
from seatrial.machine.readers.smbios import SmbiosArray, SmbiosModule
from seatrial.machine.slots import GIB, SlotPlace, find_table, odd_slots, slot_number
from seatrial.machine.survey import FactBook, MemoryModule
from seatrial.model.machine.limit import Limit, dram_bandwidth, soldered_bandwidth
from seatrial.model.machine.machine import Device, DeviceKind, Memory, Population, SocketMemory
from seatrial.model.units import SIUnit

_NO_SYSTEM_MEMORY = frozenset({"Flash"})


def system_modules(
    modules: Sequence[SmbiosModule], arrays: Sequence[SmbiosArray], source: str
) -> tuple[MemoryModule, ...]:
    """The slots for system memory, with the socket and channel that their names state.

    A slot with persistent memory (Optane, NVDIMM) has no DRAM: its size is 0, as if it were empty.
    """
    handles = {array.handle for array in arrays}
    slots = [m for m in modules if m.array in handles or not handles]
    slots = [m for m in slots if m.memory_type not in _NO_SYSTEM_MEMORY]
    places = read_places([(m.locator, m.bank, bool(m.size_bytes) and not m.is_persistent) for m in slots])
    return tuple(
        replace(
            slot,
            handle=-1,  # it means something in its table only
            array=None,
            size_bytes=0 if slot.is_persistent else slot.size_bytes,
            socket=place.socket,
            channel=place.channel,
            source=source,
        )
        for slot, place in zip(slots, places, strict=True)
    )


def say_memory_facts(
    book: FactBook,
    modules: Sequence[SmbiosModule],
    system: Sequence[MemoryModule],
    arrays: Sequence[SmbiosArray],
    source: str,
) -> None:
    """Record `memory_total`, `persistent_memory_total`, `memory_slots` and `ecc`."""
    sizes = [module.size_bytes for module in system]
    if None not in sizes:
        total = sum(size for size in sizes if size is not None)
        book.say("memory_total", total or None, f"{source} (sum of the modules)", "B")
    persistent = sum(module.size_bytes or 0 for module in modules if module.is_persistent)
    book.say("persistent_memory_total", persistent or None, f"{source} (sum of the modules)", "B")
    book.say("memory_slots", len(system) or None, source, "1")
    corrections = sorted({array.error_correction for array in arrays if array.error_correction})
    book.say("ecc", ", ".join(corrections), source)


def declared_slots(arrays: Sequence[SmbiosArray]) -> int | None:
    """The slots that the arrays declare, or None."""
    return sum(array.slots or 0 for array in arrays) or None


_CHANNEL_IS_8_BYTES = frozenset({"DDR3", "DDR4", "DDR5"})
_CHANNEL_BITS = 64
"""The data width counts if SMBIOS states another type or none ("<OUT OF SPEC>" of an old dmidecode)."""

_NAMED = "channels from the slot names"
_MOST_SOCKETS = 64


def judge_memory(
    modules: Sequence[MemoryModule],
    slots: int | None,
    cpu_devices: Sequence[Device],
    *,
    is_virtual: bool,
    why_none: str = "no source describes the memory modules",
    product: str | None = None,
) -> Memory:
    """The memory of a machine with these modules. `slots` is the declared number, `why_none` the reason if there are
    none; `product` (vendor and name of the machine) limits the choice of the vendors' slot tables.

    The SMBIOS of a virtual machine describes no real modules: sizes are kept, everything else is unknown.
    """
    modules, other = _without_hbm(modules)
    if not any(module.size_bytes for module in modules):
        return _unknown(why_none)
    groups = _by_socket(modules, cpu_devices)
    platform = _common_platform(cpu_devices)
    if isinstance(groups, str):
        if is_virtual:
            return _unknown(groups)
        too_few = _too_few(modules, cpu_devices, platform)
        memory = replace(_unknown(groups), odd_slots=odd_slots([SlotPlace(module, "") for module in modules]))
        return memory if too_few is None else replace(memory, verdict=Population.UNBALANCED, why=too_few)
    is_sorted = all(m.socket is not None for m in modules) or len(groups) == 1
    is_complete = slots is not None and slots == len(modules) and is_sorted
    sockets = [_socket(name, group, platform, is_complete, product) for name, group in groups]
    memories = tuple(_socket_memory(socket, is_virtual) for socket in sockets)
    if is_virtual:
        return replace(_unknown("a virtual machine's firmware describes no real modules"), sockets=memories)
    verdict, why = judge_population(sockets)
    empty = {m.socket for m in modules} - {m.socket for m in modules if m.size_bytes}
    has_packages = any(device.kind is DeviceKind.PACKAGE for device in cpu_devices)
    if empty - {None} and not has_packages and verdict in (Population.BALANCED, Population.NEAR_BALANCED):
        verdict = Population.UNKNOWN
        why += "; but it is unknown whether the sockets without a module have a processor"
    other = other or _other_memory(cpu_devices)
    peak = Limit.unknown("B/s", other) if other is not None else _peak(sockets, memories)
    return Memory(verdict, why, peak, memories, odd_slots([slot for socket in sockets for slot in socket.places]))


def _unknown(why: str) -> Memory:
    return Memory(why=why, peak=Limit.unknown("B/s", f"populated channels: {why}"))


def _without_hbm(modules: Sequence[MemoryModule]) -> tuple[Sequence[MemoryModule], str | None]:
    """The modules without the HBM that firmware lists beside them, and the reason why they are not all of the memory.

    HBM alone (a processor without modules) stays.
    """
    hbm = [module for module in modules if _is_hbm(module)]
    others = [module for module in modules if not _is_hbm(module)]
    if not hbm or not any(module.size_bytes for module in others):
        return modules, None
    size = sum(module.size_bytes or 0 for module in hbm) / GIB
    kind = hbm[0].memory_type
    return others, f"the modules are not all of the memory: the firmware also lists {size:g} GiB of {kind}"


def _is_hbm(module: MemoryModule) -> bool:
    return (module.memory_type or "").startswith("HBM") and bool(module.size_bytes)


def _too_few(modules: Sequence[MemoryModule], cpu_devices: Sequence[Device], platform: CpuPlatform) -> str | None:
    """Why the modules cannot fill the channels evenly whatever their slots are, or None if they could."""
    packages = sum(device.kind is DeviceKind.PACKAGE for device in cpu_devices)
    count = sum(1 for module in modules if module.size_bytes)
    if not packages or platform.channels is None or any(is_soldered(module) for module in modules):
        return None
    seen = f"{count} modules for {packages} processors with {platform.channels} channels each"
    if count % packages:
        return f"{seen}: the processors cannot have equal numbers of modules"
    own, rule = count // packages, rule_of(platform)
    share = f"at most {own / platform.channels:.0%} of the channels can be in use"
    if 2 * own < platform.channels:
        return f"{seen}: {share}, whatever the slots are"
    if rule is not None and own not in (*rule.balanced, *rule.near):
        required = " or ".join(str(number) for number in (*rule.balanced, *rule.near))
        return f"{seen}: {platform.name} requires {required} per processor; {rule.source}"
    return None


def _other_memory(cpu_devices: Sequence[Device]) -> str | None:
    """Why the modules do not limit the memory bandwidth: the other memory of the machine. None if there is no other.

    Memory in the processor package (Xeon Max) may be a hidden cache; otherwise it appears as nodes without CPUs, as
    nodes of another kind (hwloc), or as a memory-side cache.
    """
    found = "the modules are not all of the memory"
    for package in cpu_devices:
        memory = package.facts.text("package_memory") if package.kind is DeviceKind.PACKAGE else None
        if memory is not None:
            return f"{found}: {package.name} has {memory} of unknown rate in its package"
    of_cpus = {device.numa for device in cpu_devices if device.kind is DeviceKind.PU}
    for node in cpu_devices:
        if node.kind is DeviceKind.NUMA and of_cpus and node.numa not in of_cpus and node.facts.number("memory_total"):
            kind = node.facts.text("memory_kind") or "memory without CPUs (HBM, CXL, a GPU)"
            if kind == GPU_MEMORY:  # not memory of the host
                continue
            return f"{found}: {node.id} is {kind} of unknown rate"
        cache = node.facts.integer("memory_side_cache")
        if node.kind is DeviceKind.NUMA and cache:
            return f"{found}: a memory-side cache of {cache / GIB:g} GiB is in front of them"
    return None


def _common_platform(cpu_devices: Sequence[Device]) -> CpuPlatform:
    """The platform of all packages; an unknown one if they differ or there are none."""
    found = {platform_of(device) for device in cpu_devices if device.kind is DeviceKind.PACKAGE}
    return found.pop() if len(found) == 1 else CpuPlatform(None, None)


def _by_socket(
    modules: Sequence[MemoryModule], cpu_devices: Sequence[Device]
) -> list[tuple[str, tuple[MemoryModule, ...]]] | str:
    """(name, all slots) of each socket with a processor, in order; the reason as text if that is unknown.

    Slots of a socket without a processor are omitted; a processor without modules, or without any slot listed, is kept.
    """
    packages = sum(device.kind is DeviceKind.PACKAGE for device in cpu_devices)
    modules = _with_split_letters(modules, cpu_devices, packages)
    filled = {module.socket for module in modules if module.size_bytes}
    if None in filled:
        if packages == 1:
            return [("the socket", tuple(modules))]
        return "the slot names do not state their sockets"
    named = sorted({module.socket for module in modules if module.socket is not None})
    if packages and len(filled) > packages:
        return f"modules are listed for {len(filled)} sockets, but the number of processors is {packages}"
    empty = [number for number in named if number not in filled]
    kept = sorted(number for number in filled if number is not None)
    if packages > len(kept):
        kept = sorted([*kept, *empty[: packages - len(kept)]])
    others = tuple(m for m in modules if m.socket is None) if packages == 1 else ()
    groups = [(f"socket {number}", (*(m for m in modules if m.socket == number), *others)) for number in kept]
    missing = min(packages, _MOST_SOCKETS) - len(groups)
    return [*groups, *((f"another socket ({index + 1})", ()) for index in range(missing))]


def _with_split_letters(
    modules: Sequence[MemoryModule], cpu_devices: Sequence[Device], packages: int
) -> Sequence[MemoryModule]:
    """Assign sockets if channel letters continue across sockets: A to F, then G to M (ASUS, Gigabyte).

    Only if the letters of all slots divide evenly by the channels of a processor.
    """
    channels = _common_platform(cpu_devices).channels
    if any(m.socket is not None or m.channel is None or len(m.channel) != 1 for m in modules) or not channels:
        return modules
    letters = sorted({module.channel or "" for module in modules})
    if len(letters) % channels or len(letters) // channels < packages or len(letters) == channels:
        return modules
    number = {letter: index // channels for index, letter in enumerate(letters)}
    return [replace(module, socket=number[module.channel or ""]) for module in modules]


def _socket(
    name: str, modules: tuple[MemoryModule, ...], platform: CpuPlatform, is_complete: bool, product: str | None
) -> SocketLoad:
    """The populated slots with their channels, from their names or else from the vendor's table."""
    filled = tuple(module for module in modules if module.size_bytes)
    is_named = bool(filled) and all(module.channel is not None for module in filled)
    mapping, table = _NAMED if is_named else "", None
    if filled and not is_named and platform.channels is not None:
        table = find_table([(module.locator, module.bank) for module in modules], platform.channels, product)
    slots: list[SlotPlace] = []
    for module in modules:
        slot = None if table is None else table.slots.get(slot_number(module.locator) or 0)
        if slot is not None and table is not None:
            mapping = f"channels from {table.source}"
            slots.append(SlotPlace(module, name, slot.channel, slot.position))
        else:
            slots.append(SlotPlace(module, name, module.channel if is_named else None))
    channels = {module.channel for module in modules}
    if is_named and platform.channels is None and is_complete and None not in channels:
        platform = replace(platform, channels=len(channels), source="the slot names", confirmed=True)
    return SocketLoad(name, platform, tuple(slots), is_complete, mapping, platform.confirmed or is_named)


def _socket_memory(load: SocketLoad, is_virtual: bool) -> SocketMemory:
    modules = [placed.module for placed in load.placed]
    populated = load.populated_channels() if load.placed else 0
    channels = load.platform.channels
    if channels is not None and populated is not None and populated > channels:
        populated = None
    return SocketMemory(
        channels=None if is_virtual else channels,
        populated_channels=None if is_virtual else populated,
        dimms=load.dimms,
        capacity_bytes=load.capacity_bytes,
        configured_MTps=_common([module.configured_MTps for module in modules]),
        rated_MTps=_common([module.rated_MTps for module in modules]),
    )


def _common(values: Sequence[float | None]) -> float | None:
    """The common value; None if one is unknown or they differ."""
    return values[0] if values and len(set(values)) == 1 else None


def _peak(sockets: Sequence[SocketLoad], memories: Sequence[SocketMemory]) -> Limit:
    """Sum over the sockets of populated channels x 8 B x configured rate; unknown if one of them is."""
    modules = [placed.module for socket in sockets for placed in socket.placed]
    if any(is_soldered(module) for module in modules):
        return _soldered_peak(modules)
    if not all(m.memory_type in _CHANNEL_IS_8_BYTES or m.data_bits == _CHANNEL_BITS for m in modules):
        names = ", ".join(sorted({module.memory_type or "memory of unknown type" for module in modules}))
        return Limit.unknown("B/s", f"the width of a channel is unknown ({names})")
    rates = {memory.configured_MTps for memory in memories if memory.dimms}
    if None in rates or len(rates) != 1:
        return Limit.unknown("B/s", "the configured speed of the modules is unknown or differs")
    known = [count for memory in memories if (count := memory.populated_channels) is not None]
    if len(known) != len(memories):
        return Limit.unknown("B/s", "neither the slot names nor a document state which channels are populated")
    rate = rates.pop()
    where = f"{len(memories)} socket{'s' if len(memories) > 1 else ''}, from SMBIOS"
    confirmed = all(socket.is_confirmed for socket in sockets)
    if not confirmed:
        where += "; the number of channels per socket is unconfirmed"
    return dram_bandwidth(sum(known), rate if rate is not None else 0.0, where, confirmed=confirmed)


def _soldered_peak(modules: Sequence[MemoryModule]) -> Limit:
    """Sum over the devices of width x configured rate; of the rated one if the firmware states no other, which the
    devices cannot exceed."""
    widths = [module.data_bits for module in modules]
    names = ", ".join(sorted({str(module.memory_type) for module in modules}))
    if None in widths or not all(is_soldered(module) for module in modules):
        return Limit.unknown("B/s", f"the width of a channel is unknown ({names})")
    speed, note = "configured", ""
    rates = [module.configured_MTps for module in modules]
    if None in rates:
        speed, note = "rated", "; the configured speed is unknown"
        rates = [module.rated_MTps for module in modules]
    known = [(bits, rate) for bits, rate in zip(widths, rates, strict=True) if bits is not None and rate is not None]
    if len(known) != len(modules):
        return Limit.unknown("B/s", "the configured speed of the modules is unknown or differs")
    counted = f"{len(modules)} device{'s' if len(modules) > 1 else ''}"
    return soldered_bandwidth(known, speed, f"{counted}, from SMBIOS{note}")


def memory_devices(modules: Sequence[MemoryModule], cpu_devices: Sequence[Device]) -> tuple[Device, ...]:
    """A device for each installed module, below its package if that is certain."""
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
        book = FactBook()
        book.say("size", module.size_bytes, module.source, "B")
        for fact, unit in _FACTS.items():
            book.say(fact, getattr(module, "bank" if fact == "bank_locator" else fact), module.source, unit)
        devices.append(Device(device_id, DeviceKind.MEMORY, module.locator or device_id, parent, facts=book.facts()))
    return tuple(devices)


_FACTS: Mapping[str, SIUnit | None] = {
    **dict.fromkeys(("memory_type", "buffering"), None),
    **dict.fromkeys(("rated_MTps", "configured_MTps", "rank", "data_bits"), "1"),
    **dict.fromkeys(("locator", "bank_locator", "channel", "manufacturer", "part_number"), None),
}
