"""`dmidecode` -> the memory modules, processors and product of a machine, as from the binary SMBIOS table.

Format: dmidecode.c of dmidecode 2.12 to 3.6 (dmi_decode, dmi_table_decode): "Handle 0x..., DMI type 17, 84 bytes", a
title, then lines "Key: value" after one tab, list items after two. `-q` omits the handles. Complete dumps, `-t memory`
and any other selection are accepted, also several in one file. Serial numbers, asset tags and UUIDs are not kept.

The structures used here are parsed strictly: any line that cannot be parsed is reported. A dump with missing memory
devices is refused: it would show a machine that does not exist.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.machine.memory_population import declared_slots, say_memory_facts, system_modules
from seatrial.machine.readers.dmidecode_blocks import (
    TOOL,
    DmiBlock,
    DmiDump,
    read_count,
    read_handle,
    read_rank,
    read_rate,
    read_size,
    read_width,
    read_word,
    split_dumps,
)
from seatrial.machine.readers.dump import Line, choose, read_lines
from seatrial.machine.readers.smbios import SmbiosArray, SmbiosModule, hypervisor_of
from seatrial.machine.survey import CpuPart, FactBook, Survey
from seatrial.model.machine.machine import DeviceKind

_SOURCE = "dmidecode"
_DISABLED = ", Disabled"
"""By the user or the firmware: such a processor does not run; VMware lists 127 of them beside one."""
_REFUSALS = ("permission denied", "operation not permitted", "no smbios nor dmi entry point found")
_TYPE_UNKNOWN = frozenset({"other", "<out of spec>"})
_BUFFERINGS = (("lrdimm", "LRDIMM"), ("registered", "RDIMM"), ("unbuffered", "UDIMM"))
_ECC = {
    "none": "none", "parity": "parity", "single-bit ecc": "single-bit ECC", "multi-bit ecc": "multi-bit ECC",
    "crc": "CRC",
}  # fmt: skip
_USES = frozenset(
    {
        *("Other", "Unknown", "System Memory", "Video Memory", "Flash Memory", "Non-volatile RAM", "Cache Memory"),
        "<OUT OF SPEC>",
    }
)
"""DSP0134 7.17.2, as dmidecode prints them."""
_SIGNATURE = re.compile(r"(?:Type \d{1,3}, )?Family (\d{1,5}), Model (\d{1,5}), Stepping (\d{1,5})\Z", re.ASCII)


def read_dmidecode(data: bytes, pick: int | None = None) -> Survey:
    """Modules, packages (without CPU numbers) and facts of a dump; `pick` selects one of several, from 1.

    Raises ParseError for the first wrong line, or if dmidecode was denied access; UsageError for several dumps without
    `pick`.
    """
    lines = read_lines(data, TOOL)
    for line in lines:  # an error message in place of a dump; strings of the firmware follow a tab
        if line.text[:1] != "\t" and any(words in line.text.lower() for words in _REFUSALS):
            raise line.error(TOOL, "dmidecode could not read the table; run it as root on the machine itself")
    dump = choose(split_dumps(lines), lambda found: found.begin, pick, TOOL, "dump of dmidecode")
    blocks = dump.blocks
    candidates = (_array(block) for block in blocks if block.title == "Physical Memory Array")
    arrays = tuple(array for array in candidates if array is not None)
    devices = [block for block in blocks if block.title == "Memory Device"]
    modules, unlisted = _of_array(tuple(map(_module, devices)), arrays, blocks)
    _check_last(devices)
    unlisted += _check_count(arrays, modules, dump, lines)
    system = system_modules(modules, arrays, _SOURCE)
    packages = _packages([block for block in blocks if block.title == "Processor Information"])
    book = FactBook()
    _add_platform_facts(blocks, book)
    say_memory_facts(book, modules, system, arrays, _SOURCE)
    book.say("sockets", len(packages) or None, _SOURCE, "1")
    why = None if system else "the dump has no Memory Device; dmidecode -t memory (as root) lists them"
    unlisted += [f"DIMMs: {why}"] if why else []
    disabled = sum(_DISABLED in (block.value("Status") or "") for block in blocks)
    unlisted += [f"processors: {disabled} more are populated but disabled, and not counted"] if disabled else []
    if system and not packages:
        unlisted.append("processors: not in the dump; add the output of dmidecode -t processor to get the channels")
    return Survey(
        source=_SOURCE,
        name=_named(_only(blocks, "System Information"), "Product Name"),
        facts=book.facts(),
        cpu_parts=packages,
        modules=system,
        memory_slots=declared_slots(arrays),
        why_no_modules=why,
        unread=tuple(unlisted),
    )


def _array(block: DmiBlock) -> SmbiosArray | None:
    """A memory array for system memory; None for others (flash, cache, video)."""
    use = block.need("Use")
    slots = block.need("Number Of Devices")
    correction = block.value("Error Correction Type")
    if use.value not in _USES:
        raise use.line.error(TOOL, "not a use of a memory array that SMBIOS defines")
    if use.value != "System Memory":
        return None
    count = read_count(slots)
    return SmbiosArray(block.handle if block.handle is not None else -1, count, _ECC.get((correction or "").lower()))


def _module(block: DmiBlock) -> SmbiosModule:
    size = read_size(block.need("Size"))
    block.need("Form Factor")
    locator = block.need("Locator")
    bank = block.need("Bank Locator")
    kind = read_word(block.need("Type"))
    detail = block.need("Type Detail").value.lower()
    technology = (block.value("Memory Technology") or "").lower()
    for length, keys in _FIELDS if size else ():
        if (block.length or 0) >= length and not any(key in block.fields for key in keys):
            raise block.last.error(TOOL, f"the dump is cut off: {keys[0]} of this Memory Device is missing")
    array = block.read(read_handle, "Array Handle")
    if block.handle is None:
        array = -1 if "Array Handle" not in block.fields else array
    return SmbiosModule(
        handle=block.handle if block.handle is not None else -1,
        array=array,
        locator=read_word(locator) or "",
        bank=read_word(bank) or "",
        size_bytes=size,
        memory_type=None if (kind or "").lower() in _TYPE_UNKNOWN else kind,
        rated_MTps=block.read(read_rate, "Speed"),
        configured_MTps=block.read(read_rate, *_CONFIGURED),
        rank=block.read(read_rank, "Rank"),
        manufacturer=block.read(read_word, "Manufacturer"),
        part_number=block.read(read_word, "Part Number"),
        buffering=next((name for word, name in _BUFFERINGS if word in detail), None),
        is_persistent="non-volatile" in f"{kind} {detail}".lower() or any(word in technology for word in _PERSISTENT),
        data_bits=block.read(read_width, "Data Width"),
        total_bits=block.read(read_width, "Total Width"),
    )


_PERSISTENT = ("persistent", "nvdimm", "optane")
_CONFIGURED = ("Configured Memory Speed", "Configured Clock Speed")
_FIELDS = ((0x17, ("Speed",)), (0x1C, ("Rank",)), (0x22, _CONFIGURED))
"""(structure length from which a field exists, its key in new and old versions): DSP0134 7.18. A module's block must
have every field that its length implies: else the dump was cut off in it."""


def _check_last(blocks: Sequence[DmiBlock]) -> None:
    """Without lengths (-q), the last module must have the keys that all others have."""
    filled = [block for block in blocks if block.length is None and (read_size(block.need("Size")) or 0) > 0]
    if len(filled) < 2:
        return
    common = frozenset.intersection(*(frozenset(block.fields) for block in filled[:-1]))
    missing = sorted(common - frozenset(filled[-1].fields))
    if missing:
        raise filled[-1].last.error(TOOL, f"the dump is cut off: {missing[0]} of this Memory Device is missing")


def _of_array(
    modules: tuple[SmbiosModule, ...], arrays: Sequence[SmbiosArray], blocks: Sequence[DmiBlock]
) -> tuple[tuple[SmbiosModule, ...], list[str]]:
    """The modules, and a sentence if the firmware names a structure of another type as their array, as VMware's does:
    then they are those of the only array, if there are at least as many as it declares."""
    named = {module.array for module in modules}
    (handle,) = named if len(named) == 1 else (None,)
    of = next((block.title for block in blocks if handle is not None and block.handle == handle), None)
    if len(arrays) != 1 or of in (None, "Physical Memory Array") or len(modules) < (arrays[0].slots or 0):
        return modules, []
    own = tuple(replace(module, array=arrays[0].handle) for module in modules)
    return own, [f"DIMMs: the firmware names a {of} as their array; the dump has one array, so they are taken as its"]


def _check_count(
    arrays: Sequence[SmbiosArray], modules: Sequence[SmbiosModule], dump: DmiDump, lines: Sequence[Line]
) -> list[str]:
    """Each array must have as many devices as it declares, if the dump has devices at all. Returns a sentence for each
    array of which the firmware lists fewer."""
    is_whole = {"BIOS Information", "System Information"} <= {block.title for block in dump.blocks}
    if not modules and not is_whole and not dump.has_end:
        return []  # dmidecode -t 16
    unlisted: list[str] = []
    by_array: dict[int | None, list[int]] = {}
    for module in modules:
        by_array.setdefault(module.array, []).append(module.handle)
    for array in arrays:
        own = by_array.get(array.handle, [])
        found = len(own)
        if array.slots is not None and found < array.slots:
            if own and _is_nothing_missing(own, array, dump):
                unlisted.append(f"DIMMs: the firmware declares {array.slots} slots but lists {found}")
                continue
            where = f"array {array.handle:#06x}" if len(arrays) > 1 else "the memory array"
            last = next(line for line in reversed(lines) if not line.is_blank)
            why = f"{where} declares {array.slots} devices, but has {found}: the dump is cut off or lines are missing"
            raise last.error(TOOL, why)
    return unlisted


def _is_nothing_missing(own: Sequence[int], array: SmbiosArray, dump: DmiDump) -> bool:
    """Whether a dump with fewer devices than declared is complete: firmware may declare more slots than the board has.

    It is if it ends with the end of the table, and has as many structures as it announces; or no handle from the array
    on is missing; or no handle between the devices is missing but at least half of the declared devices are, which a
    gap in a copy does not explain.
    """
    if not dump.has_end or array.handle < 0:
        return False
    if dump.announced is not None:
        return dump.structures + 1 == dump.announced  # and the end
    handles = dump.handles
    if handles[-1] > max(own) and _has_all(handles, array.handle, handles[-1]):
        return True
    return _has_all(handles, min(own), max(own)) and 2 * len(own) <= (array.slots or 0)


def _has_all(handles: Sequence[int], first: int, last: int) -> bool:
    """Whether all numbers from first to last are among these, which are sorted and distinct."""
    at = bisect_left(handles, first)
    end = at + last - first
    return end < len(handles) and (handles[at], handles[end]) == (first, last)


def _packages(blocks: Sequence[DmiBlock]) -> tuple[CpuPart, ...]:
    parts: list[CpuPart] = []
    for block in blocks:
        kind, status = block.value("Type"), block.value("Status")
        if status is None and block.length is not None and block.length >= 0x1A:
            raise block.last.error(TOOL, "the dump is cut off: Status of this Processor Information is missing")
        if kind is not None and kind.lower() != "central processor":
            continue
        if status is not None and not status.startswith(("Populated", "Unpopulated")):
            raise block.need("Status").line.error(TOOL, 'the status must be "Populated, ..." or "Unpopulated"')
        if status is not None and (not status.startswith("Populated") or _DISABLED in status):
            continue
        parts.append(CpuPart(DeviceKind.PACKAGE, frozenset(), len(parts), facts=_cpu_facts(block, len(parts)).facts()))
    return tuple(parts)


def _cpu_facts(block: DmiBlock, index: int) -> FactBook:
    book = FactBook()
    source = f"{_SOURCE}, Processor Information"
    book.say("os_index", index, source)
    maker = (block.value("Manufacturer") or "").lower()
    name = block.value("Version") or ""
    signature = _SIGNATURE.match(block.value("Signature") or "")
    is_amd = "amd" in maker.split() or "advanced micro devices" in maker or name.startswith("AMD")
    is_intel = "intel" in maker or name.lower().startswith("intel")
    book.say("vendor", "AuthenticAMD" if is_amd else "GenuineIntel" if is_intel else None, source)
    book.say("model_name", " ".join((block.read(read_word, "Version") or "").split()), source)
    if signature is not None:
        for key, value in zip(("family", "model", "stepping"), signature.groups(), strict=True):
            book.say(key, int(value), source)
    return book


def _add_platform_facts(blocks: Iterable[DmiBlock], book: FactBook) -> None:
    system = _only(blocks, "System Information")
    board = _only(blocks, "Base Board Information")
    bios = _only(blocks, "BIOS Information")
    for fact, block in (("product", system), ("board", board)):
        words = [_named(block, key) for key in ("Manufacturer", "Product Name")]
        book.say(fact, " ".join(filter(None, words)), f"{_SOURCE}, {block.title}" if block else _SOURCE)
    for fact, key in (("bios_vendor", "Vendor"), ("bios_version", "Version"), ("bios_date", "Release Date")):
        book.say(fact, bios.read(read_word, key) if bios else None, f"{_SOURCE}, BIOS Information")
    hypervisor = hypervisor_of(book.facts().text("product") or "", virtual_cpu=None)
    if hypervisor is None and bios is not None and "System is a virtual machine" in bios.items:
        hypervisor = "present, not named"
    book.say("hypervisor", hypervisor, f"{_SOURCE}, System Information")


def _only(blocks: Iterable[DmiBlock], title: str) -> DmiBlock | None:
    return next((block for block in blocks if block.title == title), None)


def _named(block: DmiBlock | None, key: str) -> str | None:
    """A name of the vendor; None for a placeholder."""
    word = block.read(read_word, key) if block else None
    return None if word is None or "o.e.m." in word.lower() else word
