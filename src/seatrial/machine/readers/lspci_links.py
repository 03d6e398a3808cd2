"""The link of a PCI function as lspci prints it (LnkCap, LnkSta), its payload and request sizes and ordering (DevCap,
DevCtl, whose second line has the sizes in force).

Registers: PCI Express Base Specification 5.0, 7.5.3.3 to 7.5.3.8. lspci before 3.6 ends LnkSta with ", TrErr- ...";
later versions print that on a separate line and "(downgraded)" for non-ports, which shows that "x1" is not a cut "x16".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seatrial.machine.readers.dump import Line
from seatrial.machine.readers.lspci_blocks import TOOL, Block
from seatrial.machine.readers.lspci_text import plain_text
from seatrial.machine.survey import FactBook, LinkRate

EXPRESS_KEYS = ("DevCap:", "RlxdOrd", "MaxPayload ")
"""How the lines begin, each at most once in a function."""

_SIZE = r"(128|256|512|1024|2048|4096) bytes"
_SIZES_CAPABLE = re.compile(rf"DevCap:\s*MaxPayload {_SIZE}, PhantFunc \d")
_IN_FORCE = re.compile(rf"MaxPayload {_SIZE}, MaxReadReq {_SIZE}\Z")
_UNSET = ("128", "128")
_ORDERING = re.compile(r"RlxdOrd([+-]) ExtTag[+-] PhantFunc[+-] AuxPwr[+-] NoSnoop[+-]( FLReset-| BrConfRtry[+-])?\Z")


def say_express_settings(details: Mapping[str, Line], express: str | None, book: FactBook, source: str) -> None:
    """Add the sizes in bytes and whether relaxed ordering is allowed; lines of another form are not read.

    `express` is the kind of port. An endpoint without any of the settings is a virtual function, which does not
    implement them (Single Root I/O Virtualization 1.1, Device Control): they are unknown.
    """
    capable = _match(_SIZES_CAPABLE, details.get("DevCap:"))
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


_SPEED = r"(unknown|2\.5GT/s|5GT/s|8GT/s|16GT/s|32GT/s|64GT/s|128GT/s)"
_NOTE = r"(?: \((ok|downgraded|strange|overdriven)\))?"
_CAPABLE = re.compile(rf"LnkCap:\s*Port #\d+, Speed {_SPEED}, Width x(\d{{1,2}}), ASPM\b")
_TRAINED = re.compile(rf"LnkSta:\s*Speed {_SPEED}{_NOTE}, Width x(\d{{1,2}}){_NOTE}(, TrErr[+-].*)?\Z")
_LANES = frozenset({0, 1, 2, 4, 8, 12, 16, 32, 63})  # 0: no link; 63: registers that cannot be read
_NO_PORT = frozenset({"Endpoint", "Legacy Endpoint", "Upstream Port"})

_Link = tuple[float | None, int]  # GT/s (None if lspci says "unknown") and lanes.


def read_link(
    block: Block, details: Mapping[str, Line], express: str | None, *, is_verbose: bool
) -> tuple[LinkRate | None, LinkRate | None]:
    """The capable and the trained rate of a block whose Express capability is of the kind `express`; None if it is not
    reported, the link is down (x0), or the function has no link. Raises ParseError."""
    capable_line, trained_line = details.get("LnkCap:"), details.get("LnkSta:")
    capable = trained = None
    if capable_line is not None:
        match = _CAPABLE.match(plain_text(capable_line).strip())
        if match is None or int(match[2]) not in _LANES:
            raise capable_line.error(TOOL, "not a possible speed and width of a link")
        capable = (_speed(match[1]), int(match[2]))
    if trained_line is not None:
        match = _TRAINED.match(plain_text(trained_line).strip())
        if match is None or int(match[3]) not in _LANES:
            raise trained_line.error(TOOL, "not the speed and width of a link")
        trained = (_speed(match[1]), int(match[3]))
        if match[5] is None:
            below = next((other for other in block.body if other.number == trained_line.number + 1), None)
            is_whole = below is not None and plain_text(below).lstrip().startswith("TrErr")
            if is_verbose and not is_whole:
                raise trained_line.error(TOOL, "the line with TrErr below this one is missing: the text is cut")
            if express in _NO_PORT and capable is not None:
                _check_notes(trained_line, capable, trained, (match[2], match[4]))
    return _rate(capable), _rate(trained)


def _speed(text: str) -> float | None:
    return None if text == "unknown" else float(text.removesuffix("GT/s"))


def _rate(link: _Link | None) -> LinkRate | None:
    if link is None or link[0] is None or not 0 < link[1] <= 32:
        return None
    return LinkRate(link[0], link[1])


def _check_notes(line: Line, capable: _Link, trained: _Link, notes: tuple[str | None, str | None]) -> None:
    """Refuse a speed or width that contradicts the note (downgraded) beside it."""
    for can, does, note in zip(capable, trained, notes, strict=True):
        if can is not None and does is not None and (does < can) != (note == "downgraded"):
            why = f"{does:g} of {can:g} {'with' if note else 'without'} the note (downgraded): the text is cut"
            raise line.error(TOOL, why)
