"""What one dump states about a fabric, before the dumps are joined: devices and ports, each with its line.

Lane speeds of InfiniBand.

Source: IBTA, InfiniBand Architecture Specification Volume 2 and the InfiniBand roadmap. SDR, DDR and QDR use 8b/10b,
FDR10 to EDR 64b/66b; from HDR on, the name states the data rate of a lane, after FEC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, read_lines, refuse_pick
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import PortCounters


class FabricText(Frozen):
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
        refuse_pick(self.pick, f"{tool}: {self.name}")


class PartKind(StrEnum):
    """What a device is."""

    SWITCH = "switch"
    ADAPTER = "adapter"
    ROUTER = "router"
    NODE = "node"  # a host without its adapters


class FabricSource(Frozen):
    """A line in a dump, for messages."""

    tool: str
    line: int
    text: str
    file: str = ""

    @classmethod
    def of(cls, tool: str, line: Line, file: str) -> FabricSource:
        """The place of a line."""
        return cls(tool, line.number, line.raw, file)

    def error(self, why: str) -> ParseError:
        """The error for this line."""
        return ParseError(self.tool, self.line, self.text, why, self.file)


class DevicePart(Frozen):
    """A device with its own record (`is_described`), or one that only its peers name."""

    id: str
    kind: PartKind
    name: str
    source: FabricSource
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
    source: FabricSource
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
    `switch_facts`: id of a switch -> what is stated of its hardware.
    """

    tool: str
    devices: Sequence[DevicePart]
    ports: Sequence[PortPart]
    is_one_sided: bool = False
    is_partial: bool = False
    missing: str = ""
    notes: Sequence[str] = ()
    facts: Mapping[str, str] = {}
    counters: Sequence[PortCounters] = ()
    switch_facts: Mapping[str, Mapping[str, str]] = {}


LANE_bps: Mapping[str, float] = {
    "SDR": 2.5e9 * 8 / 10,
    "DDR": 5e9 * 8 / 10,
    "QDR": 10e9 * 8 / 10,
    "FDR10": 10.3125e9 * 64 / 66,
    "FDR": 14.0625e9 * 64 / 66,
    "EDR": 25.78125e9 * 64 / 66,
    "HDR": 50e9,
    "NDR": 100e9,
    "XDR": 200e9,
}
"""Name -> bit/s of one lane after encoding, slowest first."""

SIGNALLING: Mapping[str, str] = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
"""Gbit/s of a lane on the wire, as the tools write it -> name of the speed."""

WIDTHS = (1, 2, 4, 8, 12)
UNKNOWN_WIDTH = "??"
UNKNOWN_SPEED = "???"
"""What infiniband-diags write for a width or speed that they do not know."""


def rate_Bps(rate: LinkRate) -> float | None:
    """The rate of a link in B/s per direction; None if a part of it is unknown."""
    if rate.width is None or rate.speed is None:
        return None
    return rate.width * LANE_bps[rate.speed] / 8


def show_rate(rate: LinkRate) -> str:
    """As ibnetdiscover writes it: "4xEDR"."""
    return f"{rate.width if rate.width is not None else '?'}x{rate.speed or '?'}"
