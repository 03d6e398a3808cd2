"""Names of memory slots -> the socket and the channel in them.

Only names that contain the channel are parsed here. Names with vendor-specific numbering (Dell A1-A12, HPE "PROC 1 DIMM
3", Lenovo "DIMM 3") contain at most a socket; their channels come from `seatrial.machine.slots`.

Which name of a slot to use (locator or bank locator) is decided for the whole table: firmware leaves the bank locator
of empty slots blank ("NO DIMM"), counts sockets from 0 in one and from 1 in the other, and on some boards gives every
slot the same one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from seatrial.model.frozen import Frozen


class SlotPosition(Frozen):
    """The position of a slot; None if its name does not contain it. `channel` is unique within a socket."""

    socket: int | None
    channel: str | None


def _rules(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.ASCII) for pattern in patterns)


_BANK_RULES = _rules(
    # AMD's reference firmware (AGESA): "P0 CHANNEL A".
    r"P(?:ROC)?(?P<socket>\d)[ _-]+CHANNEL[ _-]*(?P<channel>[A-P])\b",
    # Intel's reference firmware: "P0_Node1_Channel2_Dimm0" (a node is a memory controller, or the socket again).
    r"\AP(?P<socket>\d)[ _](?P<channel>NODE[ _]?\d+[ _]CHANNEL[ _]?\d+)[ _]DIMM[ _]?\d+",
    # Huawei, Quanta: "_Node0_Channel0_Dimm0", and "SOCKET 0 CHANNEL 0 DIMM 0": the node is the socket.
    r"\A(?:_NODE|SOCKET[ _])(?P<socket>\d)[ _](?P<channel>CHANNEL[ _]?\d+)[ _]DIMM[ _]?\d+",
    # Without a socket (Cisco: the node is the socket; elsewhere a controller): "NODE 1 CHANNEL 0 DIMM 1".
    r"(?P<channel>NODE[ _]?\d+[ _]CHANNEL[ _]?\d+)[ _]DIMM[ _]?\d+",
    r"\A(?P<channel>(?:CONTROLLER ?\d+-)?CHANNEL ?[A-P0-9])(?:[-_ ]DIMM ?\d+)?\Z",
)
_LOCATOR_RULES = _rules(
    # Client boards: "ChannelA-DIMM0", "Controller0-ChannelB".
    r"\A(?P<channel>(?:CONTROLLER ?\d+-)?CHANNEL ?[A-P0-9])(?:[-_ ]DIMM ?\d+)?\Z",
    # Intel server boards (S2600 and M50CYP families, Technical Product Specification, "DIMM slot identification"): the
    # letter is the channel, the digit the slot in it. Supermicro ("P1-DIMMA1", motherboard manuals, "Memory support"),
    # ASRock Rack and Gigabyte ("P1_DIMM_A1", "DIMM_P0_A0") use the same form.
    r"\A(?:CPU|P|PROC)[ _]?(?P<socket>\d)[-_ ]DIMM[-_ ]?(?P<channel>[A-P])\d\Z",
    r"\ADIMM_P(?P<socket>\d)_(?P<channel>[A-P])\d\Z",
    # Quanta, Hitachi "CPU0_A0"; Inspur "CPU0_C0D0" (channel 0, slot 0).
    r"\ACPU(?P<socket>\d)_(?P<channel>[A-P])\d\Z",
    r"\ACPU(?P<socket>\d)_(?P<channel>C\d{1,2})D\d\Z",
    r"\ACPU(?P<socket>\d)[ _]CH(?:ANNEL)?[ _]?(?P<channel>[A-P]|\d{1,2})[ _]?D(?:IMM)?[ _]?\d\Z",
    # Tyan: "P0_MC0_DIM_CH_A0", "P0_D1_UMC0_CH_A1".
    r"\AP(?P<socket>\d)_(?:D\d_)?U?MC\d{1,2}_(?:DIM_)?CH_(?P<channel>[A-P])\d\Z",
)
# Boards of one or two sockets whose letters continue across the sockets: ASUS "DIMM_A1", Supermicro "DIMMA1", Fujitsu
# "DIMM-1A" (to "DIMM-1X" with two sockets of 12 channels). Dell used the same form with a letter for the SOCKET: see
# `_letters_are_sockets`.
_LETTER_RULES = _rules(
    r"\ADIMM[-_ ]?(?P<channel>[A-X])(?P<slot>\d{1,2})\Z", r"\ADIMM[- ](?P<slot>\d)(?P<channel>[A-X])\Z"
)

# Dell PowerEdge: "A1" .. "B16" (11th generation: "DIMM_A1"): the letter is the processor, A is the first.
_SOCKET_LETTER = re.compile(r"(?:DIMM[_ ]?)?(?P<socket>[A-H])(?P<slot>[1-9]\d?)\Z", re.ASCII)

# The socket alone: "PROC 1 DIMM 3", "P1-DIMMA1", bank locator "CPU 1", "Primary Main Board/CPU 0".
_SOCKET = re.compile(r"(?:^|[ _/])(?:CPU|PROC|SOCKET|P)[ _-]?(?P<socket>\d)(?=[ _-]|\Z)", re.IGNORECASE | re.ASCII)

_MOST_SLOTS_OF_A_CHANNEL = 3
_LONGEST = 200


def read_places(slots: Sequence[tuple[str, str, bool]]) -> tuple[SlotPosition, ...]:
    """The positions of all slots of a machine, given as (locator, bank locator, whether a module is installed), in
    order.

    All socket numbers come from one of the two names, and so do all channels. Names that give two modules the same
    slot are not used. Never fails.
    """
    locators = tuple(locator.strip()[:_LONGEST] for locator, _, _ in slots)
    banks = tuple(bank.strip()[:_LONGEST] for _, bank, _ in slots)
    filled = tuple(is_filled for _, _, is_filled in slots)
    by_locator = _locator_places(locators)
    by_bank = tuple(_first(_BANK_RULES, bank) or SlotPosition(_socket(bank), None) for bank in banks)
    if not _is_unique(locators, banks, filled):
        by_bank = tuple(SlotPosition(place.socket, None) for place in by_bank)
    sockets = _chosen([p.socket for p in by_locator], [p.socket for p in by_bank], filled)
    channels = _chosen([p.channel for p in by_locator], [p.channel for p in by_bank], filled)
    return tuple(SlotPosition(socket, channel) for socket, channel in zip(sockets, channels, strict=True))


def _first(rules: Sequence[re.Pattern[str]], text: str) -> SlotPosition | None:
    for rule in rules:
        match = rule.search(text)
        if match is not None:
            named = match.groupdict().get("socket")
            return SlotPosition(
                int(named) if named is not None else None, re.sub(r"[ _-]+", " ", match["channel"].upper())
            )
    return None


def _socket(text: str) -> int | None:
    alone = _SOCKET.search(text)
    return int(alone["socket"]) if alone is not None else None


def _locator_places(locators: Sequence[str]) -> tuple[SlotPosition, ...]:
    lettered = [_SOCKET_LETTER.match(text) for text in locators]
    if locators and all(lettered) and _letters_are_sockets(locators, [m for m in lettered if m]):
        return tuple(SlotPosition(ord(match["socket"]) - ord("A") + 1, None) for match in lettered if match)
    places = [_first(_LOCATOR_RULES, text) for text in locators]
    letters = [next((m for rule in _LETTER_RULES if (m := rule.match(text))), None) for text in locators]
    most = Counter(match["channel"] for match in letters if match).most_common(1)
    if not most or most[0][1] > _MOST_SLOTS_OF_A_CHANNEL:
        letters = [None] * len(locators)
    return tuple(
        place or (SlotPosition(None, letter["channel"]) if letter else SlotPosition(_socket(text), None))
        for place, letter, text in zip(places, letters, locators, strict=True)
    )


def _letters_are_sockets(locators: Sequence[str], matches: Sequence[re.Match[str]]) -> bool:
    """Whether these letters count sockets: no "DIMM" before them, or more slots per letter than a channel can have."""
    if not any(text.upper().startswith("DIMM") for text in locators):
        return True
    return max(Counter(match["socket"] for match in matches).values()) > _MOST_SLOTS_OF_A_CHANNEL


def _is_unique(locators: Sequence[str], banks: Sequence[str], filled: Sequence[bool]) -> bool:
    """Whether the bank locators that name a DIMM of a channel are unique."""
    named = [
        bank.upper() for bank, is_filled in zip(banks, filled, strict=True) if is_filled and "DIMM" in bank.upper()
    ]
    both = [(loc, bank) for loc, bank, is_filled in zip(locators, banks, filled, strict=True) if is_filled and bank]
    return len(set(named)) == len(named) and len(set(both)) == len(both)


_Named = TypeVar("_Named", int, str)


def _chosen(
    by_locator: Sequence[_Named | None], by_bank: Sequence[_Named | None], filled: Sequence[bool]
) -> Sequence[_Named | None]:
    """The first of both with a value for every slot, else with one for every module, else no values."""
    for values in (by_locator, by_bank):
        if None not in values:
            return values
    for values in (by_locator, by_bank):
        if any(filled) and all(value is not None for value, is_filled in zip(values, filled, strict=True) if is_filled):
            return values
    return [None] * len(filled)
