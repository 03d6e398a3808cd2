"""<info name="..." value="..."/> elements of hwloc XML, and numbers in their values."""

from __future__ import annotations

import re

from seatrial.machine.readers.xml import Element


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
