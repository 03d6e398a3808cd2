"""`ethtool INTERFACE`: speed, duplex and autonegotiation of Ethernet interfaces, and the speeds that they support.

Format: ethtool(8). Several interfaces may follow each other.
"""

from __future__ import annotations

import re

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import Line, read_lines
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.machine.machine import DeviceKind

TOOL = "ethtool"

_HEAD = re.compile(r"Settings for (?P<name>[\w.\-]{1,32}):\s*\Z", re.ASCII)
_FIELD = re.compile(r"\s+(?P<key>[A-Za-z][\w \-]{1,40}):\s*(?P<value>.*?)\s*\Z")
_SPEED = re.compile(r"(?P<Mbps>\d{1,7})Mb/s\Z", re.ASCII)
_MODE = re.compile(r"\b(\d{1,7})base[\w]*/(?:Half|Full)", re.ASCII)
_MODES = "Supported link modes"


def read_ethtool(data: bytes, pick: int | None = None) -> Survey:
    """The interfaces as a survey. Raises ParseError."""
    if pick not in (None, 1):
        raise UsageError(f"{TOOL}: there is no dump {pick}: the file is one dump")
    found: dict[str, tuple[Line, dict[str, str]]] = {}
    fields: dict[str, str] | None = None
    last = ""
    for line in read_lines(data, TOOL):
        if match := _HEAD.match(line.text):
            if match["name"] in found:
                raise line.error(TOOL, f"{match['name']} is here a second time: are these two dumps in one file?")
            fields, last = {}, ""
            found[match["name"]] = (line, fields)
        elif fields is not None and (match := _FIELD.match(line.text)):
            last = match["key"]
            if last in fields and last != _MODES:
                raise line.error(TOOL, f"{last} is given twice")
            fields[last] = match["value"]
        elif fields is not None and last == _MODES:  # the list goes on
            fields[_MODES] += f" {line.text.strip()}"
    if not found:
        raise ParseError(TOOL, None, "", "no interface (Settings for eth0:) in the file")
    return Survey(TOOL, named_parts=tuple(_part(name, *each) for name, each in found.items()))


def _part(name: str, line: Line, fields: dict[str, str]) -> NamedPart:
    if "Link detected" not in fields:
        raise line.error(TOOL, f"{name} has no line `Link detected`: was the dump cut off?")
    book = FactBook()
    is_up = fields["Link detected"].startswith("yes")
    speed = _SPEED.match(fields.get("Speed", ""))
    book.say("rate", float(speed["Mbps"]) * 1e6 / 8 if speed else None, TOOL, "B/s", volatile=True)
    book.say("state", "up" if is_up else "down", TOOL, volatile=True)
    duplex = fields.get("Duplex", "").lower()
    book.say("duplex", duplex if duplex in ("full", "half") else None, TOOL, volatile=True)
    book.say("autonegotiation", fields.get("Auto-negotiation"), TOOL)
    modes = [int(speed) for speed in _MODE.findall(fields.get(_MODES, ""))]
    book.say("fastest_rate", max(modes) * 1e6 / 8 if modes else None, TOOL, "B/s")
    return NamedPart(DeviceKind.NIC, name, facts=book.facts())
