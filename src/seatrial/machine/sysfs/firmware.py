"""Memory modules from the SMBIOS tables that the kernel exports (/sys/firmware/dmi/tables, root only)."""

from __future__ import annotations

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.smbios import read_smbios
from seatrial.machine.smbios_memory import declared_slots, say_memory_facts, system_modules
from seatrial.machine.survey import FactBook, Survey

_FOLDER = "/sys/firmware/dmi"
_TABLE = f"{_FOLDER}/tables/DMI"


def survey_firmware(files: FileTree, *, is_virtual: bool) -> Survey:
    """The modules, or a sentence on why they cannot be read."""
    data = files.data(_TABLE)
    if data is None:
        return _without_modules(_why_absent(files, is_virtual))
    try:
        smbios = read_smbios(data)
    except ParseError as error:
        return _without_modules(f"{_TABLE} is damaged ({error.message}); ask the board's vendor")
    modules = system_modules(smbios.modules, smbios.arrays, _TABLE)
    if not modules:
        return _without_modules(f"{_TABLE} describes no memory modules")
    book = FactBook()
    say_memory_facts(book, smbios.modules, modules, smbios.arrays, _TABLE)
    book.say("sockets", len(smbios.sockets) or None, _TABLE, "1")
    return Survey(source="SMBIOS", facts=book.facts(), modules=modules, memory_slots=declared_slots(smbios.arrays))


def _without_modules(why: str) -> Survey:
    return Survey("SMBIOS", why_no_modules=why, unread=(f"DIMMs: {why}",))


def _why_absent(files: FileTree, is_virtual: bool) -> str:
    if _TABLE in files.refused:
        return f"{_TABLE} can only be read by root; run once as root to get the modules and the DRAM limit"
    if is_virtual:
        return f"{_FOLDER} is missing (virtual machine without SMBIOS); only the host can list the modules"
    return f"{_FOLDER} is missing (no SMBIOS firmware); see the data sheet for the modules and the DRAM limit"
