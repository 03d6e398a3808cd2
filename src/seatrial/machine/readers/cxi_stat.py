"""`cxi_stat` (HPE Slingshot): the adapters of one node, with speed and state of their links.

Format: cxi_stat(1), of libcxi. A speed is written as BS_200G: 200 Gbit/s of data.
"""

from __future__ import annotations

import re

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import Line, read_lines
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.machine.links import pci_address
from seatrial.model.machine.machine import DeviceKind

TOOL = "cxi_stat"

_DEVICE = re.compile(r"\s{0,8}Device:\s+(?P<name>cxi\d{1,3})\s*\Z", re.ASCII)
_FIELD = re.compile(r"\s+(?P<key>[A-Za-z][\w /]{1,40}):\s+(?P<value>\S.*?)\s*\Z")
_SPEED = re.compile(r"[A-Z]{2}_(?P<Gbps>\d{1,4})G\Z", re.ASCII)
_MTU = re.compile(r"\d{1,6}\Z", re.ASCII)


def read_cxi_stat(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey; their names on the network (hsn0) are aliases. Raises ParseError."""
    if pick not in (None, 1):
        raise UsageError(f"{TOOL}: there is no dump {pick}: the file is one dump")
    devices: dict[str, tuple[Line, dict[str, str]]] = {}
    fields: dict[str, str] | None = None
    for line in read_lines(data, TOOL):
        if match := _DEVICE.match(line.text):
            if match["name"] in devices:
                raise line.error(TOOL, f"{match['name']} is here a second time: are these two dumps in one file?")
            fields = {}
            devices[match["name"]] = (line, fields)
        elif fields is not None and (match := _FIELD.match(line.text)):
            known = fields.setdefault(match["key"], match["value"])
            if known != match["value"]:
                raise line.error(TOOL, f"{match['key']} is given twice")
    if not devices:
        raise ParseError(TOOL, None, "", "no adapter (Device: cxi0) in the file")
    return Survey(TOOL, named_parts=tuple(_part(name, *found) for name, found in devices.items()))


def _part(name: str, line: Line, fields: dict[str, str]) -> NamedPart:
    if "Link state" not in fields:
        raise line.error(TOOL, f"{name} has no link state: was the dump cut off?")
    book = FactBook()
    book.say("firmware", fields.get("FW Version"), TOOL)
    book.say("part_number", fields.get("Part Number"), TOOL)
    speed = _SPEED.match(fields.get("Link speed", ""))
    book.say("rate", float(speed["Gbps"]) * 1e9 / 8 if speed else None, TOOL, "B/s", volatile=True)
    book.say("state", fields["Link state"].lower(), TOOL, volatile=True)
    mtu = fields.get("Link MTU", "")
    book.say("mtu", int(mtu) if _MTU.match(mtu) else None, TOOL, "B")
    for fact, key in (("link_retry", "Link layer retry"), ("link_media", "Link media")):
        book.say(fact, fields.get(key), TOOL)
    network = fields.get("Network device")
    address = pci_address(fields.get("PCIE slot", ""))
    return NamedPart(DeviceKind.NIC, name, address, aliases=(network,) if network else (), facts=book.facts())
