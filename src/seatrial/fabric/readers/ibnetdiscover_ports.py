"""`ibnetdiscover -p`: a line for each port, with the other end if it is connected.

Format: infiniband-diags, ibnetdiscover(8) `--ports`. Each line is complete in itself, so a part of the list is read;
the switches that have no line of their own are then reported. Adapters are given by the GUIDs of their ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.fabric.parts import DevicePart, FabricDump, PartKind, PortPart, Source
from seatrial.fabric.readers.fields import guid, port_number, rate
from seatrial.fabric.readers.port_guids import Adapters
from seatrial.machine.readers.dump import without_prefix

TOOL = "ibnetdiscover"

_END = r"(?P<kind{0}>CA|SW|RT)\s+\d{{1,6}}\s+(?P<port{0}>\d{{1,4}})\s+(?P<guid{0}>0x[0-9a-fA-F]+)"
_START = re.compile(r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x", re.ASCII)
_LINE = re.compile(
    _END.format(1)
    + r"\s+(?P<width>\d{1,4}x|\?\?)\s+(?P<speed>\S+)\s+"
    + r"(?:-\s+" + _END.format(2) + r"\s+\(\s*'(?P<name1>.*)'\s+-\s+'(?P<name2>.*)'\s*\)|'(?P<name>.*)')\s*\Z",
    re.ASCII,
)  # fmt: skip
_KINDS = {"CA": PartKind.ADAPTER, "SW": PartKind.SWITCH, "RT": PartKind.ROUTER}
_PREFIXES = {"SW": "S", "RT": "R"}


def is_port_line(text: str) -> bool:
    """Whether a line begins as these do."""
    return _START.match(without_prefix(text).lstrip()) is not None


def read_port_lines(lines: Iterable[tuple[str, Source]], missing: str = "") -> FabricDump:
    """The devices and ports of a list. Raises ParseError for the first damaged line."""
    matches: list[tuple[re.Match[str], Source]] = []
    adapters = Adapters()
    for text, source in lines:
        match = _LINE.match(without_prefix(text).strip())
        if match is None:
            raise source.error("not a port in the form of `ibnetdiscover -p`")
        matches.append((match, source))
        for end in (1, 2) if match["kind2"] is not None else (1,):
            if match[f"kind{end}"] == "CA":
                adapters.add(guid(match[f"guid{end}"], source), int(match[f"port{end}"]), _name(match, end))
    devices: list[DevicePart] = []
    ports: list[PortPart] = []
    for match, source in matches:
        own, port = _device(match, 1, adapters, source), port_number(match["port1"], source)
        link = rate(match["width"].rstrip("x"), match["speed"], source)
        devices.append(DevicePart(own, _KINDS[match["kind1"]], _name(match, 1), source))
        if match["kind2"] is None:
            ports.append(PortPart(own, port, source, state="not connected"))
            continue
        other = _device(match, 2, adapters, source)
        devices.append(DevicePart(other, _KINDS[match["kind2"]], _name(match, 2), source, is_described=False))
        ports.append(PortPart(own, port, source, (other, port_number(match["port2"], source)), link))
    return FabricDump(TOOL, devices, ports, is_partial=True, missing=missing)


def _name(match: re.Match[str], end: int) -> str:
    name = match[f"name{end}"]
    return name if name is not None else match["name"]


def _device(match: re.Match[str], end: int, adapters: Adapters, source: Source) -> str:
    own = guid(match[f"guid{end}"], source)
    kind = match[f"kind{end}"]
    return adapters.of(own) if kind == "CA" else f"{_PREFIXES[kind]}-{own}"
