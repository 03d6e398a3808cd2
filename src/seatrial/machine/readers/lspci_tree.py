r"""`lspci -t`, `-tv`, `-tvnn`: the tree of bridges and PCI functions.

Format: pciutils 3.x, lspci(8). A line reads from left to right: a root bus "-[0000:00]-", a function "03.1", after a
bridge its buses "-[01-05]-" and the functions on the first of them. The functions of one bus are listed in a fork, with
"+-" before each and "\-" before the last; "|" continues an open fork across the lines between. A bridge with several
buses (those of virtual functions) forks into "[0000:02]" first. The columns are checked exactly: a branch without its
fork is refused, never attached to another.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import ParseError
from seatrial.machine.readers import lspci_text
from seatrial.machine.readers.dump import Line, choose, is_fence
from seatrial.machine.readers.lspci_names import UNKNOWN_CLASS, kind_by_name, read_identity
from seatrial.machine.survey import FactBook, PciPart, Survey
from seatrial.model.frozen import Frozen

TOOL = "lspci-tree"
SOURCE = "lspci -tv"

_ROOT = re.compile(rf" *-(?:\+-)?\[(?:{lspci_text.DOMAIN}:)?{lspci_text.BUS}\]-")
_ROOT_BUS = re.compile(rf"\[(?:({lspci_text.DOMAIN}):)?({lspci_text.BUS})\]-")
_BRANCH = re.compile(rf"[ |]*[+\\]-(?:\[(?:{lspci_text.DOMAIN}:)?{lspci_text.BUS}|{lspci_text.DEVICE_FUNCTION})")
_REGION = re.compile(r"[ |]*(?:Region \d: )?(?:\[(?:enhanced|virtual)\] )*(?:Memory at|I/O ports at) ")
_FUNCTION = re.compile(rf"({lspci_text.DEVICE_FUNCTION})(?=-\[|  \S|\Z)")
_BEHIND = re.compile(rf"-\[({lspci_text.BUS})(?:-({lspci_text.BUS}))?\]--")

_MAX_DEPTH = 64


class _Bus(Struct):
    """A bus with functions; `parent` is the bridge above, or the bus's own "domain:bus" for a root bus."""

    domain: str
    number: int
    parent: str
    first: int = 0
    last: int = 0xFF
    depth: int = 0
    highest: int = -1  # the last function seen, device and function in 8 bits: lspci sorts them


class _Fork(Struct):
    """A list of branches: functions of `bus` or, if that is None, buses behind `above` (None: root buses)."""

    column: int
    bus: _Bus | None
    above: _Bus | None
    line: Line
    is_closed: bool = False

    @property
    def unfinished(self) -> str:
        """What is wrong with it if it is not closed."""
        return f"the fork that begins on line {self.line.number} has no last branch (`\\-`) above here"


class _Node(Frozen):
    """A function, with its name if the tree has names."""

    address: str
    parent: str
    is_bridge: bool
    name: str
    line: Line


def read_lspci_tree(data: bytes, pick: int | None = None) -> Survey:
    """The PCI functions and root buses of `lspci -tv`; `pick` (from 1) if the text has several trees.

    A tree has no classes: `class_id` is "0604" for bridges, else unknown, and `kind` is set if a name or number
    determines it. Raises ParseError with the first damaged line; UsageError for several trees without `pick`.
    """
    lines = lspci_text.read_text(data, TOOL)
    starts = [index for index, line in enumerate(lines) if _ROOT.match(lspci_text.plain_text(line))]
    for line in lines[: starts[0]] if starts else lines:
        if _BRANCH.match(lspci_text.plain_text(line)):
            why = "the branch of a tree whose first line (`-[0000:00]-` or `-+-[0000:00]-`) is missing"
            raise line.error(TOOL, why)
    start = choose(starts, lambda index: lines[index].number, pick, TOOL, "PCI tree")
    end = next((other for other in starts if other > start), len(lines))
    drawing = _Drawing(lspci_text.indent_of(lspci_text.plain_text(lines[start])))
    for line in lines[start:end]:
        drawing.take(line)
    drawing.finish(lspci_text.torn_line_number(lines))
    hosts = dict.fromkeys(node.parent for node in drawing.nodes if "." not in node.parent)
    parts = (*(PciPart(host, "", source=SOURCE) for host in hosts), *map(_part, drawing.nodes))
    return Survey(SOURCE, pci_parts=parts, unread=tuple(drawing.unread))


class _Drawing:
    """Parses the lines of one tree; keeps the open forks."""

    def __init__(self, margin: int) -> None:
        self.nodes: list[_Node] = []
        self.unread: list[str] = []
        self._margin = margin
        self._forks: list[_Fork] = []
        self._addresses: set[str] = set()
        self._buses: set[tuple[str, int]] = set()
        self._last: Line | None = None
        self._is_over = False
        self._line: Line

    def take(self, line: Line) -> None:
        """Parse the next line, which may be below the tree. Raises ParseError."""
        text = lspci_text.plain_text(line)
        if self._last is None:
            self._line = self._last = line
            is_fork = text.startswith("-+-", self._margin)
            if is_fork:
                self._forks.append(_Fork(1, None, None, line))
            self._root_bus(text[self._margin :], 3 if is_fork else 1, None)
        elif _BRANCH.match(text):
            self._line = line
            if self._is_over or text[: self._margin].strip():
                raise self._wrong("a branch of a tree that ended above, or a branch in a wrong column")
            self._last = line
            self._branch(text[self._margin :])
        elif not self._is_over and not _REGION.match(text):  # -tvv prints regions among the branches
            is_text = bool(text.strip()) and not is_fence(text)
            self._check_complete(line if is_text else self._last)
            self._is_over = True

    def finish(self, torn: int | None) -> None:
        """The end of the text. Raises ParseError if the tree is cut."""
        if self._last is None:
            return
        if not self._is_over:
            self._check_complete(self._last)
        if any(node.name for node in self.nodes):
            nameless = next((n for n in self.nodes if not n.name and not n.is_bridge), None)
            if nameless is not None:
                raise nameless.line.error(TOOL, f"the name of {nameless.address} is missing: the line is cut")
        if self._last.number == torn and not self._last.text.rstrip().endswith("]") and self.nodes[-1:]:
            self.nodes[-1] = replace(self.nodes[-1], name="")
            self.unread.append(f"{SOURCE}: the file ends within line {torn}: its name may be cut and was ignored")

    def _check_complete(self, line: Line) -> None:
        fork = next((fork for fork in self._forks if not fork.is_closed), None)
        if fork is not None:
            raise line.error(TOOL, f"{fork.unfinished}: the tree is cut, or was made with -s or -d")

    def _root_bus(self, text: str, at: int, above: _Bus | None) -> None:
        """A bus, "[0000:00]-", and its functions; with `above`, one of the further buses of that bridge."""
        match = _ROOT_BUS.match(text, at)
        if match is None:
            raise self._wrong("expected a bus, as in [0000:00]-")
        domain, number = lspci_text.make_domain(match[1]), int(match[2], 16)
        address = f"{domain}:{number:02x}"
        if above is None:
            if (domain, number) in self._buses:
                raise self._wrong(f"bus {address} occurs here a second time")
            self._buses.add((domain, number))
            bus = _Bus(domain, number, address)
        else:
            if domain != above.domain or not above.first <= number <= above.last:
                raise self._wrong(f"bus {address} is not one of those behind {above.parent}")
            bus = _Bus(domain, number, above.parent, above.first, above.last, above.depth)
        self._on_bus(text, match.end(), bus)

    def _on_bus(self, text: str, at: int, bus: _Bus) -> None:
        """The content of a bus: nothing, one function, or a fork."""
        mark = text[at : at + 2]
        if not mark:
            return
        if mark == "+-":
            self._forks.append(_Fork(at, bus, None, self._line))
        elif mark != "--":
            raise self._wrong("expected `--` or `+-` and a function after a bus")
        self._function(text, at + 2, bus)

    def _branch(self, text: str) -> None:
        column = len(text) - len(text.lstrip(" |"))
        self._check_columns(text, column)
        fork = self._forks[-1]
        fork.is_closed = text[column] == "\\"
        if fork.bus is not None:
            self._function(text, column + 2, fork.bus)
        else:
            self._root_bus(text, column + 2, fork.above)

    def _check_columns(self, text: str, column: int) -> None:
        """Close the forks to the right. The branch must belong to an open fork, and `|` mark exactly the open forks."""
        while self._forks and self._forks[-1].column > column:
            fork = self._forks.pop()
            if not fork.is_closed:
                raise self._wrong(fork.unfinished)
        if not self._forks or self._forks[-1].column != column or self._forks[-1].is_closed:
            raise self._wrong("no fork above this branch")
        bars = {fork.column for fork in self._forks[:-1] if not fork.is_closed}
        if any((text[index] == "|") != (index in bars) for index in range(column)):
            raise self._wrong("its bars `|` do not continue the forks above")

    def _function(self, text: str, at: int, bus: _Bus) -> None:
        match = _FUNCTION.match(text, at)
        if match is None:
            raise self._wrong("expected a function, as in 1c.0, and then nothing, a name, or its buses")
        address = f"{bus.domain}:{bus.number:02x}:{match[1]}".lower()
        position = int(match[1][:2], 16) << 3 | int(match[1][3])
        if address in self._addresses or position <= bus.highest:
            raise self._wrong(f"{address} is out of order, or occurs here a second time")
        if len(self._addresses) >= lspci_text.MAX_FUNCTIONS:
            raise self._wrong("more functions than any machine has")
        self._addresses.add(address)
        bus.highest = position
        if text[match.end() :].startswith("-["):
            self._bridge(text, match.end(), bus, address)
        else:
            name = text[match.end() :].strip()
            if lspci_text.has_open_bracket(name):
                raise self._wrong("the name ends within brackets: the line is cut")
            self.nodes.append(_Node(address, bus.parent, False, name, self._line))

    def _bridge(self, text: str, at: int, bus: _Bus, address: str) -> None:
        match = _BEHIND.match(text, at)
        if match is None:
            raise self._wrong("expected the buses behind a bridge, as in -[01]-- or -[01-05]--")
        first, last = int(match[1], 16), int(match[2] or match[1], 16)
        self.nodes.append(_Node(address, bus.parent, True, "", self._line))
        rest = text[match.end() :]
        if first == 0 and not rest:
            return  # not set up by the firmware
        if not bus.number < first <= last or not bus.first <= first <= last <= bus.last:
            raise self._wrong(f"the buses behind {address} are not behind the bridges above it")
        if (bus.domain, first) in self._buses:
            raise self._wrong(f"bus {bus.domain}:{first:02x} occurs here a second time")
        self._buses.add((bus.domain, first))
        behind = _Bus(bus.domain, first, address, first, last, bus.depth + 1)
        if behind.depth > _MAX_DEPTH:
            raise self._wrong("bridges nested deeper than in any machine")
        if rest.startswith("+-["):
            self._forks.append(_Fork(match.end(), None, behind, self._line))
            self._root_bus(text, match.end() + 2, behind)
        else:
            self._on_bus(text, match.end(), behind)

    def _wrong(self, why: str) -> ParseError:
        return self._line.error(TOOL, why)


def _part(node: _Node) -> PciPart:
    identity = read_identity(node.name)
    book = FactBook()
    book.say("vendor_id", identity.vendor_id, SOURCE)
    book.say("device_id", identity.device_id, SOURCE)
    book.say("pci_vendor", identity.vendor, SOURCE)
    book.say("pci_name", identity.name, SOURCE)
    return PciPart(
        node.address, "0604" if node.is_bridge else UNKNOWN_CLASS, node.parent,
        kind=None if node.is_bridge else kind_by_name(identity), source=SOURCE, facts=book.facts(),
    )  # fmt: skip
