"""<info name="..." value="..."/> elements of hwloc XML, numbers in their values, facts about a machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.machine.readers.xml import Document, Element
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.fact import Facts
from seatrial.model.machine import DeviceKind


def read_infos(element: Element) -> dict[str, str]:
    """Name -> value of the infos directly inside an element; the last one of duplicates."""
    return {
        child.attributes["name"]: child.attributes["value"]
        for child in element.children
        if child.tag == "info" and "name" in child.attributes and "value" in child.attributes
    }


def info_number(text: str | None) -> int | None:
    """A whole number, decimal or 0x; None for anything else."""
    if text is None or not re.fullmatch(r"(0x[0-9a-fA-F]{1,8}|\d{1,18})", text.strip(), re.ASCII):
        return None
    return int(text.strip(), 0) if text.strip().startswith("0x") else int(text.strip())


def info_size(text: str | None) -> int | None:
    """Bytes of "390711384KiB" (hwloc 3) or "390711384" (KiB too, hwloc 1 and 2)."""
    number = info_number(text.strip().removesuffix("KiB")) if text is not None else None
    return number * 1024 if number is not None else None


def number_of(document: Document, element: Element, name: str) -> int | None:
    """The number in an attribute, or None. Raises ParseError for anything but a number."""
    text = element.attributes.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise document.error(element, f"{name} is not a number")
    return int(text)


def machine_facts(
    document: Document, machine: Element, infos: Mapping[str, str], parts: Sequence[CpuPart], source: str
) -> Facts:
    """The facts about the whole machine: its memory, firmware and kernel."""
    book = FactBook()
    sizes = [part.facts.integer("memory_total") for part in parts if part.kind is DeviceKind.NUMA]
    known = [size for size in sizes if size]
    total = sum(known) or number_of(document, machine, "local_memory")
    sum_of = f"{source} (sum of the NUMA nodes' local memory)"
    book.say("memory_total", total or None, sum_of, "B", volatile=True)
    product = " ".join(filter(None, (infos.get("DMISysVendor"), infos.get("DMIProductName"))))
    book.say("product", product, source)
    board = " ".join(filter(None, (infos.get("DMIBoardVendor"), infos.get("DMIBoardName"))))
    book.say("board", board, source)
    for fact, key in (
        ("bios_vendor", "DMIBIOSVendor"),
        ("bios_version", "DMIBIOSVersion"),
        ("bios_date", "DMIBIOSDate"),
    ):
        book.say(fact, infos.get(key), source)
    book.say("kernel", infos.get("OSRelease"), source)
    book.say("architecture", infos.get("Architecture"), source)
    return book.facts()
