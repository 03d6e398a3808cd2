"""What tools print of the network adapters of one node: `ibstat`, `opainfo`, `cxi_stat` and `ethtool INTERFACE`.

* `ibstat` (infiniband-diags), ibstat(8): type, firmware, and rate and state of each port. Rates are in Gbit/s, as in
  sysfs. GUIDs and LIDs are not read.
* `opainfo` (Omni-Path FastFabric), opainfo(1): state, width, speed and quality of each port. A port begins with
  "<adapter>:<port>"; "Act" is what the link does, "En" what is enabled. Omni-Path names the speed of a lane by its
  data rate: 25Gb.
* `cxi_stat` (HPE Slingshot), cxi_stat(1), of libcxi: speed and state of links. A speed is written as BS_200G: 200
  Gbit/s of data.
* `ethtool`, ethtool(8): speed, duplex and autonegotiation of Ethernet interfaces, and the speeds that they support.
  Several interfaces may follow each other.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import Line, read_lines, refuse_pick, without_prefix
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.machine.links import pci_address
from seatrial.model.machine.machine import DeviceKind

_IBSTAT = "ibstat"
_CA = re.compile(r"(?:CA|iWARP RNIC|Switch|Router|\?\?\?) '(?P<name>[\w.\-]{1,64})'\s*\Z", re.ASCII)
_IB_PORT = re.compile(r"Port (?P<number>\d{1,3}):\s*\Z", re.ASCII)
_IB_FIELD = re.compile(r"(?P<key>(?:iWARP |[A-Z])[A-Za-z ]{2,40}):(?:\s+(?P<value>\S.*?))?\s*\Z")
_IB_RATE = re.compile(r"(\d{1,4}(?:\.\d)?)(?:\s.*)?\Z", re.ASCII)
_WHOLE = re.compile(r"\d{1,3}\Z", re.ASCII)


class _Adapter(Struct):
    line: Line
    name: str
    fields: dict[str, str] = {}
    ports: dict[int, dict[str, str]] = {}


def read_ibstat(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey. Raises ParseError for damaged or incomplete text."""
    refuse_pick(pick, _IBSTAT)
    lines = read_lines(data, _IBSTAT)
    adapters = _adapters(lines)
    if not adapters:
        raise lines[0].error(_IBSTAT, "no CA '...' in the file") if lines else UsageError("ibstat: the file is empty")
    return Survey(_IBSTAT, named_parts=tuple(map(_ib_part, adapters)))


def _adapters(lines: tuple[Line, ...]) -> list[_Adapter]:
    found: dict[str, _Adapter] = {}
    adapter: _Adapter | None = None
    fields: dict[str, str] = {}
    for line in lines:
        text = without_prefix(line.text).strip()
        if text.startswith("ibpanic:"):
            raise line.error(_IBSTAT, "ibstat failed here: what it printed is incomplete")
        if match := _CA.match(text):
            if match["name"] in found:
                raise _twice(line, _IBSTAT, match["name"])
            adapter = found[match["name"]] = _Adapter(line, match["name"])
            fields = adapter.fields
        elif adapter is not None and (match := _IB_PORT.match(text)):
            if int(match["number"]) in adapter.ports:
                raise line.error(_IBSTAT, f"port {match['number']} of {adapter.name} is here a second time")
            fields = adapter.ports[int(match["number"])] = {}
        elif adapter is not None and (match := _IB_FIELD.match(text)):
            if fields.setdefault(match["key"], match["value"] or "") != (match["value"] or ""):
                raise line.error(_IBSTAT, f"{match['key']} is given twice for {adapter.name}")
        elif text.startswith(("CA ", "iWARP RNIC ", "Port ")) and ("'" in text or text.endswith(":")):
            raise line.error(_IBSTAT, "not an adapter or port in the form of ibstat")
    for each in found.values():
        _check(each)
    return list(found.values())


def _check(adapter: _Adapter) -> None:
    """Raise ParseError for an adapter that is not complete."""
    stated = adapter.fields.get("Number of ports", "")
    if not _WHOLE.match(stated) or int(stated) != len(adapter.ports):
        why = f"{len(adapter.ports)} of {stated or '?'} ports of {adapter.name}: incomplete"
        raise adapter.line.error(_IBSTAT, why)
    for number, port in adapter.ports.items():
        missing = [key for key in ("State", "Physical state", "Rate") if not port.get(key)]
        if missing or not _IB_RATE.match(port["Rate"]):
            what = f"{missing[0]} is missing" if missing else f"the rate is {port['Rate']!r}"
            raise adapter.line.error(_IBSTAT, f"port {number} of {adapter.name}: {what}")


def _ib_part(adapter: _Adapter) -> NamedPart:
    book = FactBook()
    kind = next((value for key, value in adapter.fields.items() if key.endswith(" type")), None)
    book.say("hca_type", kind, _IBSTAT)
    book.say("firmware", adapter.fields.get("Firmware version"), _IBSTAT)
    book.say("ports", len(adapter.ports), _IBSTAT)
    for position, (number, port) in enumerate(sorted(adapter.ports.items())):
        prefix = "" if position == 0 else f"port{number}_"
        # The rate of a port without a link is that of its slowest mode.
        match = _IB_RATE.match(port["Rate"]) if port["Physical state"] == "LinkUp" else None
        book.say(f"{prefix}rate", float(match[1]) * 1e9 / 8 if match else None, _IBSTAT, "B/s", volatile=True)
        book.say(f"{prefix}state", port["State"].lower(), _IBSTAT, volatile=True)
        book.say(f"{prefix}physical_state", port["Physical state"], _IBSTAT, volatile=True)
        book.say(f"{prefix}link_layer", port.get("Link layer"), _IBSTAT)
    return NamedPart(DeviceKind.NIC, adapter.name, facts=book.facts())


_OPAINFO = "opainfo"
_OPA_PORT = re.compile(r"\s{0,8}(?P<name>hfi\d{1,2}_\d{1,3}):(?P<port>\d{1,2})\s+PortG(?:ID|UID):", re.ASCII)
_OPA_STATE = re.compile(r"\s+PortState:\s+(?P<state>[A-Za-z]+)")
_GBPS = r"(?P<{}>\d{{1,4}}(?:\.\d{{1,2}})?)Gb"
_OPA_SPEED = re.compile(rf"\s+LinkSpeed\s+Act:\s*{_GBPS.format('act')}\s+En:\s*{_GBPS.format('en')}", re.ASCII)
_OPA_WIDTH = re.compile(r"\s+LinkWidth\s+Act:\s*(?P<act>\d{1,2})\s+En:\s*(?P<en>[\d,]{1,20})\s*\Z", re.ASCII)
_OPA_QUALITY = re.compile(r"\s+Link Quality:\s*(?P<quality>\d)\b", re.ASCII)


def read_opainfo(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey; the facts of ports after the first begin with "port2_". Raises ParseError."""
    refuse_pick(pick, _OPAINFO)
    books: dict[str, tuple[FactBook, list[str]]] = {}
    blocks: list[list[Line]] = []
    for line in read_lines(data, _OPAINFO):
        if _OPA_PORT.match(line.text):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    for block in blocks:
        _read_port(block, books)
    if not books:
        raise ParseError(_OPAINFO, None, "", "no port in the form of opainfo in the file")
    parts = (NamedPart(DeviceKind.NIC, name, facts=book.facts()) for name, (book, _) in books.items())
    return Survey(_OPAINFO, named_parts=tuple(parts))


def _read_port(block: list[Line], books: dict[str, tuple[FactBook, list[str]]]) -> None:
    def first(pattern: re.Pattern[str]) -> re.Match[str] | None:
        return next((match for line in block if (match := pattern.match(line.text))), None)

    head = first(_OPA_PORT)
    if head is None:
        return
    named = f"port {head['port']} of {head['name']}"
    book, ports = books.setdefault(head["name"], (FactBook(), []))
    if head["port"] in ports:
        raise block[0].error(_OPAINFO, f"{named} is here a second time")
    prefix = f"port{head['port']}_" if ports else ""
    ports.append(head["port"])
    state, speed, width, quality = map(first, (_OPA_STATE, _OPA_SPEED, _OPA_WIDTH, _OPA_QUALITY))
    if state is None:
        raise block[0].error(_OPAINFO, f"{named} has no PortState: was the dump cut off?")
    book.say(f"{prefix}state", state["state"].lower(), _OPAINFO, volatile=True)
    if speed is not None and width is not None:
        lane_Bps = float(speed["act"]) * 1e9 / 8
        book.say(f"{prefix}rate", lane_Bps * int(width["act"]) or None, _OPAINFO, "B/s", volatile=True)
        book.say(f"{prefix}link_width", int(width["act"]), _OPAINFO, volatile=True)
        widest = max((int(text) for text in width["en"].split(",") if text), default=0)
        book.say(f"{prefix}enabled_rate", float(speed["en"]) * 1e9 / 8 * widest or None, _OPAINFO, "B/s")
    if quality is not None:
        book.say(f"{prefix}link_quality", int(quality["quality"]), _OPAINFO, "1", volatile=True)


def _blocks(
    data: bytes, tool: str, head: re.Pattern[str], field: re.Pattern[str], listed: str = ""
) -> dict[str, tuple[Line, dict[str, str]]]:
    """Name of an adapter -> its first line, and its fields. Lines below the field `listed` continue it."""
    found: dict[str, tuple[Line, dict[str, str]]] = {}
    fields: dict[str, str] | None = None
    last = ""
    for line in read_lines(data, tool):
        if match := head.match(line.text):
            if match["name"] in found:
                raise _twice(line, tool, match["name"])
            fields, last = {}, ""
            found[match["name"]] = (line, fields)
        elif fields is not None and (match := field.match(line.text)):
            last = match["key"]
            if fields.get(last, match["value"]) != match["value"] and last != listed:
                raise line.error(tool, f"{last} is given twice")
            fields[last] = match["value"]
        elif fields is not None and listed and last == listed:
            fields[last] += f" {line.text.strip()}"
    return found


def _twice(line: Line, tool: str, name: str) -> ParseError:
    return line.error(tool, f"{name} is here a second time: are these two dumps in one file?")


_CXI_STAT = "cxi_stat"
_DEVICE = re.compile(r"\s{0,8}Device:\s+(?P<name>cxi\d{1,3})\s*\Z", re.ASCII)
_CXI_FIELD = re.compile(r"\s+(?P<key>[A-Za-z][\w /]{1,40}):\s+(?P<value>\S.*?)\s*\Z")
_CXI_SPEED = re.compile(r"[A-Z]{2}_(?P<Gbps>\d{1,4})G\Z", re.ASCII)
_MTU = re.compile(r"\d{1,6}\Z", re.ASCII)


def read_cxi_stat(data: bytes, pick: int | None = None) -> Survey:
    """The adapters as a survey; their names on the network (hsn0) are aliases. Raises ParseError."""
    refuse_pick(pick, _CXI_STAT)
    devices = _blocks(data, _CXI_STAT, _DEVICE, _CXI_FIELD)
    if not devices:
        raise ParseError(_CXI_STAT, None, "", "no adapter (Device: cxi0) in the file")
    return Survey(_CXI_STAT, named_parts=tuple(_cxi_part(name, *found) for name, found in devices.items()))


def _cxi_part(name: str, line: Line, fields: dict[str, str]) -> NamedPart:
    if "Link state" not in fields:
        raise line.error(_CXI_STAT, f"{name} has no link state: was the dump cut off?")
    book = FactBook()
    book.say("firmware", fields.get("FW Version"), _CXI_STAT)
    book.say("part_number", fields.get("Part Number"), _CXI_STAT)
    speed = _CXI_SPEED.match(fields.get("Link speed", ""))
    book.say("rate", float(speed["Gbps"]) * 1e9 / 8 if speed else None, _CXI_STAT, "B/s", volatile=True)
    book.say("state", fields["Link state"].lower(), _CXI_STAT, volatile=True)
    mtu = fields.get("Link MTU", "")
    book.say("mtu", int(mtu) if _MTU.match(mtu) else None, _CXI_STAT, "B")
    for fact, key in (("link_retry", "Link layer retry"), ("link_media", "Link media")):
        book.say(fact, fields.get(key), _CXI_STAT)
    network = fields.get("Network device")
    address = pci_address(fields.get("PCIE slot", ""))
    return NamedPart(DeviceKind.NIC, name, address, aliases=(network,) if network else (), facts=book.facts())


_ETHTOOL = "ethtool"
_ETH_HEAD = re.compile(r"Settings for (?P<name>[\w.\-]{1,32}):\s*\Z", re.ASCII)
_ETH_FIELD = re.compile(r"\s+(?P<key>[A-Za-z][\w \-]{1,40}):\s*(?P<value>.*?)\s*\Z")
_ETH_SPEED = re.compile(r"(?P<Mbps>\d{1,7})Mb/s\Z", re.ASCII)
_MODE = re.compile(r"\b(\d{1,7})base[\w]*/(?:Half|Full)", re.ASCII)
_MODES = "Supported link modes"


def read_ethtool(data: bytes, pick: int | None = None) -> Survey:
    """The interfaces as a survey. Raises ParseError."""
    refuse_pick(pick, _ETHTOOL)
    found = _blocks(data, _ETHTOOL, _ETH_HEAD, _ETH_FIELD, listed=_MODES)
    if not found:
        raise ParseError(_ETHTOOL, None, "", "no interface (Settings for eth0:) in the file")
    return Survey(_ETHTOOL, named_parts=tuple(_eth_part(name, *each) for name, each in found.items()))


def _eth_part(name: str, line: Line, fields: dict[str, str]) -> NamedPart:
    if "Link detected" not in fields:
        raise line.error(_ETHTOOL, f"{name} has no line `Link detected`: was the dump cut off?")
    book = FactBook()
    is_up = fields["Link detected"].startswith("yes")
    speed = _ETH_SPEED.match(fields.get("Speed", ""))
    book.say("rate", float(speed["Mbps"]) * 1e6 / 8 if speed else None, _ETHTOOL, "B/s", volatile=True)
    book.say("state", "up" if is_up else "down", _ETHTOOL, volatile=True)
    duplex = fields.get("Duplex", "").lower()
    book.say("duplex", duplex if duplex in ("full", "half") else None, _ETHTOOL, volatile=True)
    book.say("autonegotiation", fields.get("Auto-negotiation"), _ETHTOOL)
    modes = [int(speed) for speed in _MODE.findall(fields.get(_MODES, ""))]
    book.say("fastest_rate", max(modes) * 1e6 / 8 if modes else None, _ETHTOOL, "B/s")
    return NamedPart(DeviceKind.NIC, name, facts=book.facts())
