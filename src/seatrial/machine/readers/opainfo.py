"""`opainfo` (Omni-Path FastFabric): state, width, speed and quality of each port of one node's adapters.

Format: opainfo(1). A port begins with "<adapter>:<port>"; "Act" is what the link does, "En" what is enabled. Omni-Path
names the speed of a lane by its data rate: 25Gb.
"""

from __future__ import annotations

import re

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import Line, read_lines
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.machine.machine import DeviceKind

TOOL = "opainfo"

_PORT = re.compile(r"\s{0,8}(?P<name>hfi\d{1,2}_\d{1,3}):(?P<port>\d{1,2})\s+PortG(?:ID|UID):", re.ASCII)
_STATE = re.compile(r"\s+PortState:\s+(?P<state>[A-Za-z]+)")
_SPEED = re.compile(
    r"\s+LinkSpeed\s+Act:\s*(?P<act>\d{1,4}(?:\.\d{1,2})?)Gb\s+En:\s*(?P<en>\d{1,4}(?:\.\d{1,2})?)Gb", re.ASCII
)
_WIDTH = re.compile(r"\s+LinkWidth\s+Act:\s*(?P<act>\d{1,2})\s+En:\s*(?P<en>[\d,]{1,20})\s*\Z", re.ASCII)
_QUALITY = re.compile(r"\s+Link Quality:\s*(?P<quality>\d)\b", re.ASCII)


def read_opainfo(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey; the facts of ports after the first begin with "port2_". Raises ParseError."""
    if pick not in (None, 1):
        raise UsageError(f"{TOOL}: there is no dump {pick}: the file is one dump")
    books: dict[str, tuple[FactBook, list[str]]] = {}
    block: list[Line] = []
    for line in read_lines(data, TOOL):
        if _PORT.match(line.text):
            _read_port(block, books)
            block = [line]
        elif block:
            block.append(line)
    _read_port(block, books)
    if not books:
        raise ParseError(TOOL, None, "", "no port in the form of opainfo in the file")
    return Survey(TOOL, named_parts=tuple(NamedPart(DeviceKind.NIC, name, facts=book.facts())
                                          for name, (book, _) in books.items()))  # fmt: skip


def _read_port(block: list[Line], books: dict[str, tuple[FactBook, list[str]]]) -> None:
    head = _PORT.match(block[0].text) if block else None
    if head is None:
        return
    book, ports = books.setdefault(head["name"], (FactBook(), []))
    if head["port"] in ports:
        raise block[0].error(TOOL, f"port {head['port']} of {head['name']} is here a second time")
    prefix = f"port{head['port']}_" if ports else ""
    ports.append(head["port"])
    found = {
        pattern: next((match for line in block if (match := pattern.match(line.text))), None)
        for pattern in (_STATE, _SPEED, _WIDTH, _QUALITY)
    }
    state, speed, width, quality = found.values()
    if state is None:
        raise block[0].error(TOOL, f"port {head['port']} of {head['name']} has no PortState: was the dump cut off?")
    book.say(f"{prefix}state", state["state"].lower(), TOOL, volatile=True)
    if speed is not None and width is not None:
        lane_Bps = float(speed["act"]) * 1e9 / 8
        book.say(f"{prefix}rate", lane_Bps * int(width["act"]) or None, TOOL, "B/s", volatile=True)
        book.say(f"{prefix}link_width", int(width["act"]), TOOL, volatile=True)
        widest = max((int(text) for text in width["en"].split(",") if text), default=0)
        book.say(f"{prefix}enabled_rate", float(speed["en"]) * 1e9 / 8 * widest or None, TOOL, "B/s")
    if quality is not None:
        book.say(f"{prefix}link_quality", int(quality["quality"]), TOOL, "1", volatile=True)
