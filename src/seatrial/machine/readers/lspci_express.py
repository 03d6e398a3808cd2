"""Payload and request sizes and ordering of a PCI function as lspci prints them (DevCap, DevCtl).

Registers: PCI Express Base Specification 5.0, 7.5.3.3 and 7.5.3.4. The sizes in force are on the second line below
DevCtl.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seatrial.machine.readers.dump import Line
from seatrial.machine.readers.lspci_common import plain_text
from seatrial.machine.survey import FactBook

EXPRESS_KEYS = ("DevCap:", "RlxdOrd", "MaxPayload ")
"""How the lines begin, each at most once in a function."""

_SIZE = r"(128|256|512|1024|2048|4096) bytes"
_CAPABLE = re.compile(rf"DevCap:\s*MaxPayload {_SIZE}, PhantFunc \d")
_IN_FORCE = re.compile(rf"MaxPayload {_SIZE}, MaxReadReq {_SIZE}\Z")
_UNSET = ("128", "128")
_ORDERING = re.compile(r"RlxdOrd([+-]) ExtTag[+-] PhantFunc[+-] AuxPwr[+-] NoSnoop[+-]( FLReset-| BrConfRtry[+-])?\Z")


def say_express_settings(details: Mapping[str, Line], express: str | None, book: FactBook, source: str) -> None:
    """Add the sizes in bytes and whether relaxed ordering is allowed; lines of another form are not read.

    `express` is the kind of port. An endpoint without any of the settings is a virtual function, which does not
    implement them (Single Root I/O Virtualization 1.1, Device Control): they are unknown.
    """
    capable = _match(_CAPABLE, details.get("DevCap:"))
    in_force = _match(_IN_FORCE, details.get("MaxPayload "))
    ordering = _match(_ORDERING, details.get("RlxdOrd"))
    book.say("pcie_max_payload", int(capable[1]) if capable else None, source, "B")
    is_unset = ordering is not None and ordering[1] == "-" and in_force is not None and in_force.groups() == _UNSET
    if is_unset and "Endpoint" in (express or ""):
        return
    book.say("pcie_payload", int(in_force[1]) if in_force else None, source, "B")
    book.say("pcie_read_request", int(in_force[2]) if in_force else None, source, "B")
    book.say("pcie_relaxed_ordering", ordering[1] == "+" if ordering else None, source)


def _match(pattern: re.Pattern[str], line: Line | None) -> re.Match[str] | None:
    return None if line is None else pattern.match(plain_text(line).strip())
