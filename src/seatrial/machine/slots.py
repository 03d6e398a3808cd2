"""Memory slots: their channels from vendors' own slot numbers, and those unlike the others.

Each table (slot number -> memory channel) names its source document. It is chosen by the format of the slot names, the
number of slots per socket and the number of channels of the CPU. The product name is therefore not required; if it is
known, it must be of that vendor. What no document settles is None.

A slot is odd if its module differs from most, or if it is empty where the others are filled. Only few slots can be odd.
Where many differ, the population is a design (two capacities, half of the channels), which `population_rules` judges as
a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from seatrial.machine.survey import MemoryModule
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import OddSlot


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


GIB = 1 << 30
_LEAST = 3  # Of two modules, neither is the usual one.
_MOST_ODD = 8  # One slot may be odd, and one of this many.


class SlotPlace(Frozen):
    """A slot with its socket (the name of the processor), channel and position; None is unknown."""

    module: MemoryModule
    socket: str
    channel: str | None = None
    position: int | None = None

    @property
    def is_filled(self) -> bool:
        """Whether a module is in it."""
        return bool(self.module.size_bytes)


def odd_slots(slots: Sequence[SlotPlace]) -> tuple[OddSlot, ...]:
    """The odd slots of a machine, given all of its slots in their order."""
    filled = [slot for slot in slots if slot.is_filled]
    if len(filled) < _LEAST:
        return ()
    names = _names(slots)
    numbers = {id(slot): number for number, slot in enumerate(filled)}
    found: list[OddSlot] = []
    for slot, property_, own, usual, others in [*_differing(filled), *_empty(slots)]:
        number = numbers.get(id(slot))
        device = None if number is None else f"memory-{number}"
        found.append(OddSlot(names[id(slot)], slot.socket, slot.channel, device, property_, own, usual, others))
    return tuple(found)


_Odd = tuple[SlotPlace, str, str, str, int]
"""Slot, property, its value, the usual value, number of slots that have that."""


def _ecc_bits(module: MemoryModule) -> int | None:
    if module.total_bits is None or module.data_bits is None or module.total_bits < module.data_bits:
        return None
    return module.total_bits - module.data_bits


_PROPERTIES: tuple[tuple[str, Callable[[MemoryModule], float | str | None], str, bool], ...] = (
    ("size", lambda module: module.size_bytes, "{gib:g} GiB", False),
    ("configured speed", lambda module: module.configured_MTps, "{value:g} MT/s", False),
    ("rated speed", lambda module: module.rated_MTps, "{value:g} MT/s", True),
    ("ranks", lambda module: module.rank, "{value:g}", False),
    ("buffering", lambda module: module.buffering, "{value}", False),
    ("bits for ECC", _ecc_bits, "{value:g}", True),
)
"""Name, value, how it is shown, whether only a lower one matters."""


def _differing(filled: Sequence[SlotPlace]) -> Iterator[_Odd]:
    most = max(1, len(filled) // _MOST_ODD)
    for name, value_of, form, only_lower in _PROPERTIES:
        values = [(slot, value) for slot in filled if (value := value_of(slot.module)) is not None]
        if len(values) < _LEAST:
            continue
        counts = Counter(value for _, value in values)
        usual, times = counts.most_common(1)[0]
        odd = [(slot, value) for slot, value in values if value != usual and counts[value] <= most]
        if only_lower:
            odd = [(slot, value) for slot, value in odd if _is_lower(value, usual)]
        if 0 < len(odd) <= most and times > len(odd):
            for slot, value in odd:
                yield slot, name, _shown(form, value), _shown(form, usual), times


def _is_lower(value: float | str, usual: float | str) -> bool:
    return not isinstance(value, str) and not isinstance(usual, str) and value < usual


def _shown(form: str, value: float | str) -> str:
    gib = 0.0 if isinstance(value, str) else value / GIB
    return form.format(value=value, gib=gib)


def _empty(slots: Sequence[SlotPlace]) -> Iterator[_Odd]:
    """Empty slots that are filled in the other sockets, or in all other channels of their socket."""
    by_socket: dict[str, list[SlotPlace]] = {}
    for slot in slots:
        by_socket.setdefault(slot.socket, []).append(slot)
    gaps = _beside_other_sockets(list(by_socket.values()))
    if not gaps:
        gaps = [gap for own in by_socket.values() for gap in _beside_other_channels(own)]
    filled = sum(slot.is_filled for slot in slots)
    if len(gaps) <= max(1, filled // _MOST_ODD):
        for gap in gaps:
            yield gap, "module", "none", "a module", filled


def _beside_other_sockets(sockets: Sequence[Sequence[SlotPlace]]) -> list[SlotPlace]:
    """The slots that only one socket has empty."""
    if len(sockets) < 2 or len({len(own) for own in sockets}) != 1:
        return []
    gaps: list[SlotPlace] = []
    for alike in zip(*sockets, strict=True):
        empty = [slot for slot in alike if not slot.is_filled]
        if len(empty) == 1:
            gaps += empty
        elif 0 < len(empty) < len(alike):
            return []
    fullest = max(sum(slot.is_filled for slot in own) for own in sockets)
    most = next(own for own in sockets if sum(slot.is_filled for slot in own) == fullest)
    return gaps if _is_even(most) else []


def _is_even(slots: Sequence[SlotPlace]) -> bool:
    """Whether each channel with modules has as many as the others; without channels, whether their number is even."""
    filled = [slot for slot in slots if slot.is_filled]
    if any(slot.channel is None for slot in filled):
        return len(filled) % 2 == 0
    return len(set(Counter(slot.channel for slot in filled).values())) == 1


def _beside_other_channels(slots: Sequence[SlotPlace]) -> list[SlotPlace]:
    """The slots of a channel with fewer modules than all others, at the position where the others have one; without
    channels, the only empty slot."""
    if any(slot.channel is None for slot in slots):
        empty = [slot for slot in slots if not slot.is_filled]
        return empty if len(empty) == 1 and len(slots) > _LEAST else []
    channels: dict[str | None, list[SlotPlace]] = {}
    for slot in slots:
        channels.setdefault(slot.channel, []).append(slot)
    counts = {channel: sum(slot.is_filled for slot in own) for channel, own in channels.items()}
    usual, times = Counter(counts.values()).most_common(1)[0]
    fewer = [channel for channel, number in counts.items() if number < usual]
    if len(fewer) != 1 or times + 1 != len(counts) or times < 2:
        return []
    own = channels.pop(fewer[0])
    filled = ({position for position, slot in enumerate(other) if slot.is_filled} for other in channels.values())
    positions = set.intersection(*filled)
    gaps = [slot for n, slot in enumerate(own) if not slot.is_filled and (n in positions or len(own) == 1)]
    return gaps[: usual - counts[fewer[0]]]


def _names(slots: Sequence[SlotPlace]) -> Mapping[int, str]:
    """How each slot is named: its locator, with the bank locator where several slots have the same one."""
    times = Counter(slot.module.locator for slot in slots)
    named: dict[int, str] = {}
    for number, slot in enumerate(slots):
        locator, bank = slot.module.locator, slot.module.bank
        if times[locator] > 1 and bank:
            named[id(slot)] = f"{locator} ({bank})"
        else:
            named[id(slot)] = locator or f"number {number + 1}"
    return named
