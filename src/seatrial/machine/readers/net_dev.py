"""/proc/net/dev -> the byte counters of network interfaces (Linux, proc_net(5))."""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.model.machine.links import Traffic

_LINE = re.compile(r"\s*(\S+):((?:\s*\d{1,20}){16})\s*\Z", re.ASCII)
_SENT = 8
"""The position of the sent bytes, after eight counters of what was received, whose first are the bytes."""
_HEADS = 2


def read_net_dev(text: str) -> dict[str, Traffic]:
    """Interface -> the bytes that it has sent and received, headers included. Raises ParseError."""
    found: dict[str, Traffic] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if number <= _HEADS and "|" in line:
            continue
        match = _LINE.match(line)
        if match is None:
            raise ParseError("/proc/net/dev", number, line)
        counters = [int(word) for word in match[2].split()]
        found[match[1]] = Traffic(sent_B=counters[_SENT], received_B=counters[0])
    return found
