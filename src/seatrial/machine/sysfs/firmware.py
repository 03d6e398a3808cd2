"""Memory modules from the SMBIOS tables that the kernel passes on (/sys/firmware/dmi/tables, root only)."""

from __future__ import annotations

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.memory_locators import read_place
from seatrial.machine.readers.smbios import Smbios, SmbiosModule, read_smbios
from seatrial.machine.survey import FactBook, MemoryModule, Survey

_FOLDER = "/sys/firmware/dmi"
_TABLE = f"{_FOLDER}/tables/DMI"
_NO_SYSTEM_MEMORY = frozenset({"Flash", "Logical non-volatile device"})


def survey_firmware(files: FileTree, *, is_virtual: bool) -> Survey:
    """The modules, or one sentence why they cannot be read."""
    data = files.data(_TABLE)
    if data is None:
        return _without_modules(_why_absent(files, is_virtual))
    try:
        smbios = read_smbios(data)
    except ParseError as error:
        return _without_modules(f"{_TABLE} is damaged ({error.message}); ask the board's vendor")
    handles = {array.handle for array in smbios.arrays}
    of_system = [m for m in smbios.modules if m.array in handles or not handles]
    modules = tuple(_module(m) for m in of_system if m.memory_type not in _NO_SYSTEM_MEMORY)
    if not modules:
        return _without_modules(f"{_TABLE} describes no memory module")
    slots = [array.slots for array in smbios.arrays if array.slots]
    return Survey(
        source="SMBIOS",
        facts=_facts(smbios, modules).facts(),
        modules=modules,
        memory_slots=sum(slots) if slots else None,
    )


def _without_modules(why: str) -> Survey:
    return Survey("SMBIOS", why_no_modules=why, unread=(f"DIMMs: {why}",))


def _why_absent(files: FileTree, is_virtual: bool) -> str:
    if _TABLE in files.refused:
        return f"{_TABLE} may be read by root only; run once as root to learn the modules and the DRAM limit"
    if is_virtual:
        return f"{_FOLDER} is absent (virtual machine without SMBIOS); the host knows them, this machine cannot"
    return f"{_FOLDER} is absent (no SMBIOS firmware); the DRAM limit needs them from the data sheet"


def _facts(smbios: Smbios, modules: tuple[MemoryModule, ...]) -> FactBook:
    book = FactBook()
    sizes = [module.size_bytes for module in modules]
    if None not in sizes:
        total = sum(size for size in sizes if size is not None)
        book.say("memory_total", total or None, f"{_TABLE} (sum of the modules)", "B")
    book.say("memory_slots", len(modules), _TABLE, "1")
    book.say("sockets", len(smbios.sockets) or None, _TABLE, "1")
    corrections = sorted({array.error_correction for array in smbios.arrays if array.error_correction})
    book.say("ecc", ", ".join(corrections), _TABLE)
    return book


def _module(module: SmbiosModule) -> MemoryModule:
    place = read_place(module.locator, module.bank)
    return MemoryModule(
        locator=module.locator,
        bank=module.bank,
        size_bytes=module.size_bytes,
        memory_type=module.memory_type,
        rated_MTps=module.rated_MTps,
        configured_MTps=module.configured_MTps,
        rank=module.rank,
        manufacturer=module.manufacturer,
        part_number=module.part_number,
        socket=place.socket,
        channel=place.channel,
        source=_TABLE,
    )
