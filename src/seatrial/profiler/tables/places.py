"""Call sites that are more than an address: a path of calls, and lines of Python."""

from __future__ import annotations

import struct

from seatrial.model.frozen import Frozen
from seatrial.profiler.call_site import Frame

PLACE = struct.Struct("<QIHH")
"""`struct seatrial_place` of `profiler/native/table_file.h`."""
PLACE_BIT = 1 << 63


class Place(Frozen):
    """`addresses` are the call site and the return addresses of the calls that led to it, innermost first; `python`
    the frames of Python code that did, likewise."""

    addresses: tuple[int, ...]
    python: tuple[Frame, ...]


def parse_places(data: bytes) -> dict[int, Place] | None:
    """The places by the number with which rows refer to them; None if a record is invalid. `data` holds whole records:
    the profiler enlarges their space once a record is complete."""
    found: dict[int, Place] = {}
    at = 0
    while at < len(data):
        if len(data) - at < PLACE.size:
            return None
        key, size, addresses, frames = PLACE.unpack_from(data, at)
        texts = PLACE.size + 8 * addresses
        if not key & PLACE_BIT or size % 8 or size < texts or size > len(data) - at or not addresses:
            return None
        python = _frames(data[at + texts : at + size], frames)
        if python is None:
            return None
        found[key] = Place(struct.unpack_from(f"<{addresses}Q", data, at + PLACE.size), python)
        at += size
    return found


def _frames(text: bytes, count: int) -> tuple[Frame, ...] | None:
    """`count` times "line function", 0, "file", 0."""
    words = text.split(b"\0", 2 * count)
    if len(words) <= 2 * count:
        return None
    found = []
    for head, file in zip(words[0 : 2 * count : 2], words[1 : 2 * count : 2], strict=True):
        line, _, function = head.partition(b" ")
        if not line.lstrip(b"-").isdigit() or len(line) > _MOST_DIGITS:
            return None
        found.append(Frame(function.decode("utf-8", "replace"), file.decode("utf-8", "replace"), max(0, int(line))))
    return tuple(found)


_MOST_DIGITS = 11
