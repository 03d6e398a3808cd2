"""`iblinkinfo`: for each switch and adapter, a line for each port with rate, states and the other end.

Format: infiniband-diags, iblinkinfo(8). The other end is given by LID, which identifies a switch, or one port of an
adapter; `iblinkinfo -l` gives its GUID too. "Could be ..." in the last parentheses is what both ends support where that
is more than what they do. The line of a port is below the name of its switch or adapter, or has it (`-l`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, FabricSource, FabricText, LinkRate, PartKind, PortPart
from seatrial.fabric.readers.infiniband import (
    Adapters,
    ToolMessages,
    guid,
    is_switch_name,
    lanes,
    port_number,
    speed_name,
)
from seatrial.machine.readers.dump import Line, without_prefix
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
    head: FabricSource


class Peer(Frozen):
    """The other end of a link, as the line names it. `guid` is "" unless the line gives it."""

    lid: int
    port: int
    name: str
    guid: str


class LinkRow(Frozen):
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
    source: FabricSource


def is_row(text: str) -> bool:
    """Whether a line is meant to be that of a port."""
    return "==(" in text or "==>" in text


def read_row(text: str, above: Owner | None, source: FabricSource) -> LinkRow:
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
    return LinkRow(
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


def _owner(match: re.Match[str], above: Owner | None, source: FabricSource) -> Owner:
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


def _rate(inside: re.Match[str], source: FabricSource) -> LinkRate:
    width, speed = inside["width"] or "", inside["speed"] or ""
    if inside["fdr10"]:  # it is signalled as 10.0 Gbps, like QDR
        speed = "FDR10"
    return LinkRate(
        lanes(width[:-1], source) if width.endswith("X") else None,
        speed_name(speed, source) if re.fullmatch(_SPEED, speed, re.ASCII) else None,
    )


def _could(text: str, rate: LinkRate, source: FabricSource) -> LinkRate:
    """What both ends support. Without a "Could be" it is the rate itself."""
    width, speed = rate.width, rate.speed
    found = list(_COULD.finditer(text))
    if len(found) != text.count(_COULD_BE):
        return LinkRate()
    for match in found:
        width = lanes(match["width"], source) if match["width"] else width
        speed = speed_name(match["speed"], source) if match["speed"] else speed
    return LinkRate(width, speed)


TOOL = "iblinkinfo"

_SWITCH = re.compile(r"Switch:?\s+(?P<guid>0x[0-9a-fA-F]+)(?P<name>(?:[\s:].*)?)\Z", re.ASCII)
_ADAPTER = re.compile(r"(?P<kind>CA|Router|RT):\s+(?:0x[0-9a-fA-F]+\s+)?(?P<name>.*)\Z", re.ASCII)
_MANY_PORTS = 2
_MOST_NAMED = 5
_NO_LIDS = (0, 0xFFFF)  # LIDs of ports that no subnet manager has brought into service.


def read_iblinkinfo(texts: Sequence[FabricText]) -> FabricDump:
    """The devices, links and ports that are down of a dump, which may be in several files. Raises ParseError for
    damaged text."""
    reader = _Reader()
    for text in texts:
        text.refuse_pick(TOOL)
        for line in text.lines(TOOL):
            reader.read(line, FabricSource.of(TOOL, line, text.name))
    return reader.dump(texts[0].name)


class _Reader(Struct):
    messages: ToolMessages = field(default_factory=ToolMessages)
    _rows: list[LinkRow] = []
    _switches: dict[str, Owner] = {}  # GUID -> switch whose block has begun.
    _open: Owner | None = None

    def read(self, line: Line, source: FabricSource) -> None:
        text = without_prefix(line.text).strip()
        if match := _SWITCH.match(text):
            self._begin(Owner(PartKind.SWITCH, _name(match), guid(match["guid"], source), source))
        elif match := _ADAPTER.match(text):
            kind = PartKind.ADAPTER if match["kind"] == "CA" else PartKind.ROUTER
            self._begin(Owner(kind, _name(match), "", source))
        elif is_row(text):
            self._rows.append(read_row(text, self._open, source))
        else:
            self.messages.take(text, source)

    def _begin(self, owner: Owner | None) -> None:
        """Begin the block of a device, or none. The last one must have had a port."""
        if self._open is not None and not (self._rows and self._rows[-1].owner.head == self._open.head):
            raise self._open.head.error("no port below the name of this device: is a part of the dump missing?")
        self._open = owner
        if owner is not None and owner.kind is PartKind.SWITCH:
            if owner.guid in self._switches:
                raise _twice(f"S-{owner.guid}", owner.head)
            self._switches[owner.guid] = owner

    def dump(self, file: str) -> FabricDump:
        if not self._rows:
            raise ParseError(TOOL, None, "", "no port in the form of iblinkinfo in the file", file)
        self._begin(None)
        devices = _Devices(self._switches.values(), self._rows)
        kinds = {part.kind for part in devices.parts.values()}
        if PartKind.SWITCH in kinds and not any(row.peer is not None or row.is_unread for row in self._rows):
            raise self._rows[0].source.error(
                "no port in the dump is connected, but switches are found through links: give the output of iblinkinfo "
                "without -d"
            )
        is_partial = kinds == {PartKind.SWITCH}
        ports = [_port(row, device, devices, is_partial) for row, device in devices.rows if not row.is_unread]
        gaps = _gaps(devices)
        lists_down = any(row.peer is None and not row.is_unread for row in self._rows)  # else they were left out
        return FabricDump(
            TOOL,
            list(devices.parts.values()),
            ports,
            is_partial=is_partial,
            missing=self._missing() or (gaps if lists_down else ""),
            notes=[gaps] if gaps and not lists_down else [],
        )

    def _missing(self) -> str:
        unread = [row for row in self._rows if row.is_unread]
        if not unread:
            return self.messages.missing
        first = f"port {unread[0].port} of {unread[0].owner.name}, line {unread[0].source.line}"
        return (
            f"{len(unread)} connected ports whose other end did not answer, the first {first}: their links are missing"
        )


class _Devices:
    """The devices of the lines, and later those that only other ends name."""

    def __init__(self, switches: Iterable[Owner], rows: Sequence[LinkRow]) -> None:
        self.parts: dict[str, DevicePart] = {}
        self.rows: list[tuple[LinkRow, str]] = []
        """Each with the id of its device."""
        self._at_guid: dict[str, tuple[str, int | None]] = {}
        self._at_lid: dict[int, tuple[str, int | None, FabricSource]] = {}
        """GUID or LID -> device, its port (None: any port of a switch), and the line."""
        self._by_ends: dict[tuple[str, int, str, int], set[str]] = {}
        """Names and ports of both ends of a link -> devices at the first."""
        self._adapters = Adapters()
        self._undescribed: dict[int | str, set[int]] = {}
        """LID, or GUID without one -> ports that others are connected to."""
        for owner in switches:
            self._add(f"S-{owner.guid}", PartKind.SWITCH, owner)
        self._name(rows)
        for row, device in self.rows:
            self._place(row, device)
            if row.peer is not None:
                ends = (row.owner.name, row.port, row.peer.name, row.peer.port)
                self._by_ends.setdefault(ends, set()).add(device)

    def _add(self, device: str, kind: PartKind, owner: Owner) -> None:
        known = self.parts.setdefault(device, DevicePart(device, kind, owner.name, owner.head))
        if (known.kind, known.name) != (kind, owner.name) or (owner.kind is not None and known.source != owner.head):
            raise _twice(device, owner.head)

    def _name(self, rows: Sequence[LinkRow]) -> None:
        switches = _switches_of_lines(rows)
        of_block: dict[FabricSource, str] = {}
        for row in rows:
            if row.owner.kind is None and row.owner.guid not in switches:
                self._adapters.add(row.owner.guid, row.port, row.owner.name)
            if row.peer is not None and row.peer.guid:
                self._adapters.add(row.peer.guid, row.peer.port, row.peer.name)
        for row in rows:
            owner = row.owner
            kind = owner.kind or (PartKind.SWITCH if owner.guid in switches else PartKind.ADAPTER)
            if kind is PartKind.SWITCH:
                device = f"S-{owner.guid}"
            elif owner.kind is None:
                device = self._adapters.of(owner.guid)
            else:  # named by the first port of its block
                prefix = "H" if kind is PartKind.ADAPTER else "R"
                device = of_block.setdefault(owner.head, f"{prefix}-{owner.guid}")
            self.rows.append((row, device))
            self._add(device, kind, owner)

    def _place(self, row: LinkRow, device: str) -> None:
        port = None if self.parts[device].kind is PartKind.SWITCH else row.port
        self._at_guid.setdefault(row.owner.guid, (device, port))
        if row.lid not in _NO_LIDS:
            known = self._at_lid.setdefault(row.lid, (device, port, row.source))
            if known[0] != device:
                raise row.source.error(f"LID {row.lid} is also that of {known[0]} on line {known[2].line}")

    def peer(self, row: LinkRow, peer: Peer, is_partial: bool) -> tuple[str, int]:
        """The device and port at the other end. Raises ParseError if it should have its own lines."""
        device, port = self._at_guid.get(peer.guid, (None, None))
        if known := self._at_lid.get(peer.lid):
            if device not in (None, known[0]):
                raise row.source.error(f"LID {peer.lid} is {known[0]} on line {known[2].line}, the GUID is {device}")
            device, port = known[:2]
        if device is None and peer.lid in _NO_LIDS and not peer.guid:
            device, port = self._by_name(row, peer), None
        if device is not None:
            if port not in (None, peer.port):
                raise row.source.error(f"LID {peer.lid} is port {port} of {device}, not port {peer.port}")
            return device, peer.port
        used = self._undescribed.setdefault(peer.guid if peer.lid in _NO_LIDS else peer.lid, set())
        used.add(peer.port)
        is_switch = len(used) > 1 or peer.port > _MANY_PORTS
        if not is_partial or is_switch:
            what = "switch" if is_switch else "device"
            raise row.source.error(f"the {what} with LID {peer.lid} is missing: the dump is incomplete")
        device = self._adapters.of(peer.guid) if peer.guid else f"lid-{peer.lid}"
        self.parts.setdefault(device, DevicePart(device, PartKind.ADAPTER, peer.name, row.source, is_described=False))
        return device, peer.port

    def _by_name(self, row: LinkRow, peer: Peer) -> str:
        """The only device with the name and port that the line gives, whose own line gives these of the row."""
        found = self._by_ends.get((peer.name, peer.port, row.owner.name, row.port), set())
        if len(found) != 1:
            raise row.source.error(
                f"LID {peer.lid} is not assigned (no subnet manager has run), and {len(found)} devices have that name: "
                "`iblinkinfo -l` gives the GUIDs"
            )
        return next(iter(found))


def _switches_of_lines(rows: Sequence[LinkRow]) -> set[str]:
    """GUIDs of the switches among lines that do not say what they are on: all ports of a switch have its GUID."""
    ports: dict[str, set[int]] = {}
    for row in rows:
        ports.setdefault(row.owner.guid, set()).add(row.port)
        if row.peer is not None and row.peer.guid:
            ports.setdefault(row.peer.guid, set()).add(row.peer.port)
    lines = {row.owner.guid: row.owner.name for row in rows if row.owner.kind is None}
    return {
        guid
        for guid, name in lines.items()
        if len(ports[guid]) > 1 or max(ports[guid]) > _MANY_PORTS or is_switch_name(name)
    }


def _gaps(devices: _Devices) -> str:
    """What to know of switches with ports that are not listed: the tool lists all, whether they are up or down. "" if
    there are none."""
    ports: dict[str, set[int]] = {}
    for row, device in devices.rows:
        ports.setdefault(device, set()).add(row.port)
    gaps = {
        device: sorted(set(range(1, max(listed))) - listed)
        for device, listed in ports.items()
        if devices.parts[device].kind is PartKind.SWITCH
    }
    found = [f"{devices.parts[device].name} port {missing[0]}" for device, missing in gaps.items() if missing]
    if not found:
        return ""
    some = f"{', '.join(found[:_MOST_NAMED])}{', ...' if len(found) > _MOST_NAMED else ''}"
    return f"{sum(map(len, gaps.values()))} ports of switches have no line (the first: {some}): they may have links"


def _port(row: LinkRow, device: str, devices: _Devices, is_partial: bool) -> PortPart:
    if row.peer is None:
        return PortPart(device, row.port, row.source, state=row.state, physical=row.physical)
    peer = devices.peer(row, row.peer, is_partial)
    return PortPart(device, row.port, row.source, peer, row.rate, row.could, row.state, row.physical)


def _name(match: re.Match[str]) -> str:
    return match["name"].strip().removesuffix(":").rstrip()


def _twice(device: str, source: FabricSource) -> ParseError:
    return source.error(f"{device} is here a second time: are these two dumps in one file?")
