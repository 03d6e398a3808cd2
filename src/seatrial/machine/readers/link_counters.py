"""Counters of links, as tools print them: perfquery, ibqueryerrors (infiniband-diags) and `ethtool -S`.

Each reader returns port -> counter -> value, with the names of `model.machine.links`; of the counters of traffic, the
packets and the data received (in words of 4 B) are kept, as a scale for the others, unless such a counter stopped at
the largest value of 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, read_lines, refuse_pick, without_prefix
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import CANONICAL, PACKETS_RECEIVED, PACKETS_SENT, WORDS_RECEIVED
from seatrial.model.machine.machine import DeviceKind

_PERFQUERY_PORT = re.compile(
    r"(?:#\s*)?(?P<what>\w{1,40}(?: extended)?) counters: Lid (\d{1,6}) port (\d{1,4})\b", re.ASCII
)
_PERFQUERY = re.compile(r"(\w+):\.*(0x[0-9a-fA-F]{1,16}|\d{1,20})\s*\Z", re.ASCII)
_QUERYERRORS = re.compile(r"\s*GUID (0x[0-9a-fA-F]{1,16}) port (\d{1,4}|ALL):(.*)\Z", re.ASCII)
_ERRORS_FOR = re.compile(r'\s*Errors for (?:(?P<guid>0x[0-9a-fA-F]{1,16}) )?"(?P<name>[^"]{1,200})"\s*\Z')
_SUMMARY = re.compile(
    r"\s*(?:##\s*)?Summary: (?P<nodes>\d{1,7}) nodes checked, (?P<bad>\d{1,7}) bad nodes found\s*\Z", re.ASCII
)
_PORTS = re.compile(r"\s*(?:##\s*)?(?P<ports>\d{1,8}) ports checked, (?P<bad>\d{1,8}) ports have errors", re.ASCII)
_UNREAD = re.compile(r"\s*(?:##\s*)?(?P<number>\d{1,7}) PMA query failures", re.ASCII)
_BRACKETS = re.compile(r"\[(\w+) == (\d{1,20})(?: \([^()\[\]]*\))?\]", re.ASCII)
_ETHTOOL = re.compile(r"(\s{0,40})([\w.\-\[\]:]{1,80}): (\d{1,20})\s*\Z", re.ASCII)
_ETHTOOL_BEGIN = re.compile(r"\s*NIC statistics:\s*\Z")
_ETHTOOL_COMMAND = re.compile(r"\bethtool\s+(?:-S|--statistics)\s+(?P<name>[\w.\-]{1,32})", re.ASCII)

TRAFFIC: Mapping[str, str] = {
    **dict.fromkeys(("PortXmitPkts", "XmtPkts", "tx_packets", "tx_packets_phy"), PACKETS_SENT),
    **dict.fromkeys(("PortRcvPkts", "RcvPkts", "rx_packets", "rx_packets_phy"), PACKETS_RECEIVED),
    **dict.fromkeys(("PortRcvData", "RcvData"), WORDS_RECEIVED),
}
_STOPPED = (1 << 32) - 1


def read_perfquery(data: bytes) -> dict[str, dict[str, int]]:
    """The ports are "lid 2052 port 1"; a port may have several sets of counters (`-E`). Raises ParseError if there is
    none, or a counter has no value."""
    tool = "perfquery"
    seen: set[tuple[str, str]] = set()
    found: dict[str, dict[str, int]] = {}
    printed: dict[str, int] = {}
    port: dict[str, int] | None = None
    for line in read_lines(data, tool):
        text = without_prefix(line.text).strip()
        if head := _PERFQUERY_PORT.match(text):
            name = f"lid {head[2]} port {head[3]}"
            if (name, head["what"]) in seen:
                raise line.error(tool, f"{name} is here a second time: are these two dumps in one file?")
            seen.add((name, head["what"]))
            port, printed = found.setdefault(name, {}), {}
        elif port is not None and ":." in text:
            match = _PERFQUERY.match(text)
            if match is None:
                raise line.error(tool, "a counter without a value: was the line cut off?")
            if line.is_ended:  # the number at the end of a file may have been cut off
                _put(port, match[1], int(match[2], 0 if match[2].startswith("0x") else 10), line, tool, printed)
    return _some(found, tool)


class QueriedErrors(Frozen):
    """What ibqueryerrors found: the counters of each port ("0x2c903006e29b0 port 5"), the device of each port's GUID
    (GUID of a switch, or None for an adapter; its description), and its summary."""

    ports: Mapping[str, Mapping[str, int]]
    owners: Mapping[str, tuple[str | None, str]]
    summary: str = ""
    failures: int = 0


def read_ibqueryerrors(data: bytes) -> QueriedErrors:
    """Sums over all ports of a switch are left out. Raises ParseError if there is neither a port nor a summary."""
    tool = "ibqueryerrors"
    found: dict[str, dict[str, int]] = {}
    owners: dict[str, tuple[str | None, str]] = {}
    owner: tuple[str | None, str] | None = None
    summary: list[str] = []
    failures = 0
    for line in read_lines(data, tool):
        text = without_prefix(line.text)
        match = _QUERYERRORS.match(text)
        if match is None:
            if heading := _ERRORS_FOR.match(text):
                owner = (heading["guid"], heading["name"])
            elif of := _SUMMARY.match(text):
                summary.append(f"{of['nodes']} nodes checked, {of['bad']} with errors")
            elif of := _PORTS.match(text):
                summary.append(f"{of['ports']} ports checked, {of['bad']} with errors beyond the thresholds")
            elif of := _UNREAD.match(text):
                failures = int(of["number"])
            continue
        rest = _BRACKETS.sub("", match[3])
        if rest.strip() or not line.is_ended:
            why = rest.strip()[:80] or "the last line has no line break"
            raise line.error(tool, f"not counters in the form [name == value]: {why!r}")
        if match[2] != "ALL":
            name = f"{match[1]} port {match[2]}"
            if name in found:
                raise line.error(tool, f"{name} is here a second time: are these two dumps in one file?")
            port, printed = found.setdefault(name, {}), dict[str, int]()
            if owner is not None:
                owners[name] = owner
            for counter, value in _BRACKETS.findall(match[3]):
                _put(port, counter, int(value), line, tool, printed)
    return QueriedErrors(found if summary else _some(found, tool), owners, "; ".join(summary), failures)


def read_ethtool_statistics(data: bytes, interface: str) -> dict[str, dict[str, int]]:
    """The counters of one interface. Raises ParseError if there is none."""
    tool = "ethtool -S"
    port: dict[str, int] = {}
    printed: dict[str, int] = {}
    is_begun = False
    for line in read_lines(data, tool):
        text = without_prefix(line.text)
        is_begun |= _ETHTOOL_BEGIN.match(text) is not None
        match = _ETHTOOL.match(text)
        is_own = match is not None and (bool(match[1]) or is_begun or match[2] in CANONICAL or match[2] in TRAFFIC)
        if match and is_own and line.is_ended:  # the number at the end of a file may have been cut off
            _put(port, match[2], int(match[3]), line, tool, printed)
    return _some({interface: port} if port or (printed and is_begun) else {}, tool)


def read_ethtool_s(data: bytes, pick: int | None = None) -> Survey:
    """The interface as a survey. Its name is that of the command above the counters, else "interface". Raises
    ParseError; also for the counters of two interfaces."""
    tool = "ethtool-s"
    refuse_pick(pick, tool)
    lines = read_lines(data, tool)
    begins = [line for line in lines if _ETHTOOL_BEGIN.match(without_prefix(line.text))]
    if len(begins) > 1:
        raise begins[1].error(tool, "the counters of a second interface: give each in its own file")
    names = [match["name"] for line in lines if (match := _ETHTOOL_COMMAND.search(line.text[:2000]))]
    name = names[0] if names else "interface"
    counters = read_ethtool_statistics(data, name)[name]
    book = FactBook()
    for counter, value in counters.items():
        book.say(counter, value, "ethtool -S", "1", volatile=True)
    unread = () if names else (f"{tool}: the name of the interface: the command is not in the text",)
    return Survey("ethtool -S", named_parts=(NamedPart(DeviceKind.NIC, name, facts=book.facts()),), unread=unread)


def _put(port: dict[str, int], name: str, value: int, line: Line, tool: str, printed: dict[str, int]) -> None:
    """Add a counter; of several that mean the same (rx_packets, rx_packets_phy), the larger one."""
    if printed.setdefault(name, value) != value:
        raise line.error(tool, f"{name} is here a second time, with another value")
    known = CANONICAL.get(name) or TRAFFIC.get(name)
    if known is not None and not (name in TRAFFIC and value == _STOPPED):
        port[known] = max(value, port.get(known, 0))


def _some(found: dict[str, dict[str, int]], tool: str) -> dict[str, dict[str, int]]:
    if not found:
        raise ParseError(tool, None, "", "no counters in the file")
    return found
