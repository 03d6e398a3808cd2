"""`ibstat` (infiniband-diags): the adapters of one node, with type, firmware, and rate and state of each port.

Format: ibstat(8). Rates are in Gbit/s, as in sysfs. GUIDs and LIDs are not read.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.machine.readers.dump import Line, read_lines, without_prefix
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.machine.machine import DeviceKind

TOOL = "ibstat"

_CA = re.compile(r"(?:CA|iWARP RNIC|Switch|Router|\?\?\?) '(?P<name>[\w.\-]{1,64})'\s*\Z", re.ASCII)
_PORT = re.compile(r"Port (?P<number>\d{1,3}):\s*\Z", re.ASCII)
_FIELD = re.compile(r"(?P<key>(?:iWARP |[A-Z])[A-Za-z ]{2,40}):(?:\s+(?P<value>\S.*?))?\s*\Z")
_RATE = re.compile(r"(\d{1,4}(?:\.\d)?)(?:\s.*)?\Z", re.ASCII)
_WHOLE = re.compile(r"\d{1,3}\Z", re.ASCII)


class _Adapter(Struct):
    line: Line
    name: str
    fields: dict[str, str] = {}
    ports: dict[int, dict[str, str]] = {}


def read_ibstat(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey. Raises ParseError for damaged or incomplete text."""
    if pick not in (None, 1):
        raise UsageError(f"{TOOL}: there is no dump {pick}: the file is one dump")
    lines = read_lines(data, TOOL)
    adapters = _adapters(lines)
    if not adapters:
        raise lines[0].error(TOOL, "no CA '...' in the file") if lines else UsageError(f"{TOOL}: the file is empty")
    return Survey(TOOL, named_parts=tuple(map(_part, adapters)))


def _adapters(lines: tuple[Line, ...]) -> list[_Adapter]:
    found: dict[str, _Adapter] = {}
    adapter: _Adapter | None = None
    fields: dict[str, str] = {}
    for line in lines:
        text = without_prefix(line.text).strip()
        if match := _CA.match(text):
            if match["name"] in found:
                raise line.error(TOOL, f"{match['name']} is here a second time: are these two dumps in one file?")
            adapter = found[match["name"]] = _Adapter(line, match["name"])
            fields = adapter.fields
        elif adapter is not None and (match := _PORT.match(text)):
            if int(match["number"]) in adapter.ports:
                raise line.error(TOOL, f"port {match['number']} of {adapter.name} is here a second time")
            fields = adapter.ports[int(match["number"])] = {}
        elif adapter is not None and (match := _FIELD.match(text)):
            if fields.setdefault(match["key"], match["value"] or "") != (match["value"] or ""):
                raise line.error(TOOL, f"{match['key']} is given twice for {adapter.name}")
        elif text.startswith(("CA ", "iWARP RNIC ", "Port ")) and ("'" in text or text.endswith(":")):
            raise line.error(TOOL, "not an adapter or port in the form of ibstat")
    for each in found.values():
        _check(each)
    return list(found.values())


def _check(adapter: _Adapter) -> None:
    """Raise ParseError for an adapter that is not complete."""
    stated = adapter.fields.get("Number of ports", "")
    if not _WHOLE.match(stated) or int(stated) != len(adapter.ports):
        raise adapter.line.error(TOOL, f"{len(adapter.ports)} of {stated or '?'} ports of {adapter.name}: incomplete")
    for number, port in adapter.ports.items():
        missing = [key for key in ("State", "Physical state", "Rate") if not port.get(key)]
        if missing or not _RATE.match(port["Rate"]):
            what = f"{missing[0]} is missing" if missing else f"the rate is {port['Rate']!r}"
            raise adapter.line.error(TOOL, f"port {number} of {adapter.name}: {what}")


def _part(adapter: _Adapter) -> NamedPart:
    book = FactBook()
    kind = next((value for key, value in adapter.fields.items() if key.endswith(" type")), None)
    book.say("hca_type", kind, TOOL)
    book.say("firmware", adapter.fields.get("Firmware version"), TOOL)
    book.say("ports", len(adapter.ports), TOOL)
    for position, (number, port) in enumerate(sorted(adapter.ports.items())):
        prefix = "" if position == 0 else f"port{number}_"
        match = _RATE.match(port["Rate"])
        book.say(f"{prefix}rate", float(match[1]) * 1e9 / 8 if match else None, TOOL, "B/s", volatile=True)
        book.say(f"{prefix}state", port["State"].lower(), TOOL, volatile=True)
        book.say(f"{prefix}physical_state", port["Physical state"], TOOL, volatile=True)
        book.say(f"{prefix}link_layer", port.get("Link layer"), TOOL)
    return NamedPart(DeviceKind.NIC, adapter.name, facts=book.facts())
