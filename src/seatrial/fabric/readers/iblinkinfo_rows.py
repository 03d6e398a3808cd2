"""The lines of `iblinkinfo`: one for each port, with its rate, states and other end.

Format: infiniband-diags, iblinkinfo(8). Below the name of its switch or adapter, or with it on the same line (`-l`).
"""

from __future__ import annotations

import re

from seatrial.fabric.parts import LinkRate, PartKind, Source
from seatrial.fabric.readers.fields import guid, lanes, port_number, speed_name
from seatrial.model.frozen import Frozen

_ROW = re.compile(
    r"(?:(?P<guid>0x[0-9a-fA-F]+)\s+)?(?P<own>\".*?\"\s+)?(?P<lid>\d{1,6})\s+(?P<port>\d{1,4})\s*\[[\s\d]*\]\s+"
    r"==\(\s*(?P<inside>.*?)\)(?:\s*\(HOQ:[^()]*\))?==>\s*"
    r"(?:(?P<peer_guid>0x[0-9a-fA-F]+)\s+)?(?:(?P<peer_lid>\d{1,6})\s+(?P<peer_port>\d{1,4}))?\s*"
    r"(?:\[[\s\d]*\]\s+\"(?P<peer_name>.*)\"\s*\((?P<could>.*)\)|(?P<unread>\"Port not available\"))\s*\Z",
    re.ASCII,
)
_UNKNOWN = r"undefined \(\d{1,6}\)|\?\?\?"
_SPEED = r"\d{1,4}(?:\.\d{1,6})?\s*Gbps|[A-Z]{2,}\d*"
_NO_SPEED = rf"{_UNKNOWN}|No Extended Speed(?: 2)?|Extended speed"
_INSIDE = re.compile(
    rf"(?:(?P<width>\d{{1,4}}X|{_UNKNOWN})\s*)?"
    rf"(?:(?P<speed>{_SPEED}|{_NO_SPEED})\s+(?P<fdr10>\(FDR10\)\s+)?)?"
    r"(?P<state>[A-Za-z]+)\s*/\s*(?P<physical>[A-Za-z][A-Za-z ]*?)\s*\Z",
    re.ASCII,
)
_COULD_BE = "Could be"
_COULD = re.compile(rf"{_COULD_BE}\s+(?:(?P<width>\d{{1,4}})X|(?P<speed>{_SPEED}))", re.ASCII)
_UP = ("Active", "Armed", "Initialize", "Init")


class Owner(Frozen):
    """The device that a port is on. `kind` is None where the line does not say it; `guid` has 16 hexadecimal digits and
    is that of the port, or for a switch its own."""

    kind: PartKind | None
    name: str
    guid: str
    head: Source


class Peer(Frozen):
    """The other end of a link, as the line names it. `guid` is "" unless the line gives it."""

    lid: int
    port: int
    name: str
    guid: str


class Row(Frozen):
    """One port. `peer` is None without a link, or where the tool could not read the other end (`is_unread`)."""

    owner: Owner
    lid: int
    port: int
    state: str
    physical: str
    rate: LinkRate
    could: LinkRate | None
    peer: Peer | None
    is_unread: bool
    source: Source


def is_row(text: str) -> bool:
    """Whether a line is meant to be that of a port."""
    return "==(" in text or "==>" in text


def read_row(text: str, above: Owner | None, source: Source) -> Row:
    """The port of a line. `above` is the device in whose block it is; its GUID is "" for an adapter. Raises ParseError
    for a damaged line."""
    match = _ROW.match(text)
    if match is None:
        raise source.error("not a port in the form of iblinkinfo")
    inside = _INSIDE.match(match["inside"].strip())
    if inside is None:
        raise source.error(f"{match['inside'].strip()!r} is not the state of a link")
    state = inside["state"]
    if match["peer_lid"] is None and state in _UP and match["unread"] is None:
        raise source.error(f"the link is {state}, but its other end is missing")
    peer: Peer | None = None
    found = _rate(inside, source)
    if match["peer_lid"] is not None and match["unread"] is None:
        peer_guid = guid(match["peer_guid"], source) if match["peer_guid"] is not None else ""
        peer = Peer(int(match["peer_lid"]), port_number(match["peer_port"], source), match["peer_name"], peer_guid)
    return Row(
        owner=_owner(match, above, source),
        lid=int(match["lid"]),
        port=port_number(match["port"], source),
        state=state,
        physical=inside["physical"],
        rate=found,
        could=_could(match["could"], found, source) if peer is not None else None,
        peer=peer,
        is_unread=match["unread"] is not None,
        source=source,
    )


def _owner(match: re.Match[str], above: Owner | None, source: Source) -> Owner:
    own = guid(match["guid"], source) if match["guid"] is not None else ""
    if match["own"] is not None:
        if not own:
            raise source.error("a line of `iblinkinfo -l`, without the GUID of its port")
        return Owner(None, match["own"].strip()[1:-1].strip(), own, source)
    if above is None:
        raise source.error("a port without the name of a switch or adapter above it")
    if above.kind is PartKind.SWITCH:
        return above
    if not own:
        raise source.error("the port of an adapter, without its GUID")
    return Owner(above.kind, above.name, own, above.head)


def _rate(inside: re.Match[str], source: Source) -> LinkRate:
    width, speed = inside["width"] or "", inside["speed"] or ""
    if inside["fdr10"]:  # it is signalled as 10.0 Gbps, like QDR
        speed = "FDR10"
    return LinkRate(
        lanes(width[:-1], source) if width.endswith("X") else None,
        speed_name(speed, source) if re.fullmatch(_SPEED, speed, re.ASCII) else None,
    )


def _could(text: str, rate: LinkRate, source: Source) -> LinkRate:
    """What both ends support. Without a "Could be" it is the rate itself."""
    width, speed = rate.width, rate.speed
    found = list(_COULD.finditer(text))
    if len(found) != text.count(_COULD_BE):
        return LinkRate()
    for match in found:
        width = lanes(match["width"], source) if match["width"] else width
        speed = speed_name(match["speed"], source) if match["speed"] else speed
    return LinkRate(width, speed)
