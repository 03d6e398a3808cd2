"""Names of memory slots that say themselves which socket and channel they belong to.

Only names that NAME the channel are read here. Names whose numbering is the vendor's own (Dell A1-A12, HPE "PROC 1 DIMM
3", Supermicro "P1-DIMMA1", Lenovo "DIMM 3") need tables by product: those come with the population rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a slot is; None where its name does not say. `channel` is unique within a socket."""

    socket: int | None
    channel: str | None


_RULES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        # Bank locator of AMD's reference firmware (AGESA): "P0 CHANNEL A", "P1_Node0_Channel3_Dimm0".
        r"P(?:ROC)?(?P<socket>\d)[ _-]+CHANNEL[ _-]*(?P<channel>[A-P])\b",
        # Bank locator of Intel's reference firmware: "P0_Node1_Channel2_Dimm0", "NODE 1 CHANNEL 0 DIMM 1".
        r"(?:P(?P<socket>\d)[ _])?(?P<channel>NODE[ _]?\d+[ _]CHANNEL[ _]?\d+)[ _]DIMM[ _]?\d+",
        # Client boards: "ChannelA-DIMM0", "Controller0-ChannelB".
        r"(?P<channel>(?:CONTROLLER ?\d+-)?CHANNEL ?[A-P0-9])(?:[-_ ]DIMM ?\d+)?\Z",
        # Intel server boards and those that follow them: "CPU1_DIMM_A1" (Intel S2600 family, Technical Product
        # Specification, memory slot identification: the letter is the channel, the digit the slot in it).
        r"CPU(?P<socket>\d)_DIMM_(?P<channel>[A-P])\d\Z",
    )
)

# The socket alone: "PROC 1 DIMM 3", "P1-DIMMA1", bank locator "CPU 1".
_SOCKET = re.compile(r"(?:^|[ _])(?:CPU|PROC|SOCKET|P)[ _-]?(?P<socket>\d)(?=[ _-]|\Z)", re.IGNORECASE | re.ASCII)


def read_place(locator: str, bank: str) -> Place:
    """Socket and channel that the locator or else the bank locator of a slot names. Never fails."""
    socket: int | None = None
    for text in (bank, locator):
        for rule in _RULES:
            match = rule.search(text.strip())
            if match is not None:
                named = match.groupdict().get("socket")
                channel = re.sub(r"[ _-]+", " ", match["channel"].upper())
                return Place(int(named) if named is not None else socket, channel)
        alone = _SOCKET.search(text.strip())
        socket = int(alone["socket"]) if alone is not None and socket is None else socket
    return Place(socket, None)
