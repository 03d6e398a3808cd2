"""Facts about pairs of devices: path classes from matrices, direct links, access to each other's memory.

A source refers to devices by its own names; here these become ids. If several sources describe a pair, the first one
counts; a pair that no source describes has the class that follows from the PCI tree (`paths.pci_paths`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from seatrial.machine.survey import PeerLink, Survey
from seatrial.model.machine.machine import Device, DeviceKind, Link, Path, PeerAccess

_CLASS = {"nvlink": "NV", "xgmi": "XGMI", "c2c": "C2C"}


class Peers:
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
        return tuple(found[pair] for pair in sorted(found, key=self._order))

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
                found[a, b] = Path(a, b, _CLASS.get(link.kind), link.count)
            elif len(switches) == 1:
                to_switches.setdefault(b if switches[0] == a else a, []).append(link)
        ends = sorted(to_switches, key=self._position.__getitem__)
        for a, b in combinations(ends, 2):
            counts = [_sum([link.count for link in to_switches[end]]) for end in (a, b)]
            fewer = None if None in counts else min(count for count in counts if count is not None)
            found.setdefault((a, b), Path(a, b, _CLASS.get(to_switches[a][0].kind), fewer))
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

    def _order(self, pair: tuple[str, str]) -> tuple[int, int]:
        return (self._position[pair[0]], self._position[pair[1]])


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


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
