"""PCIe links of the tree, and the distance of GPUs and adapters in it, in the classes of `nvidia-smi topo -m`.

PIX: below one PCIe switch (or two functions of one device); PXB: through several switches; PHB: through the host
bridge; NODE: through two host bridges of one NUMA node; SYS: between NUMA nodes (legend of nvidia-smi topo). NCCL has
no host bridges: its PHB stands for both PHB and NODE. If another source does not show the bridges above a device
(`lspci -s`), any class but SYS is possible: None. Two GPUs of one vendor may have direct links (NVLink, XGMI) that the
PCI tree does not show: their class is None too.

Other facts about pairs are path classes from matrices, direct links, and access to each other's memory. A source refers
to devices by its own names; here these become ids. If several sources describe a pair, the first one counts; a pair
that no source describes has the class that follows from the PCI tree (`paths.pci_paths`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from seatrial.machine.survey import PciPart, PeerLink, Survey, SurveyLinkRate
from seatrial.model.machine.limit import Basis, Limit, pcie_bandwidth
from seatrial.model.machine.links import faces_down
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, NamedLimit, Path, PeerAccess

_CLASS_OF_LINKS = {"nvlink": "NV", "xgmi": "XGMI", "c2c": "C2C"}


class PeerPaths:
    """The pairs of one machine; `devices` in the order of the result."""

    def __init__(self, surveys: Sequence[Survey], devices: Sequence[Device]) -> None:
        self._surveys = surveys
        self._devices = devices
        self._position = {device.id: number for number, device in enumerate(devices)}
        self._ids = _ids_by_name(devices)

    def paths(self, by_tree: Sequence[Path]) -> tuple[Path, ...]:
        """Each pair of GPUs and adapters once: those of the tree, and those in a matrix."""
        stated = self._stated_paths()
        linked = self._linked_paths()
        known = {(path.a, path.b): path for path in by_tree}
        ends = {end for pair in (*stated, *linked, *known) for end in pair}
        ordered = [device for device in self._devices if device.id in ends]
        found: list[Path] = []
        for a, b in combinations(ordered, 2):
            pair = (a.id, b.id)
            path = stated.get(pair) or linked.get(pair) or known.get(pair)
            found.append(path if path is not None else Path(a.id, b.id, None))
        return tuple(found)

    def links(self) -> tuple[Link, ...]:
        """The direct links, each once; the ends in the order of the devices."""
        found: dict[tuple[str, str], Link] = {}
        for a, b, link in self._peer_links():
            found.setdefault(
                (a, b), Link(a, b, link.kind, link.capable_Bps, link.trained_Bps, link.source, count=link.count)
            )
        return tuple(found.values())

    def access(self) -> tuple[PeerAccess, ...]:
        """Which device can read and write whose memory; read and write status from two sources form one entry."""
        found: dict[tuple[str, str], PeerAccess] = {}
        for survey in self._surveys:
            for entry in survey.p2p:
                pair = self._pair(entry.a, entry.b)
                if pair is None:
                    continue
                known = found.get(pair, PeerAccess(*pair, None, None))
                found[pair] = PeerAccess(*pair, known.read or entry.read, known.write or entry.write)
        return tuple(found[pair] for pair in sorted(found, key=lambda ends: [self._position[end] for end in ends]))

    def lone_links(self) -> frozenset[tuple[str, str]]:
        """Pairs of GPUs connected only by PCI, according to a source that lists all direct links."""
        if not any(survey.knows_peer_links for survey in self._surveys):
            return frozenset()
        linked = self._linked_paths()
        gpus = [device.id for device in self._devices if device.kind is DeviceKind.GPU]
        return frozenset(pair for pair in combinations(gpus, 2) if pair not in linked)

    def _stated_paths(self) -> dict[tuple[str, str], Path]:
        found: dict[tuple[str, str], Path] = {}
        for survey in self._surveys:
            for path in survey.paths:
                pair = self._pair(path.a, path.b)
                if pair is not None and path.path_class is not None:
                    found.setdefault(pair, Path(*pair, path.path_class, path.links))
        return found

    def _linked_paths(self) -> dict[tuple[str, str], Path]:
        """GPU pairs with direct links; through switches, the number of links is that of the end with fewer."""
        found: dict[tuple[str, str], Path] = {}
        to_switches: dict[str, list[PeerLink]] = {}
        kinds = {device.id: device.kind for device in self._devices}
        seen: set[tuple[str, str]] = set()
        for a, b, link in self._peer_links():
            if (a, b) in seen:
                continue
            seen.add((a, b))
            switches = [end for end in (a, b) if kinds[end] is DeviceKind.SWITCH]
            if not switches:
                found[a, b] = Path(a, b, _CLASS_OF_LINKS.get(link.kind), link.count)
            elif len(switches) == 1:
                to_switches.setdefault(b if switches[0] == a else a, []).append(link)
        ends = sorted(to_switches, key=self._position.__getitem__)
        for a, b in combinations(ends, 2):
            counts = [[link.count for link in to_switches[end]] for end in (a, b)]
            known = [sum(filter(None, own)) for own in counts if None not in own]
            fewer = min(known) if len(known) == len(counts) else None
            found.setdefault((a, b), Path(a, b, _CLASS_OF_LINKS.get(to_switches[a][0].kind), fewer))
        return found

    def _peer_links(self) -> Iterator[tuple[str, str, PeerLink]]:
        for survey in self._surveys:
            for link in survey.peer_links:
                pair = self._pair(link.a, link.b)
                if pair is not None:
                    yield *pair, link

    def _pair(self, a: str, b: str) -> tuple[str, str] | None:
        """The ids of two ends in the order of the devices; None if one is unknown or both are the same."""
        one, other = self._ids.get(a), self._ids.get(b)
        if one is None or other is None or one == other:
            return None
        return (one, other) if self._position[one] < self._position[other] else (other, one)


def _ids_by_name(devices: Sequence[Device]) -> Mapping[str, str]:
    """Any name of a device -> its id: ids take precedence over addresses, names and aliases, in this order."""
    peers = [d for d in devices if d.kind in (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.SWITCH)]
    ids = {device.id: device.id for device in peers}
    for device in peers:
        if device.pci is not None and device.kind is not DeviceKind.NIC:  # a function may have several adapters
            ids.setdefault(device.pci, device.id)
    for device in peers:
        for name in (device.name, *device.aliases):
            ids.setdefault(name, device.id)
    return ids


KIND = "pcie"
HOST = "host"
"""The upper end of a link if no source states it: somewhere towards the processor."""
_WITH_LIMIT = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)


def join_links(placed: Sequence[tuple[Device, PciPart]], pci: Mapping[str, PciPart]) -> tuple[Link, ...]:
    """A link from each device with a known link speed to the bridge above it. If the bridge is unknown (NCCL shows no
    ports of the processor) the link leads to the NUMA node or package, otherwise to `HOST`.

    A link is as fast as both of its ends, so `capable` is the lower speed and the smaller width of the function and
    the port above it (their facts list both: an x16 card in an x8 slot). `trained` is what the function reports.
    """
    links: list[Link] = []
    for device, part in placed:
        above = device.parent or HOST
        port = None if part.is_condensed else pci.get(above.removeprefix("pci-"))
        capable = part.capable  # alone for a host bridge, or a port of unknown speed
        if capable is not None and port is not None and port.capable is not None:
            capable = SurveyLinkRate(min(capable.GTps, port.capable.GTps), min(capable.lanes, port.capable.lanes))
        trained_Bps = _rate(part.trained) or part.trained_Bps
        if capable is not None or trained_Bps is not None:
            links.append(Link(above, device.id, KIND, _rate(capable), trained_Bps, part.source))
    return tuple(links)


def with_one_rate_per_link(machine: Machine) -> tuple[Link, ...]:
    """The links of a machine. A port that faces down describes the link below it once more, with its own capability
    only: its entry gets the rates of that link, which know both ends."""
    below: dict[str, list[Link]] = {}
    for link in machine.links:
        if link.kind == KIND:
            below.setdefault(link.a, []).append(link)

    def corrected(link: Link) -> Link:
        end = machine.device(link.b)
        own = below.get(link.b, ())
        if not own or link.kind != KIND or end is None or not faces_down(machine, end):
            return link
        trained = {one.trained_Bps for one in own}
        return replace(
            link,
            capable_Bps=min((one.capable_Bps for one in own if one.capable_Bps), default=link.capable_Bps),
            trained_Bps=own[0].trained_Bps if len(trained) == 1 else link.trained_Bps,
        )

    return tuple(map(corrected, machine.links))


def _rate(link: SurveyLinkRate | None) -> float | None:
    return None if link is None else pcie_bandwidth(link.GTps, link.lanes).value


def pcie_limits(devices: Sequence[Device], links: Sequence[Link]) -> tuple[NamedLimit, ...]:
    """`pcie.<device>` for each GPU, adapter and NVMe disk: the narrowest capable link between it and the CPU.

    The trained rate is not a limit: devices lower it when idle and raise it under load.
    """
    above = {link.b: link for link in links if link.kind == KIND}
    parents = {device.id: device.parent for device in devices}
    limits: list[NamedLimit] = []
    for device in devices:
        if device.kind not in _WITH_LIMIT:
            continue
        chain: list[Link] = []
        at: str | None = device.id
        while at is not None and at in above and len(chain) < len(links):
            chain.append(above[at])
            at = parents.get(at)
        if chain:
            limits.append(NamedLimit(f"pcie.{device.id}", _narrowest(chain)))
    return tuple(limits)


def _narrowest(chain: Sequence[Link]) -> Limit:
    if chain[0].capable_Bps is None:
        return Limit.unknown("B/s", "only the trained link speed is known, which is lower while the device is idle")
    known = [(link.capable_Bps, link) for link in chain if link.capable_Bps is not None]
    value, link = min(known, key=lambda pair: pair[0])
    where = "its own link" if link is chain[0] else f"the link {link.a} to {link.b}, the narrowest on the path"
    derivation = f"{value / 1e9:.4g} GB/s per direction: capable rate of {where}, after encoding"
    return Limit(value, "B/s", derivation, Basis.PHYSICAL)


_WITH_OWN_LINKS = frozenset({"10de", "1002"})  # NVIDIA, AMD


def pci_paths(
    devices: Sequence[Device],
    lone: Container[tuple[str, str]] = frozenset(),
    condensed: Container[str] = frozenset(),
    in_nccl: Container[str] = frozenset(),
) -> tuple[Path, ...]:
    """Each pair of GPUs and adapters once, in the order of `devices`; devices that are not on PCI are left out.

    `lone` has the pairs of GPUs that are known to have no direct links, `condensed` the bridges that represent a whole
    switch, `in_nccl` the addresses that NCCL lists.
    """
    by_id = {device.id: device for device in devices}
    ends = [device for device in devices if device.kind in (DeviceKind.GPU, DeviceKind.NIC) and device.pci is not None]

    def path_class(a: Device, b: Device) -> str | None:
        if _may_have_direct_links(a, b) and (a.id, b.id) not in lone:
            return None
        above_a, above_b = _bridges(a, by_id), _bridges(b, by_id)
        common = next((bridge for bridge in above_a if bridge in above_b), None)
        if common is None:
            if a.numa is None or b.numa is None:
                return None
            if a.numa != b.numa:
                return "SYS"
            if all(above and _is_host(above[-1]) for above in (above_a, above_b)):
                return "NODE"
            return "PHB" if a.pci in in_nccl and b.pci in in_nccl else None
        if common == above_a[-1] and _is_host(common):
            return "PHB"
        # A switch is one upstream port (the common bridge) and a downstream port in front of each device.
        between = max(above_a.index(common), above_b.index(common))
        return "PIX" if between <= (0 if common in condensed else 1) else "PXB"

    return tuple(Path(a.id, b.id, path_class(a, b)) for a, b in combinations(ends, 2))


def _may_have_direct_links(a: Device, b: Device) -> bool:
    vendors = {device.facts.text("vendor_id") for device in (a, b)}
    is_one_vendor = len(vendors - {None}) < 2
    return a.kind is DeviceKind.GPU and b.kind is DeviceKind.GPU and is_one_vendor and bool(vendors & _WITH_OWN_LINKS)


def _is_host(bridge: str) -> bool:
    """A host bridge is "pci-0000:00", a port "pci-0000:00:01.0"."""
    return bridge.count(":") == 1


def _bridges(device: Device, by_id: Mapping[str, Device]) -> list[str]:
    """The ids of the bridges above a device, the host bridge last."""
    bridges: list[str] = []
    at = by_id.get(device.parent) if device.parent is not None else None
    while at is not None and at.kind is DeviceKind.BRIDGE and at.id not in bridges:
        bridges.append(at.id)
        at = by_id.get(at.parent) if at.parent is not None else None
    return bridges
