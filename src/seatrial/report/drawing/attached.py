"""What is attached to processors: groups of devices from a topology matrix, and the PCI bridges, simplified.

A matrix serves machines without a known PCI tree. Devices at PIX are behind one PCIe switch, at PXB behind several, at
PHB below one host bridge (legend of nvidia-smi topo). The classes are transitive on real machines; if a matrix is not,
a device belongs to every device that it reaches.

Of PCI bridges, a switch is one box, a pure pass-through bridge is none: a bridge with one item behind it becomes part
of the link to that item. A bridge above several bridges is the upstream port of a switch, whose downstream ports are
bridges too, so the whole switch is one hub.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import links_above
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Link, Machine
from seatrial.model.spelling import count, cpu_list
from seatrial.report.drawing.cards import ENDPOINTS, CardMaker, Endpoint, gather, merge_functions
from seatrial.report.drawing.geometry import clean, model_name
from seatrial.report.drawing.scene import Card, DrawnPlace, Hub, Note, Tone

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
        by_key = grouped((keys[device.id], device) for device in devices)
        ordered = sorted(by_key, key=lambda key: (key == (None, ""), key[0] is None, key[0] or 0))
        return {key: by_key[key] for key in ordered}

    def place(self, devices: Sequence[Device]) -> DrawnPlace:
        """The devices of one domain; those behind one switch form a group."""
        known = {device.id: device for device in devices}
        return self._level(known, list(known), len(_LEVELS) - 1)

    def _level(self, known: Mapping[str, Device], names: Sequence[str], level: int) -> DrawnPlace:
        """Groups of one class; within each the groups of the next nearer class."""
        if level < 0 or len(names) < 2:
            return DrawnPlace(self._cards(known, names))
        classes, title = _LEVELS[level]
        groups = self._components(names, classes)
        is_alone = len(groups) == 1 and level == len(_LEVELS) - 1
        if is_alone and len(self._components(names, _LEVELS[level - 1][0])) > 1:
            # One group below one host bridge, without nearer ones, adds nothing to the domain.
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
        return DrawnPlace(self._cards(known, sorted(loose, key=order.__getitem__)), tuple(hubs))

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
        return list(grouped((top(name), name) for name in names).values())

    def _cards(self, known: Mapping[str, Device], names: Sequence[str]) -> tuple[Card, ...]:
        chains = {name: (self._links[name],) for name in names if name in self._links}
        return self._maker.cards([Endpoint((known[name],), chains.get(name, ())) for name in names])


def is_only_labelled(device: Device, machine: Machine) -> bool:
    """Whether a device is known only from a matrix: it has no parent."""
    is_end = device.kind in (DeviceKind.GPU, DeviceKind.NIC)
    return is_end and (device.parent is None or machine.device(device.parent) is None)


PEER_KINDS = frozenset({"nvlink", "xgmi", "c2c"})
_IO = ENDPOINTS | {DeviceKind.BRIDGE}
_DEEPEST = 4
_MOST_HUBS = 24
_MOST_HUBS_HERE = 12


class _Branch(Frozen):
    """A bridge with several items behind it."""

    bridge: Device
    chain: tuple[Link, ...]
    items: tuple[_Item, ...]
    switches: int = 0
    """The number of NVSwitches behind it that are drawn elsewhere."""


_Item = Endpoint | _Branch


class PciForest:
    """The attached devices: `place` is drawn below devices; `loose` and `missed` are for devices without a known
    parent.

    `has_bank`: NVSwitches are drawn as a bank connected to the GPUs, so their PCI side is only a note.
    """

    def __init__(self, machine: Machine, maker: CardMaker, *, has_bank: bool = False) -> None:
        self._maker = maker
        self._has_bank = has_bank
        self._hubs_left = _MOST_HUBS
        self._children: dict[str | None, list[Device]] = {}
        for device in machine.devices:
            if device.kind in _IO:
                self._children.setdefault(device.parent, []).append(device)
        self._links = links_above(machine)
        self._endpoints = [device for device in machine.devices if device.kind in ENDPOINTS]
        self._is_bridge = {device.id for device in machine.devices if device.kind is DeviceKind.BRIDGE}
        self._drawn: set[str] = set()

    def place(self, parents: Iterable[str]) -> DrawnPlace:
        """The items attached to these devices, which are not bridges."""
        items = [item for at in parents for device in self._children.get(at, ()) for item in self._grown(device)]
        return self._place(items, 1)

    def loose(self, devices: Iterable[Device]) -> DrawnPlace:
        """A box for devices without a known parent, with the items attached to them."""
        return self._place([item for device in devices for item in self._grown(device)], 1)

    def take(self, devices: Iterable[Device]) -> None:
        """Mark devices as drawn elsewhere."""
        self._drawn |= {device.id for device in devices}

    def missed(self) -> list[Device]:
        """Endpoints not drawn yet: their parents form a cycle, or are not part of a processor."""
        return [device for device in self._endpoints if device.id not in self._drawn]

    def _grown(self, top: Device) -> list[_Item]:
        """The items of a device and everything below. Not recursive: a hostile tree may have thousands of levels."""
        order: list[Device] = []
        stack = [top]
        seen: set[str] = set()
        while stack:
            device = stack.pop()
            if device.id in seen or device.id in self._drawn:
                continue
            seen.add(device.id)
            order.append(device)
            stack += reversed(self._children.get(device.id, ()))
        self._drawn |= seen
        grown: dict[str, list[_Item]] = {}
        for device in reversed(order):
            below = [item for child in self._children.get(device.id, ()) for item in grown.pop(child.id, ())]
            link = self._links.get(device.id)
            grown[device.id] = self._joined(device, (link,) if link is not None else (), below)
        return grown.get(top.id, [])

    def _joined(self, device: Device, chain: tuple[Link, ...], below: list[_Item]) -> list[_Item]:
        if device.kind is not DeviceKind.BRIDGE:
            mine: list[_Item] = [Endpoint((device,), chain)]
            return mine + [replace(item, chain=chain + item.chain) for item in below]
        branches: list[_Item] = [item for item in below if isinstance(item, _Branch)]
        ends = merge_functions(item for item in below if isinstance(item, Endpoint))
        items: list[_Item] = [*ends, *branches]
        # The PCI side of NVSwitches that are drawn as a bank.
        is_of_bank = [self._has_bank and all(leaf.kind is DeviceKind.SWITCH for leaf in _leaves(one)) for one in items]
        aside = [item for item, is_aside in zip(items, is_of_bank, strict=True) if is_aside]
        if 0 < len(aside) < len(items):
            noted = sum(len(_leaves(item)) for item in aside)
            items = [item for item in items if item not in aside]
            if len(items) > 1 or not isinstance(items[0], _Branch):
                return [_Branch(device, chain, tuple(items), noted)]
            return [replace(items[0], chain=chain + items[0].chain, switches=items[0].switches + noted)]
        if len(items) == 1:
            return [replace(items[0], chain=chain + items[0].chain)]
        return [_Branch(device, chain, tuple(items))] if items else []

    def _place(self, items: Sequence[_Item], depth: int) -> DrawnPlace:
        ends = merge_functions(item for item in items if isinstance(item, Endpoint))
        branches = [item for item in items if isinstance(item, _Branch)]
        hubs: list[Hub] = []
        for branch in branches:
            is_too_much = depth > _DEEPEST or self._hubs_left <= 0 or len(hubs) >= _MOST_HUBS_HERE
            if is_too_much:
                ends += _leaves(branch)
                continue
            self._hubs_left -= 1
            hubs.append(self._hub(branch, depth))
        return DrawnPlace(gather(self._maker.cards(ends)), tuple(hubs))

    def _hub(self, branch: _Branch, depth: int) -> Hub:
        bridge = branch.bridge
        what = self._what(branch)
        rate = self._maker.rate(branch.chain)
        name = _bridge_name(bridge)
        lines = [Note(name, Tone.MUTED)] if name and what == "PCIe switch" else []
        lines += rate.lines()
        if branch.switches:
            lines.append(Note(f"also {count(branch.switches, 'NVSwitch', 'NVSwitches')}, PCIe side", Tone.MUTED))
        title = f"{what} {clean(bridge.pci)}" if what == "host bridge" and bridge.pci else what
        words = (what, f"PCI {clean(bridge.pci)}" if bridge.pci else None, name,
                 f"link {rate.text}" if rate.text else None, *rate.also)  # fmt: skip
        hint = ", ".join(word for word in words if word)
        return Hub(title, tuple(lines), (bridge.id,), hint, rate, self._place(branch.items, depth + 1))

    def _what(self, branch: _Branch) -> str:
        """The type of a bridge with several items behind it."""
        bridge = branch.bridge
        if bridge.name.startswith("host") or (bridge.pci or "").count(":") == 1:
            return "host bridge"
        children = self._children.get(bridge.id, ())
        if any(child.id in self._is_bridge for child in children):
            return "PCIe switch"
        slots = {child.pci.rpartition(".")[0] for child in children if child.pci}
        if len(slots) > 1:
            # A PCIe port has one slot behind it: several mean a switch whose ports the source omits (NCCL).
            is_pcie = bridge.id in self._links or any(child.id in self._links for child in children)
            return "PCIe switch" if is_pcie else "PCI bridge"
        return "PCIe port"


def _leaves(branch: _Item) -> list[Endpoint]:
    """The endpoints below a branch, each with its full path."""
    leaves: list[Endpoint] = []
    stack: list[_Item] = [branch]
    while stack:
        item = stack.pop()
        if isinstance(item, Endpoint):
            leaves.append(item)
        else:
            stack += [replace(below, chain=item.chain + below.chain) for below in reversed(item.items)]
    return leaves


def _bridge_name(bridge: Device) -> str:
    facts = bridge.facts
    name = facts.text("pci_name") or facts.text("model_name")
    if name:
        return model_name(name)
    vendor, device = facts.text("vendor_id"), facts.text("device_id")
    return clean(f"{vendor}:{device}") if vendor and device else ""
