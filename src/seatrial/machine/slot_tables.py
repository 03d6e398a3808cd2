"""Slot number -> memory channel, for vendors' own slot numbers. Each table names its source document.

A table is chosen by the format of the slot names, the number of slots per socket and the number of channels of the CPU.
The product name is therefore not required; if it is known, it must be of that vendor. What no document settles is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from seatrial.model.frozen import Frozen


class Slot(Frozen):
    """The channel of a slot (a name that is unique within its socket) and its position in the channel: 0 is populated
    first, None is unknown."""

    channel: str
    position: int | None = None


class SlotTable(Frozen):
    """The channels of a socket's slots by slot number, and the source document."""

    slots: Mapping[int, Slot]
    source: str


_DELL_14G = "Dell PowerEdge R740xd and T640 Installation and Service Manual, Memory channels: A1 and A7 are channel 0"
_DELL_R540 = "Dell EMC PowerEdge R540 Owner's Manual, table Memory channels: A1-A7, A2-A8, A4-A9, A5-A10"
_DELL_13G = "Dell PowerEdge R730xd (DL4000) Owner's Manual, memory channels: channel 3 has slots A4, A8 and A12"
_DELL_15G = "Dell EMC XC Core XC750xa Installation and Service Manual, table Memory channels: A1 and A9 are channel A"
_DELL_AMD = "Dell EMC PowerEdge R6525 Installation and Service Manual: white tabs A1-A8 first, then A9-A16"
_DELL_ONE = "Dell PowerEdge R6615 Installation and Service Manual, table Memory channels: one slot in each channel"
_HPE_GEN9 = "HPE ProLiant Gen9 user guides, DIMM slot locations: three slots in each channel, 1, 4, 9, 12 first"
_HPE_GEN10 = (
    "HPE, Population rules for DIMMs in HPE Gen10 servers with Intel Xeon Scalable processors: 1, 3, 5, 8, 10, 12 first"
)
_HPE_PLUS = (
    "HPE a50003886enw (Gen10 Plus) and a50007437enw (Gen11), memory population rules: 1, 3, 5, 7, 10, 12, 14, 16 first"
)
_HPE_ONE = "HPE ProLiant Gen11 memory population rules: one slot in each channel"
_LENOVO_PAIRS = "Lenovo pubs, SN550 and SR860 V2, Memory module installation rules: slots 1 and 2 share a channel"
_LENOVO_8 = "Lenovo pubs, SR570, Memory module installation rules: slots 3 and 4, and 5 and 6, share a channel"
_LENOVO_ONE = "Lenovo pubs, SR655 V3 and SD530 V3, Memory module installation rules: one slot in each channel"

_DELL = re.compile(r"(?:DIMM[_ ]?)?[A-H]([1-9]\d?)\Z", re.ASCII)
_HPE = re.compile(r"PROC \d DIMM ([1-9]\d?)\Z", re.ASCII | re.IGNORECASE)
_LENOVO = re.compile(r"DIMM ([1-9]\d{0,2})\Z", re.ASCII | re.IGNORECASE)
_LENOVO_BANK = re.compile(r"CPU \d\Z", re.ASCII | re.IGNORECASE)


def find_table(slots: Sequence[tuple[str, str]], channels: int, product: str | None) -> SlotTable | None:
    """The table for the (locator, bank locator) pairs of all slots of one socket, or None if no document covers it.

    The slots must be numbered from the first of the socket without gaps.
    """
    for locator, bank, vendor, table in _FORMS:
        numbers = [_number(locator, bank, slot) for slot in slots]
        known = [number for number in numbers if number is not None]
        if len(known) != len(slots) or not known or (product is not None and not vendor.search(product)):
            continue
        first = min(known)
        count = len(known)
        if sorted(known) != list(range(first, first + count)) or (first - 1) % count:
            return None
        chosen = table(count, channels, product or "")
        if chosen is None:
            return None
        own = {number: number - first + 1 for number in known}
        return SlotTable({n: chosen.slots[of] for n, of in own.items() if of in chosen.slots}, chosen.source)
    return None


def slot_number(locator: str) -> int | None:
    """The number in a slot name, as used by the tables."""
    matches = (form.match(locator.strip()[:80]) for form in (_DELL, _HPE, _LENOVO))
    return next((int(match[1]) for match in matches if match), None)


def _number(locator: re.Pattern[str], bank: re.Pattern[str] | None, slot: tuple[str, str]) -> int | None:
    match = locator.match(slot[0].strip()[:80])
    if match is None or (bank is not None and not bank.match(slot[1].strip()[:80])):
        return None
    return int(match[1])


def _modulo(count: int, channels: int, source: str) -> SlotTable:
    """Numbered across channels: the first slots of all channels, then the second ones, then the third ones."""
    slots = {n: Slot(str((n - 1) % channels), (n - 1) // channels) for n in range(1, count + 1)}
    return SlotTable(slots, source)


def _pairs(count: int, source: str) -> SlotTable:
    """Neighbours share a channel; of each pair, the slot farther from the processor is populated first."""
    half = count // 2
    slots = {n: Slot(str((n - 1) // 2), (n - 1) % 2 if n <= half else n % 2) for n in range(1, count + 1)}
    return SlotTable(slots, source)


def _one_each(count: int, source: str) -> SlotTable:
    return SlotTable({n: Slot(str(n - 1), 0) for n in range(1, count + 1)}, source)


def _dell(count: int, channels: int, product: str) -> SlotTable | None:
    if count == channels:
        return _one_each(count, _DELL_ONE)
    if channels == 6 and count == 12:
        return _modulo(count, channels, _DELL_14G)
    if channels == 6 and count in (8, 10):
        slots = dict(_modulo(6, channels, _DELL_14G).slots)
        if re.search(r"\bR[45]40\b", product) and count == 10:
            second = {7: "0", 8: "1", 9: "3", 10: "4"}
            return SlotTable(slots | {n: Slot(channel, 1) for n, channel in second.items()}, _DELL_R540)
        return SlotTable(slots, _DELL_14G)  # the channels of A7 and A8 are unknown
    if channels == 4 and count in (8, 12):
        return _modulo(count, channels, _DELL_13G)
    if channels == 8 and count == 16:
        amd, intel = re.search(r"[67]\d[12]5\b", product), re.search(r"\d[05]\w*\Z", product)
        source = _DELL_AMD if amd else _DELL_15G if intel else f"{_DELL_15G}; {_DELL_AMD}"
        return _modulo(count, channels, source)
    return None


def _hpe(count: int, channels: int, product: str) -> SlotTable | None:
    if count == channels:
        return _one_each(count, _HPE_ONE)
    if (count, channels) == (12, 6):
        return _pairs(count, _HPE_GEN10)
    if (count, channels) == (16, 8):
        return _pairs(count, _HPE_PLUS)
    if (count, channels) == (12, 4):
        order = {1: 0, 2: 1, 3: 2, 4: 0, 5: 1, 6: 2, 7: 2, 8: 1, 9: 0, 10: 2, 11: 1, 12: 0}
        return SlotTable({n: Slot(str((n - 1) // 3), position) for n, position in order.items()}, _HPE_GEN9)
    return None


def _lenovo(count: int, channels: int, product: str) -> SlotTable | None:
    if count == channels:
        return _one_each(count, _LENOVO_ONE)
    if (count, channels) in ((12, 6), (16, 8)):
        return _pairs(count, _LENOVO_PAIRS)
    if (count, channels) == (8, 6) and re.search(r"\bSR5[79]0\b", product):
        places = (("0", 0), ("1", 0), ("2", 0), ("2", 1), ("3", 1), ("3", 0), ("4", 0), ("5", 0))
        return SlotTable({n: Slot(*place) for n, place in enumerate(places, 1)}, _LENOVO_8)
    return None


_FORMS: tuple[
    tuple[re.Pattern[str], re.Pattern[str] | None, re.Pattern[str], Callable[[int, int, str], SlotTable | None]], ...
] = (
    (_DELL, None, re.compile(r"Dell|PowerEdge", re.IGNORECASE), _dell),
    (_HPE, None, re.compile(r"HPE?\b|Hewlett|ProLiant|Synergy|Apollo", re.IGNORECASE), _hpe),
    (_LENOVO, _LENOVO_BANK, re.compile(r"Lenovo|ThinkSystem", re.IGNORECASE), _lenovo),
)
"""(locator, bank locator, vendors that use these names, table by slots of a socket, channels and product)."""
