"""Memory slots and arrays of SMBIOS -> modules and facts, for both the binary table and the text of dmidecode."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.machine.readers.memory_locators import Place, read_places
from seatrial.machine.readers.smbios import SmbiosArray, SmbiosModule
from seatrial.machine.survey import FactBook, MemoryModule

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
    return tuple(_module(slot, place, source) for slot, place in zip(slots, places, strict=True))


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
    slots = [array.slots for array in arrays if array.slots]
    return sum(slots) if slots else None


def _module(module: SmbiosModule, place: Place, source: str) -> MemoryModule:
    return MemoryModule(
        locator=module.locator,
        bank=module.bank,
        size_bytes=0 if module.is_persistent else module.size_bytes,
        memory_type=module.memory_type,
        rated_MTps=module.rated_MTps,
        configured_MTps=module.configured_MTps,
        rank=module.rank,
        manufacturer=module.manufacturer,
        part_number=module.part_number,
        socket=place.socket,
        channel=place.channel,
        source=source,
        buffering=module.buffering,
        data_bits=module.data_bits,
        total_bits=module.total_bits,
    )
