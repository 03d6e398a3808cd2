"""Node descriptions of InfiniBand: the names that drivers give to switches and adapters.

A host's adapter is "<host> HCA-1" or "<host> mlx5_0" (rdma-core sets it); without a host name it is the firmware's own
text, such as "MT4129 ConnectX7   Mellanox Technologies".
"""

from __future__ import annotations

import re

from seatrial.model.fabric import AdapterKind

_HOST = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.\-]{0,254})(?:\s+(?P<device>[A-Za-z][A-Za-z_]*-?\d[\w.]*))?\s*\Z", re.ASCII
)
_NO_HOSTS = re.compile(r"MT\d+\Z", re.ASCII)
"""Chips without firmware text after them."""
SHARED_NAMES = ("localhost", "localhost.localdomain")
"""Hosts that were never named; several of them look like one."""
_SWITCH = re.compile(r"MF0;|(?:Infiniscale|SwitchX|SwitchIB|Switch-IB|Quantum)\b", re.ASCII)
_CHASSIS = re.compile(r"MF0;(?P<name>[^:;]+):[^;]*\Z")
"""A managed switch: "MF0;<host name>:<product>/<unit>"."""


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
