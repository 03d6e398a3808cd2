"""`lspci -v`, `-vv`, `-vvv` -> PCI functions with their links, drivers and positions.

Format: pciutils 3.x, lspci(8), optionally with -n, -nn, -D, -k, -s, -d and -xxx. Access control: PCI Express Base
Specification 5.0, 7.7.8. Without root, lspci prints "<access denied>" instead of capabilities: links are then unknown.

The link of a PCI function as lspci prints it (LnkCap, LnkSta), its payload and request sizes and ordering (DevCap,
DevCtl, whose second line has the sizes in force).

Registers: PCI Express Base Specification 5.0, 7.5.3.3 to 7.5.3.8. lspci before 3.6 ends LnkSta with ", TrErr- ...";
later versions print that on a separate line and "(downgraded)" for non-ports, which shows that "x1" is not a cut "x16".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.machine.readers.dump import Line, choose
from seatrial.machine.readers.lspci_blocks import START, TOOL, Listing, LspciBlock, find_listings
from seatrial.machine.readers.lspci_buses import BRIDGE_CLASSES, BusRange, Placed, VirtualFunctions, find_parents
from seatrial.machine.readers.lspci_names import CLASS_BY_NAME, UNKNOWN_CLASS, PciIdentity, kind_by_name, read_identity
from seatrial.machine.readers.lspci_text import has_open_bracket, plain_text, read_text, torn_line_number
from seatrial.machine.survey import FactBook, PciPart, Survey, SurveyLinkRate
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

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
    block: LspciBlock, details: Mapping[str, Line], express: str | None, *, is_verbose: bool
) -> tuple[SurveyLinkRate | None, SurveyLinkRate | None]:
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


def _rate(link: _Link | None) -> SurveyLinkRate | None:
    if link is None or link[0] is None or not 0 < link[1] <= 32:
        return None
    return SurveyLinkRate(link[0], link[1])


def _check_notes(line: Line, capable: _Link, trained: _Link, notes: tuple[str | None, str | None]) -> None:
    """Refuse a speed or width that contradicts the note (downgraded) beside it."""
    for can, does, note in zip(capable, trained, notes, strict=True):
        if can is not None and does is not None and (does < can) != (note == "downgraded"):
            why = f"{does:g} of {can:g} {'with' if note else 'without'} the note (downgraded): the text is cut"
            raise line.error(TOOL, why)


SOURCE = "lspci -vv"

_TAIL = re.compile(r" \((?:rev [0-9a-f]{2}|prog-if [0-9a-f]{2}(?: \[[^\[\]]*\])?)\)\Z")
_CLASS_NUMBER = re.compile(r"(?:(.*) \[([0-9a-f]{4})\]|(?:Class )?([0-9a-f]{4}))\Z")
_NUMBERED_CLASSES = frozenset(f"{base:02x}" for base in range(1, 0x0D))
"""Base classes whose subclasses have long had names: a number beside the name means -nn."""

_BUS = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2}), sec-latency=\d+\Z")
_EXPRESS = re.compile(
    r"Capabilities: \[[0-9a-f]+(?: v\d+)?\] Express (?:\(v\d+\) )?(Endpoint|Legacy Endpoint|Root Port|Upstream Port|"
    r"Downstream Port|PCI-Express to PCI/PCI-X Bridge|PCI/PCI-X to PCI-Express Bridge|Root Complex Integrated Endpoint|"
    r"Root Complex Event Collector)(?: \(Slot[+-]\))?, "
)
_ACS = re.compile(r"ACSCtl:\s*((?:[A-Z][A-Za-z]+[+-] )*ReqRedir[+-](?: [A-Z][A-Za-z]+[+-])* DirectTrans[+-])\Z")
_NUMA = re.compile(r"NUMA node: (-?\d{1,5})\Z")
_NUMA_FLAG = re.compile(r", NUMA node (-?\d{1,5})(?=,|\Z)")
_SUBSYSTEM = re.compile(r"Subsystem: (?:.* \[)?[0-9a-f]{4}:([0-9a-f]{4})\]?\Z")
_COUNT = re.compile(r"Initial VFs: \d+, Total VFs: \d+, Number of VFs: (\d{1,5})\b")
_DISTANCE = re.compile(r"VF offset: (\d{1,5}), stride: (\d{1,5})\b")

_KEYS = (
    "Bus: primary", "LnkCap:", "LnkSta:", "ACSCtl:", "NUMA node:", "Kernel driver in use:", "Physical Slot:",
    "Subsystem:", "IOMMU group:", "Control: I/O", "Initial VFs:", "VF offset:", *EXPRESS_KEYS,
)  # fmt: skip
"""The details of a function that are parsed; each occurs at most once."""

_OPEN_ENDED = (
    "NUMA node:", "Kernel driver in use:", "Physical Slot:", "Subsystem:", "IOMMU group:", "Flags:", "VF offset:",
)  # fmt: skip
"""Lines that may still be well formed after a cut: an unfinished last line of a file is ignored."""


def read_lspci_vv(data: bytes, pick: int | None = None) -> Survey:
    """The PCI functions and host bridges of `lspci -vv`; `pick` (from 1) if the text has several listings.

    Raises ParseError with the first damaged line; UsageError for several listings without `pick`.
    """
    lines = read_text(data, TOOL)
    listing = choose(
        find_listings(lines), lambda found: found.blocks[0].header.number, pick, TOOL, "listing of PCI functions"
    )
    torn = torn_line_number(lines)
    return _survey([_read(block, listing, torn) for block in listing.blocks], listing, torn)


class _Function(Frozen):
    """One parsed block."""

    block: LspciBlock
    class_id: str
    identity: PciIdentity
    details: dict[str, Line]
    express: str | None
    is_denied: bool
    capable: SurveyLinkRate | None
    trained: SurveyLinkRate | None
    placed: Placed

    def value(self, key: str) -> str | None:
        """The text after a key."""
        line = self.details.get(key)
        return plain_text(line).strip().removeprefix(key).strip() or None if line is not None else None


def _read(block: LspciBlock, listing: Listing, torn: int | None) -> _Function:
    class_id, identity = _read_title(block)
    if block.header.number == torn and not block.title.endswith((")", "]")):
        raise block.header.error(TOOL, "the file ends within this line")
    details, express, is_denied = _details(block, torn)
    buses = _read_buses(block, class_id, details, listing)
    link = read_link(block, details, express, is_verbose=listing.is_verbose)
    is_virtual = "Virtual Function" in (identity.name or "")
    placed = Placed(block.address, class_id, express, buses, _virtual(details), is_virtual)
    return _Function(block, class_id, identity, details, express, is_denied, *link, placed)


def _read_title(block: LspciBlock) -> tuple[str, PciIdentity]:
    """Class and identity of "3D controller [0302]: NVIDIA Corporation ... [10de:1db4] (rev a1)"."""
    title = block.title
    while (tail := _TAIL.search(title)) is not None:
        title = title[: tail.start()]
    class_name, colon, name = title.partition(": ")
    if not colon or not name.strip() or has_open_bracket(title):
        raise block.header.error(
            TOOL, "not a complete line of lspci: expected a class, a colon and a name after the address"
        )
    number = _CLASS_NUMBER.match(class_name)
    class_id = (number[2] or number[3]) if number else CLASS_BY_NAME.get(class_name.casefold(), UNKNOWN_CLASS)
    identity = read_identity(name.strip())
    if number is not None and class_id[:2] in _NUMBERED_CLASSES and identity.device_id is None:
        raise block.header.error(TOOL, "the class has a number but the device has none: the line is cut")
    return class_id, identity


def _details(block: LspciBlock, torn: int | None) -> tuple[dict[str, Line], str | None, bool]:
    """The parsed lines by key; the kind of Express port; whether access to the capabilities was denied."""
    details: dict[str, Line] = {}
    express = None
    is_denied = False
    for line in block.body:
        text = plain_text(line).strip()
        key = next((key for key in _KEYS if text.startswith(key)), "Flags:" if START.match(text) else None)
        if line.number == torn and key in _OPEN_ENDED:
            continue
        if key is not None:
            if key in details:
                raise line.error(TOOL, f"{key.rstrip(': ')!r} occurs twice below {block.address}: a header is missing")
            details[key] = line
        is_denied = is_denied or text == "Capabilities: <access denied>"
        match = _EXPRESS.match(text)
        express = match[1] if match is not None else express
    return details, express, is_denied


def _read_buses(block: LspciBlock, class_id: str, details: dict[str, Line], listing: Listing) -> BusRange | None:
    line = details.get("Bus: primary")
    if line is None:
        is_odd = any(plain_text(other).lstrip().startswith("!!!") for other in block.body)
        if class_id in BRIDGE_CLASSES and listing.is_verbose and not is_odd:
            raise block.header.error(
                TOOL, "the details of this bridge have no line with its buses: the listing is damaged"
            )
        return None
    match = _BUS.match(plain_text(line).strip())
    if match is None:
        raise line.error(TOOL, "expected the bus numbers of a bridge")
    return BusRange(int(match[1], 16), int(match[2], 16), line)


def _virtual(details: dict[str, Line]) -> VirtualFunctions | None:
    count, distance = _match(_COUNT, details.get("Initial VFs:")), _match(_DISTANCE, details.get("VF offset:"))
    return VirtualFunctions(int(count[1]), int(distance[1]), int(distance[2])) if count and distance else None


def _numa(function: _Function) -> int | None:
    line = function.details.get("NUMA node:") or function.details.get("Flags:")
    text = "" if line is None else plain_text(line).strip()
    if line is None or "NUMA" not in text:
        return None
    match = _NUMA.match(text) or _NUMA_FLAG.search(text)
    if match is None:
        raise line.error(TOOL, "expected the number of a NUMA node")
    return int(match[1]) if int(match[1]) >= 0 else None


def _survey(functions: Sequence[_Function], listing: Listing, torn: int | None) -> Survey:
    parents = find_parents([function.placed for function in functions], TOOL)
    parts = [_part(function, parents[function.block.address]) for function in functions]
    hosts: dict[str, list[PciPart]] = {}
    for part in parts:
        if part.parent is not None and "." not in part.parent:
            hosts.setdefault(part.parent, []).append(part)
    bridges = tuple(
        PciPart(address, "", None, next((p.numa for p in below if p.numa is not None), None), source=SOURCE)
        for address, below in hosts.items()
    )
    return Survey(SOURCE, pci_parts=(*bridges, *parts), unread=tuple(_unread(functions, parts, listing, torn)))


def _part(function: _Function, parent: str | None) -> PciPart:
    book = FactBook()
    identity = function.identity
    book.say("class_id", function.class_id if function.class_id != UNKNOWN_CLASS else None, SOURCE)
    book.say("vendor_id", identity.vendor_id, SOURCE)
    book.say("device_id", identity.device_id, SOURCE)
    match = _match(_SUBSYSTEM, function.details.get("Subsystem:"))
    book.say("subsystem_id", match[1] if match else None, SOURCE)
    book.say("pci_vendor", identity.vendor, SOURCE)
    book.say("pci_name", identity.name, SOURCE)
    book.say("driver", function.value("Kernel driver in use:"), SOURCE)
    book.say("physical_slot", function.value("Physical Slot:"), SOURCE)
    book.say("iommu_group", function.value("IOMMU group:"), SOURCE)
    book.say("pcie_type", function.express, SOURCE)
    for prefix, rate, is_volatile in (("pcie_max", function.capable, False), ("pcie", function.trained, True)):
        book.say(f"{prefix}_GTps", rate.GTps if rate else None, SOURCE, "1", volatile=is_volatile)
        book.say(f"{prefix}_lanes", rate.lanes if rate else None, SOURCE, volatile=is_volatile)
    say_express_settings(function.details, function.express, book, SOURCE)
    _add_acs_facts(function, book)
    return PciPart(
        function.block.address, function.class_id, parent, _numa(function), None, function.capable, function.trained,
        kind=_kind(function), source=SOURCE, facts=book.facts(),
    )  # fmt: skip


def _kind(function: _Function) -> DeviceKind | None:
    """The kind for adapters and disks, which have no OS device here; by name if the class is unknown."""
    if function.class_id.startswith("02"):
        return DeviceKind.NIC
    if function.class_id == "0108":
        return DeviceKind.NVME
    return kind_by_name(function.identity) if function.class_id == UNKNOWN_CLASS else None


def _add_acs_facts(function: _Function, book: FactBook) -> None:
    """Access control of a port: with redirection, requests between its devices go through the root complex."""
    line = function.details.get("ACSCtl:")
    if line is None:
        return
    match = _ACS.match(plain_text(line).strip())
    if match is None:
        raise line.error(TOOL, "expected the settings of access control services")
    book.say("acs", match[1], SOURCE)
    if function.placed.buses is not None:
        book.say("acs_redirects", "ReqRedir+" in match[1], SOURCE)


def _unread(functions: Sequence[_Function], parts: Sequence[PciPart], listing: Listing, torn: int | None) -> list[str]:
    """A sentence for each kind of missing information."""
    sentences: list[str] = []
    denied = sum(function.is_denied for function in functions)
    if denied:
        sentences.append(
            f"{SOURCE}: access to the capabilities of {denied} functions was denied: their link speeds are unknown; "
            "run lspci as root"
        )
    elif not any("Control: I/O" in function.details or function.capable for function in functions):
        sentences.append(f"{SOURCE}: made without -vv: link speeds are unknown")
    orphans = sum(part.parent is None for part in parts)
    if orphans:
        sentences.append(
            f"{SOURCE}: the bridges above {orphans} functions are not in the listing; take `lspci -vv` of the whole "
            "machine, or `lspci -tv`"
        )
    if torn is not None and any(line.number == torn for function in functions for line in function.block.body[-1:]):
        sentences.append(f"{SOURCE}: the file ends within line {torn}, which may be cut")
    return sentences
