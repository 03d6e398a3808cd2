"""`ibnetdiscover -p`: a line for each port, with the other end if it is connected.

Format: infiniband-diags, ibnetdiscover(8) `--ports`. Each line is complete in itself, so a part of the list is read;
the switches that have no line of their own are then reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.fabric.parts import DevicePart, FabricDump, PartKind, PortPart, Source
from seatrial.fabric.readers.fields import guid, port_number, rate
from seatrial.machine.readers.dump import without_prefix

TOOL = "ibnetdiscover"

_END = r"(?P<kind{0}>CA|SW|RT)\s+\d{{1,6}}\s+(?P<port{0}>\d{{1,4}})\s+(?P<guid{0}>0x[0-9a-fA-F]+)"
_START = re.compile(r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x", re.ASCII)
_LINE = re.compile(
    _END.format(1)
    + r"\s+(?P<width>\d{1,4})x\s+(?P<speed>\S+)\s+"
    + r"(?:-\s+" + _END.format(2) + r"\s+\(\s*'(?P<name1>.*)'\s+-\s+'(?P<name2>.*)'\s*\)|'(?P<name>.*)')\s*\Z",
    re.ASCII,
)  # fmt: skip
_KINDS = {"CA": PartKind.ADAPTER, "SW": PartKind.SWITCH, "RT": PartKind.ROUTER}
_PREFIXES = {"CA": "H", "SW": "S", "RT": "R"}


def is_port_line(text: str) -> bool:
    """Whether a line begins as these do."""
    return _START.match(without_prefix(text).lstrip()) is not None


def read_port_lines(lines: Iterable[tuple[str, Source]]) -> FabricDump:
    """The devices and ports of a list. Raises ParseError for the first damaged line."""
    devices: list[DevicePart] = []
    ports: list[PortPart] = []
    for text, source in lines:
        match = _LINE.match(without_prefix(text).strip())
        if match is None:
            raise source.error("not a port in the form of `ibnetdiscover -p`")
        width_speed = rate(match["width"], match["speed"], source)
        own, port = _device(match, 1, source), port_number(match["port1"], source)
        name = match["name"] if match["name"] is not None else match["name1"]
        devices.append(DevicePart(own, _KINDS[match["kind1"]], name, source))
        if match["kind2"] is None:
            ports.append(PortPart(own, port, source, state="not connected"))
            continue
        other = _device(match, 2, source)
        devices.append(DevicePart(other, _KINDS[match["kind2"]], match["name2"], source, is_described=False))
        ports.append(PortPart(own, port, source, (other, port_number(match["port2"], source)), width_speed))
    return FabricDump(TOOL, devices, ports, is_partial=True)


def _device(match: re.Match[str], end: int, source: Source) -> str:
    return f"{_PREFIXES[match[f'kind{end}']]}-{guid(match[f'guid{end}'], source)}"
