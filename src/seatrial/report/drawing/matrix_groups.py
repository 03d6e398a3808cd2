"""Groups of devices from a topology matrix, for machines without a known PCI tree.

Devices at PIX are behind one PCIe switch, at PXB behind several, at PHB below one host bridge (legend of
nvidia-smi topo). The classes are transitive on real machines; if a matrix is not, a device belongs to every device that
it reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.machine.links import links_above
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine
from seatrial.model.spelling import cpu_list
from seatrial.report.drawing.cards import CardMaker, Endpoint
from seatrial.report.drawing.labels import clean
from seatrial.report.drawing.scene import Card, Hub, Place

_LEVELS = (
    (frozenset({"PIX"}), "same PCIe switch (PIX)"),
    (frozenset({"PIX", "PXB"}), "PCIe switches (PXB)"),
    (frozenset({"PIX", "PXB", "PHB"}), "same host bridge (PHB)"),
)
_NEAR = frozenset({"PIX", "PXB", "PHB", "NODE"})


class MatrixGroups:
    """The groups of one machine."""

    def __init__(self, machine: Machine, maker: CardMaker) -> None:
        self._classes = {frozenset((path.a, path.b)): path.path_class for path in machine.paths}
        self._affinity: Mapping[str, Affinity] = {entry.device: entry for entry in machine.affinity}
        self._maker = maker
        self._links = links_above(machine)

    def by_domain(self, devices: Sequence[Device]) -> dict[tuple[int | None, str], list[Device]]:
        """(NUMA node, its CPUs in words) -> devices, sorted by node; (None, "") are those of unknown locality.

        Old matrices have CPUs but no nodes; a device without either is put with the devices near it.
        """
        keys: dict[str, tuple[int | None, str]] = {}
        for device in devices:
            entry = self._affinity.get(device.id)
            numa = device.numa if device.numa is not None else entry.numa if entry is not None else None
            cpus = f"CPUs {cpu_list(entry.cpus)}" if entry is not None and entry.cpus else ""
            keys[device.id] = (numa, cpus)
        by_numa = {numa: cpus for numa, cpus in keys.values() if numa is not None and cpus}
        for name, (numa, _) in list(keys.items()):
            if numa is not None:
                keys[name] = (numa, by_numa.get(numa, ""))
        for classes in (*(classes for classes, _ in _LEVELS), _NEAR):  # the nearest devices decide
            for group in self._components([device.id for device in devices], classes):
                known = [keys[name] for name in group if keys[name] != (None, "")]
                for name in group:
                    if keys[name] == (None, "") and known:
                        keys[name] = known[0]
        grouped: dict[tuple[int | None, str], list[Device]] = {}
        for device in devices:
            grouped.setdefault(keys[device.id], []).append(device)
        ordered = sorted(grouped, key=lambda key: (key == (None, ""), key[0] is None, key[0] or 0))
        return {key: grouped[key] for key in ordered}

    def place(self, devices: Sequence[Device]) -> Place:
        """The devices of one domain; those behind one switch form a group."""
        known = {device.id: device for device in devices}
        return self._level(known, list(known), len(_LEVELS) - 1)

    def _level(self, known: Mapping[str, Device], names: Sequence[str], level: int) -> Place:
        """Groups of one class; within each the groups of the next nearer class."""
        if level < 0 or len(names) < 2:
            return Place(self._cards(known, names))
        classes, title = _LEVELS[level]
        groups = self._components(names, classes)
        if len(groups) == 1 and level == len(_LEVELS) - 1:
            # One group below one host bridge, without nearer ones, adds nothing to the domain.
            nearer = self._components(names, _LEVELS[level - 1][0])
            if len(nearer) > 1:
                return self._level(known, names, level - 1)
        singles = [name for group in groups if len(group) == 1 for name in group]
        hubs: list[Hub] = []
        loose: list[str] = list(singles)
        for group in (group for group in groups if len(group) > 1):
            inner = self._level(known, group, level - 1)
            if not self._has(group, classes - (_LEVELS[level - 1][0] if level else frozenset())):
                hubs += inner.hubs  # the group equals a nearer one
                loose += [name for card in inner.cards for name in card.devices]
                continue
            hint = f"{title}: {', '.join(clean(name) for name in group[:32])}, from the matrix"
            hubs.append(Hub(title, (), (), hint, place=inner, assumed=True))
        order = {name: position for position, name in enumerate(names)}
        return Place(self._cards(known, sorted(loose, key=order.__getitem__)), tuple(hubs))

    def _has(self, names: Sequence[str], classes: frozenset[str]) -> bool:
        members = set(names)
        return any(kind in classes and pair <= members for pair, kind in self._classes.items())

    def _components(self, names: Sequence[str], classes: frozenset[str]) -> list[list[str]]:
        """The names in groups connected by pairs of these classes, each in the given order."""
        group_of = {name: name for name in names}

        def top(name: str) -> str:
            while group_of[name] != name:
                group_of[name] = group_of[group_of[name]]
                name = group_of[name]
            return name

        for pair, kind in self._classes.items():
            if kind in classes and len(pair) == 2:
                a, b = pair
                if a in group_of and b in group_of:
                    group_of[top(a)] = top(b)
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(top(name), []).append(name)
        return list(groups.values())

    def _cards(self, known: Mapping[str, Device], names: Sequence[str]) -> tuple[Card, ...]:
        chains = {name: (self._links[name],) for name in names if name in self._links}
        return self._maker.cards([Endpoint((known[name],), chains.get(name, ())) for name in names])


def is_only_labelled(device: Device, machine: Machine) -> bool:
    """Whether a device is known only from a matrix: it has no parent."""
    is_end = device.kind in (DeviceKind.GPU, DeviceKind.NIC)
    return is_end and (device.parent is None or machine.device(device.parent) is None)
