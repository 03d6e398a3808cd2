"""Memory slots unlike the others: a module that differs from most, or an empty slot where the others are filled.

Only few slots can be odd. Where many differ, the population is a design (two capacities, half of the channels), which
`population_rules` judges as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from seatrial.machine.survey import MemoryModule
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import OddSlot

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
    """The slots of a channel with fewer modules than all others, at the place where the others have one; without
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
