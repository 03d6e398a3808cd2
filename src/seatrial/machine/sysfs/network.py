"""Network and InfiniBand adapters, and the counters of their links.

Formats: Linux, Documentation/ABI/testing/sysfs-class-net and Documentation/ABI/stable/sysfs-class-infiniband.
An adapter with both an RDMA name (mlx5_0) and network names (ib0, ens1f0) is one device: the RDMA name is its name, as
in topology matrices; the others are aliases. MAC addresses and GUIDs are not read.
"""

from __future__ import annotations

import re

from seatrial.machine.files import FileTree
from seatrial.machine.survey import FactBook, NamedPart
from seatrial.machine.sysfs.pci import pci_of
from seatrial.model.machine.links import LINK_COUNTERS
from seatrial.model.machine.machine import DeviceKind

_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"
_RATE = re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec(?: \((\d+)X ([A-Z0-9]+)\))?")


def survey_network(files: FileTree) -> tuple[NamedPart, ...]:
    """The hardware adapters; loopback, bridges, bonds and other virtual interfaces are skipped."""
    nets: dict[str, tuple[str, str]] = {}
    for name in files.names(_NET):
        real = files.real(f"{_NET}/{name}")
        device = files.real(f"{_NET}/{name}/device")
        if real is not None and device is not None and "/devices/virtual/" not in real:
            nets[name] = (real, device)
    adapters: list[NamedPart] = []
    for name in files.names(_RDMA):
        device = files.real(f"{_RDMA}/{name}/device")
        aliases = tuple(net for net, (_, net_device) in nets.items() if net_device == device)
        adapters.append(_adapter(files, name, device or "", aliases))
        for alias in aliases:
            del nets[alias]
    adapters += [_adapter(files, name, real, ()) for name, (real, _) in nets.items()]
    return tuple(adapters)


def _adapter(files: FileTree, name: str, real: str, aliases: tuple[str, ...]) -> NamedPart:
    pci = pci_of(real)
    book = FactBook()
    is_rdma = files.exists(f"{_RDMA}/{name}")
    if is_rdma:
        _add_rdma(files, f"{_RDMA}/{name}", book)
        for net in aliases[:1]:  # the first port; its facts have a prefix
            _add_net(files, f"{_NET}/{net}", book, "net_")
    else:
        _add_net(files, f"{_NET}/{name}", book)
    driver = files.real(f"{_RDMA if is_rdma else _NET}/{name}/device/driver")
    book.say("driver", driver.rsplit("/", 1)[-1] if driver else None, f"/sys/class/*/{name}/device/driver")
    numa = files.integer(f"/sys/bus/pci/devices/{pci}/numa_node") if pci else None
    return NamedPart(DeviceKind.NIC, name, pci, numa if numa is not None and numa >= 0 else None, aliases, book.facts())


def _add_net(files: FileTree, folder: str, book: FactBook, prefix: str = "") -> None:
    # `speed` is in Mbit/s; it is unreadable or -1 while the link is down, and missing for virtio.
    speed = files.integer(f"{folder}/speed")
    rate = speed * 1e6 / 8 if speed is not None and 0 < speed < 1 << 31 else None
    book.say(f"{prefix}rate", rate, f"{folder}/speed", "B/s", volatile=True)
    book.say(f"{prefix}state", files.word(f"{folder}/operstate"), f"{folder}/operstate", volatile=True)
    book.say("mtu", files.integer(f"{folder}/mtu"), f"{folder}/mtu", "B")
    duplex = files.word(f"{folder}/duplex")
    book.say("duplex", duplex if duplex != "unknown" else None, f"{folder}/duplex", volatile=True)


def _add_rdma(files: FileTree, folder: str, book: FactBook) -> None:
    """Add rate, state and link layer of each port of an RDMA device; `rate` without prefix is that of port 1."""
    for fact, file in (("firmware", "fw_ver"), ("board_id", "board_id"), ("hca_type", "hca_type")):
        book.say(fact, files.word(f"{folder}/{file}"), f"{folder}/{file}")
    ports = sorted((name for name in files.names(f"{folder}/ports") if name.isdecimal()), key=int)
    book.say("ports", len(ports) or None, f"{folder}/ports")
    for position, port in enumerate(ports):
        prefix = "" if position == 0 else f"port{port}_"
        match = _RATE.match(files.word(f"{folder}/ports/{port}/rate") or "")
        rate = float(match[1]) * 1e9 / 8 if match else None
        book.say(f"{prefix}rate", rate, f"{folder}/ports/{port}/rate", "B/s", volatile=True)
        if match and match[2]:
            book.say(f"{prefix}link_width", int(match[2]), f"{folder}/ports/{port}/rate", volatile=True)
            book.say(f"{prefix}link_speed", match[3], f"{folder}/ports/{port}/rate", volatile=True)
        state = (files.word(f"{folder}/ports/{port}/state") or "").rpartition(": ")[2].lower()
        book.say(f"{prefix}state", state, f"{folder}/ports/{port}/state", volatile=True)
        physical = (files.word(f"{folder}/ports/{port}/phys_state") or "").rpartition(": ")[2]
        book.say(f"{prefix}physical_state", physical, f"{folder}/ports/{port}/phys_state", volatile=True)
        layer = files.word(f"{folder}/ports/{port}/link_layer")
        book.say(f"{prefix}link_layer", layer, f"{folder}/ports/{port}/link_layer")


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
