"""What the tools of infiniband-diags have in common: fields, messages, node descriptions, GUIDs of ports.

* Messages are on standard error, which may be saved with the output. A query that got no answer means that a part of
  the fabric was not seen: the tools go on, print what they have, and often end with status 0.
* The description of a host's adapter is "<host> HCA-1" or "<host> mlx5_0" (rdma-core sets it), without a host name
  the firmware's own text, such as "MT4129 ConnectX7   Mellanox Technologies".
* An adapter with several ports numbers their GUIDs after its own: the GUID of port 2 is that of port 1 plus one. Newer
  hardware has an adapter of one port for each of its ports.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.fabric.parts import SIGNALLING, UNKNOWN_SPEED, UNKNOWN_WIDTH, WIDTHS, FabricSource, LANE_bps, LinkRate
from seatrial.model.machine.fabric import AdapterKind

MAX_PORT = 255
"""A port number has one byte (InfiniBand Architecture Specification, PortNum)."""


def port_number(text: str, source: FabricSource) -> int:
    """A port. Raises ParseError for a number that no device has."""
    number = int(text)
    if number > MAX_PORT:
        raise source.error(f"port {text}: there are at most {MAX_PORT} ports on a device")
    return number


def guid(text: str, source: FabricSource) -> str:
    """A GUID as 16 hexadecimal digits. Raises ParseError if it is longer."""
    digits = text.lower().removeprefix("0x")
    if not 1 <= len(digits) <= 16:
        raise source.error(f"{text} is not a GUID of 16 hexadecimal digits")
    return digits.zfill(16)


def lanes(text: str, source: FabricSource) -> int:
    """A link width, without its x. Raises ParseError for one that InfiniBand does not have."""
    if not text.isdecimal() or int(text[:4]) not in WIDTHS:
        raise source.error(f"{text}x is not a width of a link")
    return int(text)


def speed_name(text: str, source: FabricSource) -> str | None:
    """The name of a lane's speed, from the name or from its signalling rate ("25.78125 Gbps"); None for "???".

    Raises ParseError for any other text.
    """
    if text == UNKNOWN_SPEED:
        return None
    name = SIGNALLING.get(text.removesuffix("Gbps").strip()) if text.endswith("Gbps") else text
    if name not in LANE_bps:
        raise source.error(f"{text!r} is not a speed of a link")
    return name


def rate(width: str, speed: str, source: FabricSource) -> LinkRate:
    """Lanes ("??": unknown) and speed of a link."""
    return LinkRate(None if width == UNKNOWN_WIDTH else lanes(width, source), speed_name(speed, source))


_MESSAGE = re.compile(r"(?:ib(?:warn|error|panic|debug): |[\w./+~-]{0,200}\w\.c:\d{1,6};? |DR path slid \d)", re.ASCII)
_FAILURE = re.compile(r"bad status|timed out|fail|can't|cannot|unable|iberror|ibpanic", re.IGNORECASE)


class ToolMessages(Struct):
    """The messages in a dump."""

    failures: int = 0
    first: FabricSource | None = None

    def take(self, text: str, source: FabricSource) -> bool:
        """Whether a line is a message of a tool; failures are counted."""
        if _MESSAGE.match(text) is None:
            return False
        if _FAILURE.search(text):
            self.failures += 1
            self.first = self.first or source
        return True

    @property
    def missing(self) -> str:
        """Why parts of the fabric may be missing; "" if there is no such message."""
        if self.first is None:
            return ""
        what = "a failed query" if self.failures == 1 else f"{self.failures} failed queries, the first"
        return f"the tool reports {what} on line {self.first.line}: parts of the fabric may be missing"


_HOST = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.\-]{0,254})(?:\s+(?P<device>[A-Za-z][A-Za-z_]*-?\d[\w.]*))?\s*\Z", re.ASCII
)
_NO_HOSTS = re.compile(r"MT\d+\Z", re.ASCII)  # Chips without firmware text after them.
SHARED_NAMES = ("localhost", "localhost.localdomain")
"""Hosts that were never named; several of them look like one."""
_SWITCH = re.compile(r"MF0;|(?:Infiniscale|SwitchX|SwitchIB|Switch-IB|Quantum)\b", re.ASCII)
_CHASSIS = re.compile(r"MF0;(?P<name>[^:;]+):[^;]*\Z")  # A managed switch: "MF0;<host name>:<product>/<unit>".


def host_of(description: str) -> str | None:
    """The host in the description of an adapter; None if it has none."""
    match = _HOST.match(description)
    return match["host"] if match and not _NO_HOSTS.match(match["host"]) else None


def adapter_kind(description: str) -> AdapterKind:
    """What kind of adapter has this description."""
    if "Aggregation Node" in description:
        return AdapterKind.AGGREGATION
    return AdapterKind.UNNAMED if host_of(description) is None else AdapterKind.HOST


def is_switch_name(description: str) -> bool:
    """Whether only a switch has this description: that of its management system, or its chip's."""
    return _SWITCH.match(description) is not None


def switch_name(description: str) -> str:
    """The name of a switch: that of its management system, else the description."""
    match = _CHASSIS.match(description)
    return match["name"] if match else description.strip()


class Adapters(Struct):
    """The GUID of a port -> its adapter. Ports are of one adapter if it has the same name and their GUIDs follow."""

    _ports: dict[str, tuple[int, str]] = {}
    _of: dict[tuple[int, str], dict[int, str]] = {}

    def add(self, guid: str, port: int, name: str) -> None:
        """A port: its GUID as 16 hexadecimal digits, its number, the name of its adapter."""
        key = (int(guid, 16) - port, name)
        self._ports.setdefault(guid, key)
        self._of.setdefault(key, {}).setdefault(port, guid)

    def of(self, guid: str) -> str:
        """The id of the adapter of a port: "H-" and the GUID of the adapter, or of its only port."""
        key = self._ports[guid]
        return f"H-{guid if len(self._of[key]) == 1 else format(key[0], '016x')}"
