"""Fields that the tools of infiniband-diags have in common."""

from __future__ import annotations

from seatrial.fabric.parts import LinkRate, Source
from seatrial.fabric.rates import SIGNALLING, UNKNOWN_SPEED, UNKNOWN_WIDTH, WIDTHS, LANE_bps

MAX_PORT = 255
"""A port number has one byte (InfiniBand Architecture Specification, PortNum)."""


def port_number(text: str, source: Source) -> int:
    """A port. Raises ParseError for a number that no device has."""
    number = int(text)
    if number > MAX_PORT:
        raise source.error(f"port {text}: there are at most {MAX_PORT} ports on a device")
    return number


def guid(text: str, source: Source) -> str:
    """A GUID as 16 hexadecimal digits. Raises ParseError if it is longer."""
    digits = text.lower().removeprefix("0x")
    if not 1 <= len(digits) <= 16:
        raise source.error(f"{text} is not a GUID of 16 hexadecimal digits")
    return digits.zfill(16)


def lanes(text: str, source: Source) -> int:
    """A link width, without its x. Raises ParseError for one that InfiniBand does not have."""
    if not text.isdecimal() or int(text[:4]) not in WIDTHS:
        raise source.error(f"{text}x is not a width of a link")
    return int(text)


def speed_name(text: str, source: Source) -> str | None:
    """The name of a lane's speed, from the name or from its signalling rate ("25.78125 Gbps"); None for "???".

    Raises ParseError for any other text.
    """
    if text == UNKNOWN_SPEED:
        return None
    name = SIGNALLING.get(text.removesuffix("Gbps").strip()) if text.endswith("Gbps") else text
    if name not in LANE_bps:
        raise source.error(f"{text!r} is not a speed of a link")
    return name


def rate(width: str, speed: str, source: Source) -> LinkRate:
    """Lanes ("??": unknown) and speed of a link."""
    return LinkRate(None if width == UNKNOWN_WIDTH else lanes(width, source), speed_name(speed, source))
