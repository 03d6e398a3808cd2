"""`iblinkinfo`: for each switch and adapter, a line for each port with rate, states and the other end.

Format: infiniband-diags, iblinkinfo(8). The other end is given by LID, which identifies a switch, or one port of an
adapter. "Could be ..." in the last parentheses is what both ends support where that is more than what they do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, LinkRate, PartKind, PortPart, Source, Text
from seatrial.fabric.readers.fields import guid, lanes, port_number, speed_name
from seatrial.machine.readers.dump import Line, without_prefix

TOOL = "iblinkinfo"

_SWITCH = re.compile(r"Switch:?\s+(?P<guid>0x[0-9a-fA-F]+)\s+(?P<name>.*?):?\s*\Z", re.ASCII)
_ADAPTER = re.compile(r"(?P<kind>CA|Router|RT):\s+(?:(?P<guid>0x[0-9a-fA-F]+)\s+)?(?P<name>.*?):?\s*\Z", re.ASCII)
_PORT = re.compile(
    r"(?:(?P<guid>0x[0-9a-fA-F]+)\s+)?(?P<own>\".*?\"\s+)?(?P<lid>\d{1,6})\s+(?P<port>\d{1,4})\s*\[[\s\d]*\]\s+"
    r"==\(\s*(?P<inside>.*?)\)==>\s+(?P<peer_guid>0x[0-9a-fA-F]+\s+)?"
    r"(?:(?P<peer_lid>\d{1,6})\s+(?P<peer_port>\d{1,4}))?\s*\[[\s\d]*\]\s+"
    r"\"(?P<peer_name>.*)\"\s*\((?P<could>.*)\)\s*\Z",
    re.ASCII,
)
_INSIDE = re.compile(
    r"(?:(?P<width>\d{1,4})X\s+)?(?:(?P<speed>\d{1,4}(?:\.\d{1,6})?\s*Gbps|[A-Z]+\d*)\s+(?:\(FDR10\)\s+)?)?"
    r"(?P<state>[A-Za-z]+)\s*/\s*(?P<physical>[A-Za-z][A-Za-z ]*?)\s*\Z",
    re.ASCII,
)
_COULD = re.compile(r"Could be\s+(?:(?P<width>\d{1,4})X|(?P<speed>\d{1,4}(?:\.\d{1,6})?\s*Gbps|[A-Z]+\d*))", re.ASCII)
_UP = ("Active", "Armed", "Initialize", "Init")
_MANY_PORTS = 2


def read_iblinkinfo(texts: Sequence[Text]) -> FabricDump:
    """The devices, links and ports that are down of a dump, which may be in several files. Raises ParseError for
    damaged text."""
    reader = _Reader()
    for text in texts:
        text.refuse_pick(TOOL)
        for line in text.lines(TOOL):
            reader.read(line, Source.of(TOOL, line, text.name))
    return reader.dump(texts[0].name)


@dataclass
class _Reader:
    devices: dict[str, DevicePart] = field(default_factory=dict)
    _ports: list[tuple[str, int, re.Match[str], Source]] = field(default_factory=list)
    _at_lid: dict[int, tuple[str, int | None, Source]] = field(default_factory=dict)
    """LID -> device, its port (None: any port of a switch), and the line."""
    _open: tuple[PartKind, str, str, Source] | None = None
    """Kind, id (adapters of old versions: "", from their first port) and name of the block."""

    def read(self, line: Line, source: Source) -> None:
        text = without_prefix(line.text).strip()
        if match := _SWITCH.match(text):
            self._begin(PartKind.SWITCH, f"S-{guid(match['guid'], source)}", match["name"], source)
        elif match := _ADAPTER.match(text):
            kind = PartKind.ADAPTER if match["kind"] == "CA" else PartKind.ROUTER
            self._open = (kind, "", match["name"], source)
        elif match := _PORT.match(text):
            self._read_port(match, source)
        elif "==(" in text or "==>" in text:
            raise source.error("not a port in the form of iblinkinfo")

    def _begin(self, kind: PartKind, device: str, name: str, source: Source) -> None:
        if device in self.devices:
            raise source.error(f"{device} is here a second time: are these two dumps in one file?")
        self.devices[device] = DevicePart(device, kind, name, source)
        self._open = (kind, device, name, source)

    def _read_port(self, match: re.Match[str], source: Source) -> None:
        if match["own"] is not None:
            raise source.error("the form of `iblinkinfo -l` is not read: run iblinkinfo without -l")
        if self._open is None:
            raise source.error("a port without the name of a switch or adapter above it")
        kind, device, name, header = self._open
        if not device:
            if match["guid"] is None:
                raise source.error("the port of an adapter, without its GUID")
            prefix = "H" if kind is PartKind.ADAPTER else "R"
            device = f"{prefix}-{guid(match['guid'], source)}"
            self._begin(kind, device, name, header)
        port, lid = port_number(match["port"], source), int(match["lid"])
        self._ports.append((device, port, match, source))
        known = self._at_lid.setdefault(lid, (device, None if kind is PartKind.SWITCH else port, source))
        if lid and known[0] != device:
            raise source.error(f"LID {lid} is also that of {known[0]} on line {known[2].line}")

    def dump(self, file: str) -> FabricDump:
        if not self._ports:
            raise ParseError(TOOL, None, "", "no port in the form of iblinkinfo in the file", file)
        has_adapters = any(device.kind is not PartKind.SWITCH for device in self.devices.values())
        unnamed: dict[int, set[int]] = {}
        ports = [self._port(*found, unnamed, has_adapters) for found in self._ports]
        return FabricDump(TOOL, list(self.devices.values()), ports, is_partial=not has_adapters)

    def _port(
        self, device: str, port: int, match: re.Match[str], source: Source, seen: dict[int, set[int]], whole: bool
    ) -> PortPart:
        inside = _INSIDE.match(match["inside"].strip())
        if inside is None:
            raise source.error(f"{match['inside'].strip()!r} is not the state of a link")
        state, physical = inside["state"], inside["physical"]
        width = lanes(inside["width"], source) if inside["width"] else None
        speed = speed_name(inside["speed"], source) if inside["speed"] else None
        if match["peer_lid"] is None:
            if state in _UP:
                raise source.error(f"the link is {state}, but its other end is missing")
            return PortPart(device, port, source, state=state, physical=physical)
        found = LinkRate(width, speed)
        peer = self._peer(int(match["peer_lid"]), port_number(match["peer_port"], source), match, source, seen, whole)
        return PortPart(device, port, source, peer, found, _could(match["could"], found, source), state, physical)

    def _peer(
        self, lid: int, port: int, match: re.Match[str], source: Source, seen: dict[int, set[int]], whole: bool
    ) -> tuple[str, int]:
        if known := self._at_lid.get(lid):
            if known[1] not in (None, port):
                raise source.error(f"LID {lid} is port {known[1]} of {known[0]}, not port {port}")
            return known[0], port
        used = seen.setdefault(lid, set())
        used.add(port)
        if whole or len(used) > 1 or port > _MANY_PORTS:
            what = "switch" if len(used) > 1 or port > _MANY_PORTS else "device"
            raise source.error(f"the {what} with LID {lid} is missing: the dump is incomplete")
        device = f"lid-{lid}"
        self.devices.setdefault(
            device, DevicePart(device, PartKind.ADAPTER, match["peer_name"], source, is_described=False)
        )
        return device, port


def _could(text: str, rate: LinkRate, source: Source) -> LinkRate | None:
    """What both ends support. Without a "Could be" it is the rate itself; None if the text is something else."""
    width, speed = rate.width, rate.speed
    for match in _COULD.finditer(text):
        width = lanes(match["width"], source) if match["width"] else width
        speed = speed_name(match["speed"], source) if match["speed"] else speed
    return LinkRate(width, speed)
