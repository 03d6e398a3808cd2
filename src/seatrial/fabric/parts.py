"""What one dump states about a fabric, before the dumps are joined: devices and ports, each with its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import Line, read_lines
from seatrial.model.frozen import Frozen


class Text(Frozen):
    """A file with what a tool printed, or a part of it. `name` is for messages; `pick` is the number of the dump in it
    (from 1; None: the only one)."""

    name: str
    data: bytes
    pick: int | None = None

    def lines(self, tool: str) -> tuple[Line, ...]:
        """Its lines. Raises ParseError for text that is binary or too long."""
        try:
            return read_lines(self.data, tool)
        except ParseError as error:
            raise error.in_file(self.name) from None

    def refuse_pick(self, tool: str) -> None:
        """Raise UsageError if a dump other than the first is wanted of a format that has only one in a file."""
        if self.pick not in (None, 1):
            raise UsageError(f"{tool}: {self.name}: there is no dump {self.pick}: the file is one dump")


class PartKind(StrEnum):
    """What a device is."""

    SWITCH = "switch"
    ADAPTER = "adapter"
    ROUTER = "router"
    NODE = "node"  # a host without its adapters


class Source(Frozen):
    """A place in a dump, for messages."""

    tool: str
    line: int
    text: str
    file: str = ""

    @classmethod
    def of(cls, tool: str, line: Line, file: str) -> Source:
        """The place of a line."""
        return cls(tool, line.number, line.raw, file)

    def error(self, why: str) -> ParseError:
        """The error for this line."""
        return ParseError(self.tool, self.line, self.text, why, self.file)


class DevicePart(Frozen):
    """A device with a record of its own (`is_described`), or one that only its peers name."""

    id: str
    kind: PartKind
    name: str
    source: Source
    model: str | None = None
    ports: int | None = None
    is_described: bool = True


class LinkRate(Frozen):
    """Lanes and the InfiniBand name of their speed; None is unknown."""

    width: int | None = None
    speed: str | None = None


class PortPart(Frozen):
    """One port. `peer` is (device, port) at the other end; None if there is no link, with the states.

    `could` is what both ends support where the tool says so.
    """

    device: str
    port: int | None
    source: Source
    peer: tuple[str, int | None] | None = None
    rate: LinkRate = LinkRate()
    could: LinkRate | None = None
    state: str = ""
    physical: str = ""


class FabricDump(Frozen):
    """All parts of one dump.

    `is_one_sided`: the format names each link once, at one of its ends. `is_partial`: devices may be without a record
    although they are connected (a list of ports, a scan of switches only). `missing` is why links or devices may be
    missing although the text is complete; "" if nothing says so. `notes` are other sentences on what could not be read.
    """

    tool: str
    devices: Sequence[DevicePart]
    ports: Sequence[PortPart]
    is_one_sided: bool = False
    is_partial: bool = False
    missing: str = ""
    notes: Sequence[str] = ()
    facts: Mapping[str, str] = {}
