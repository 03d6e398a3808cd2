"""Counters of this machine's links, from /sys/class/infiniband and /sys/class/net."""

from __future__ import annotations

from seatrial.machine.files import FileTree
from seatrial.model.link_counters import LINK_COUNTERS

_RDMA = "/sys/class/infiniband"
_NET = "/sys/class/net"
_MOST_PORTS = 64
"""Of more ports (virtual functions), the first are read: every file is a request to the adapter."""


def read_link_counters(files: FileTree) -> dict[str, dict[str, int]]:
    """Port ("mlx5_0 port 1", "eth0") -> counter -> value, of adapters that are hardware. Never fails."""
    places = [
        (f"{name} port {port}", f"{_RDMA}/{name}/ports/{port}/{folder}")
        for name in files.names(_RDMA)
        for port in files.names(f"{_RDMA}/{name}/ports")
        for folder in ("counters", "hw_counters")
    ]
    places += [
        (name, f"{_NET}/{name}/statistics") for name in files.names(_NET) if files.exists(f"{_NET}/{name}/device")
    ]
    found: dict[str, dict[str, int]] = {}
    for port, folder in places[: 2 * _MOST_PORTS]:
        values = {name: files.integer(f"{folder}/{name}") for name in files.names(folder) if name in LINK_COUNTERS}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            found.setdefault(port, {}).update(known)
    return found
