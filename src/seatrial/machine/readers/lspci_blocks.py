"""Finds the listings of `lspci -v` in a text, and the lines of each function.

lspci prints a line per function that begins with its address, its details indented below, and a blank line. Consecutive
blocks form a run, which lspci sorts by address. Runs of different functions form one listing (`lspci -vv -s 41:00.0`
and then `-s c1:00.0`); a run that repeats functions begins another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from seatrial.machine.readers.dump import Line, is_fence
from seatrial.machine.readers.lspci_names import CLASS_BY_NAME
from seatrial.machine.readers.lspci_text import (
    BUS,
    DEVICE_FUNCTION,
    DOMAIN,
    MAX_FUNCTIONS,
    indent_of,
    make_address,
    plain_text,
)
from seatrial.model.frozen import Frozen

TOOL = "lspci-vv"

_PATH = rf"(?:(?:{DOMAIN}:)?{BUS}:{DEVICE_FUNCTION}/){{0,32}}"  # the bridges above it, with -PP
_HEADER = re.compile(rf" *{_PATH}(?:({DOMAIN}):)?({BUS}):({DEVICE_FUNCTION}) +(\S.*)\Z")
_HEX = re.compile(r" *[0-9a-f]{2,3}:(?: [0-9a-f]{2}){1,16}\Z")
START = re.compile(
    r" *(?:Control: I/O[+-]|Flags: (?:bus master|VGA palette|stepping|fast Back2Back|66MHz|user-def|\S{2,6} devsel))"
)
"""The first line of a function's details in lspci -v and -vv."""
_BEFORE_START = re.compile(r" +(?:Subsystem|DeviceName|Physical Slot): ")
_DETAIL = re.compile(
    r" *(?:Capabilities: [\[<]|(?:LnkCap|LnkSta|ACSCtl|DevCap):\s|Bus: primary=|Kernel driver in use: |Region \d: )"
)


class LspciBlock(Struct):
    """A function: its first line, the text after the address, and its details."""

    header: Line
    address: str
    has_domain: bool
    title: str
    indent: int
    body: list[Line] = []

    @property
    def is_verbose(self) -> bool:
        """Whether it has the details that -v prints for every function."""
        return any(START.match(text) or text.lstrip().startswith("!!!") for text in map(plain_text, self.body))


class Listing(Frozen):
    """The functions of one listing in text order; `is_verbose` if it was made with -v or more."""

    blocks: tuple[LspciBlock, ...]
    is_verbose: bool


def find_listings(lines: Sequence[Line]) -> list[Listing]:
    """All listings of a text. Raises ParseError for details without a function, or a function that occurs twice.

    Plain listings (`lspci`, `lspci -k`) count only if there are none of `lspci -v`.
    """
    splitter = _Splitter()
    for line in lines:
        splitter.take(line)
    verbose = [run for run in splitter.runs if any(block.is_verbose for block in run)]
    for block in (block for run in verbose for block in run):
        if not block.is_verbose:
            raise block.header.error(TOOL, "the details of this function are missing: the listing is cut here")
    if verbose:
        return _listings(verbose, is_verbose=True)
    plain = [[block for block in run if _is_plain_header(block)] for run in splitter.runs]
    if splitter.hex_line is not None and any(plain):
        raise splitter.hex_line.error(
            TOOL, "this is the configuration space as bytes (lspci -x): decode it with `lspci -F FILE -vv`"
        )
    return _listings([run for run in plain if run], is_verbose=False)


def _is_plain_header(block: LspciBlock) -> bool:
    """Whether a line that begins with an address is from lspci: its class is known, or has its number."""
    name = block.title.partition(": ")[0]
    return name.casefold() in CLASS_BY_NAME or bool(re.search(r"(?:\A|\[|Class )[0-9a-f]{4}\]?\Z", name))


def _listings(runs: Sequence[Sequence[LspciBlock]], *, is_verbose: bool) -> list[Listing]:
    listings: list[list[LspciBlock]] = []
    known: set[str] = set()
    for run in runs:
        addresses = {block.address for block in run}
        if not listings or addresses <= known or known <= addresses:
            listings.append([])
            known = set()
        elif addresses & known:
            twice = next(block for block in run if block.address in known)
            raise twice.header.error(TOOL, f"{twice.address} occurs here a second time")
        listings[-1] += run
        known |= addresses
    for listing in listings:
        _check_domains(listing)
    return [Listing(tuple(blocks), is_verbose) for blocks in listings]


def _check_domains(blocks: Sequence[LspciBlock]) -> None:
    """Raise ParseError unless all functions have a domain, or none has: lspci prints no mixture."""
    if len(blocks) > MAX_FUNCTIONS:
        raise blocks[MAX_FUNCTIONS].header.error(TOOL, "more functions than any machine has")
    odd = [block for block in blocks if block.has_domain != blocks[0].has_domain]
    if odd:
        raise odd[0].header.error(TOOL, "its address has a domain but those above have none, or the reverse")


class _Splitter:
    """Takes lines one by one and collects runs of blocks."""

    def __init__(self) -> None:
        self.runs: list[list[LspciBlock]] = []
        self.hex_line: Line | None = None
        self._block: LspciBlock | None = None  # the block whose details are being read
        self._is_run_open = False
        self._foreign: Line | None = None  # the last line above outside any listing
        self._is_amid = False  # ... and it was right below details

    def take(self, line: Line) -> None:
        """Assign the next line to its block. Raises ParseError."""
        text = plain_text(line)
        header = _HEADER.match(text)
        if not text.strip():
            self._block = None
        elif is_fence(text):
            self._end()
            self._foreign, self._is_amid = None, False
        elif header is not None and not (self._block is not None and indent_of(text) > self._block.indent):
            self._open(line, text, header)
        elif _HEX.match(text):
            self.hex_line = self.hex_line or line
        elif self._block is not None and indent_of(text) > self._block.indent:
            self._block.body.append(line)
        else:
            self._take_other(line, text)

    def _open(self, line: Line, text: str, header: re.Match[str]) -> None:
        address = make_address(header[1], header[2], header[3])
        above = self.runs[-1][-1].address if self._is_run_open else ""
        if address == above:
            raise line.error(TOOL, f"{address} occurs here a second time")
        if not self._is_run_open or (len(address), address) < (len(above), above):
            self.runs.append([])
        self._block = LspciBlock(line, address, header[1] is not None, header[4], indent_of(text))
        self._is_run_open = True
        self.runs[-1].append(self._block)

    def _end(self) -> None:
        self._block, self._is_run_open = None, False

    def _take_other(self, line: Line, text: str) -> None:
        """A line outside all blocks: prose, a prompt, another tool's output, or details whose header is missing."""
        if START.match(text) or _DETAIL.match(text):
            if self._foreign is not None and not self._is_run_open and (START.match(text) or self._is_amid):
                why = "expected a line with a function's address: indented details of a function follow"
                raise self._foreign.error(TOOL, why)
            if self._is_run_open or START.match(text):
                raise line.error(TOOL, "no line with a function's address above these indented details")
            return
        if self._foreign is not None and (_BEFORE_START.match(text) or (self._is_amid and indent_of(text) > 0)):
            return
        self._foreign = line
        self._is_amid = self._block is not None and bool(self._block.body) and "lspci" not in text
        self._end()
