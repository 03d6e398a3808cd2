"""Counters of links, as tools print them: perfquery, ibqueryerrors (infiniband-diags) and `ethtool -S`.

Each reader returns port -> counter -> value, with the names of `model.machine.links`; counters of traffic are left out.
"""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, read_lines
from seatrial.model.machine.links import CANONICAL

_PERFQUERY_PORT = re.compile(r"#\s*Port (?:extended )?counters: Lid (\d{1,6}) port (\d{1,4})\b", re.ASCII)
_PERFQUERY = re.compile(r"(\w+):\.*(0x[0-9a-fA-F]{1,16}|\d{1,20})\s*\Z", re.ASCII)
_QUERYERRORS = re.compile(r"\s*GUID (0x[0-9a-fA-F]{1,16}) port (\d{1,4}|ALL):(.*)\Z", re.ASCII)
_BRACKETS = re.compile(r"\[(\w+) == (\d{1,20})(?: \([^()\[\]]*\))?\]", re.ASCII)
_ETHTOOL = re.compile(r"\s+([\w.\-\[\]:]+): (\d{1,20})\s*\Z", re.ASCII)


def read_perfquery(data: bytes) -> dict[str, dict[str, int]]:
    """The ports are "lid 2052 port 1". Raises ParseError if there is none, or a counter has no value."""
    tool = "perfquery"
    found: dict[str, dict[str, int]] = {}
    port: dict[str, int] | None = None
    for line in read_lines(data, tool):
        text = line.text.strip()
        if head := _PERFQUERY_PORT.match(text):
            port = found.setdefault(f"lid {head[1]} port {head[2]}", {})
        elif port is not None and ":." in text:
            match = _PERFQUERY.match(text)
            if match is None:
                raise line.error(tool, "a counter without a value: was the line cut off?")
            _put(port, match[1], int(match[2], 0 if match[2].startswith("0x") else 10), line, tool)
    return _some(found, tool)


def read_ibqueryerrors(data: bytes) -> dict[str, dict[str, int]]:
    """The ports are "0x2c903006e29b0 port 5"; sums over all ports of a switch are left out. Raises ParseError."""
    tool = "ibqueryerrors"
    found: dict[str, dict[str, int]] = {}
    for line in read_lines(data, tool):
        match = _QUERYERRORS.match(line.text)
        if match is None:
            continue
        rest = _BRACKETS.sub("", match[3])
        if rest.strip():
            raise line.error(tool, f"not counters in the form [name == value]: {rest.strip()[:80]!r}")
        if match[2] != "ALL":
            port = found.setdefault(f"{match[1]} port {match[2]}", {})
            for name, value in _BRACKETS.findall(match[3]):
                _put(port, name, int(value), line, tool)
    return _some(found, tool)


def read_ethtool_statistics(data: bytes, interface: str) -> dict[str, dict[str, int]]:
    """The counters of one interface. Raises ParseError if there is none."""
    tool = "ethtool -S"
    port: dict[str, int] = {}
    for line in read_lines(data, tool):
        if match := _ETHTOOL.match(line.text):
            _put(port, match[1], int(match[2]), line, tool)
    return _some({interface: port} if port else {}, tool)


def _put(port: dict[str, int], name: str, value: int, line: Line, tool: str) -> None:
    known = CANONICAL.get(name)
    if known is not None and port.setdefault(known, value) != value:
        raise line.error(tool, f"{name} is here a second time, with another value")


def _some(found: dict[str, dict[str, int]], tool: str) -> dict[str, dict[str, int]]:
    if not found:
        raise ParseError(tool, None, "", "no counters in the file")
    return found
