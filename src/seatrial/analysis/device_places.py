"""How GPUs and adapters are spread over PCIe switches and NUMA nodes, and the device that breaks the pattern.

Servers are symmetric: each switch or node has as many GPUs, and as many adapters, as the others. Where all switches (or
nodes) but two agree, and one of these has a device more and the other one less, a device was plugged into (or
attributed to) the wrong one. Where only one of them has one less, a device is missing.

Devices of one model, and those whose PCIe link differs from the links of the others.

A rate says nothing by itself where only one state of the link is known (hwloc has the present rate, NCCL the capability
of both ends). Beside devices of the same model it does: they were built to be used alike.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from seatrial.analysis.direct_links import DirectLinks, connected
from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import faces_down, links_above
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import cpu_list

_CARDS = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)
_SAME = 0.01
"""Rates that differ by less are one rate: x16 at 2.5 GT/s (4.00 GB/s) and x4 at 8 GT/s (3.94) are 1.6 % apart."""
_MOST_ODD = 0.34
"""Above this share of the devices, two kinds of slots are a design, not a fault."""

Model = tuple[str | None, ...]


class Unlike(Frozen):
    """Links below the one that most of their siblings have. `rates` are those of the odd devices in B/s, `usual` that
    of the `others`. `is_capability`: what the link can do, not its present state."""

    rates: Mapping[str, float]
    usual: float
    others: tuple[str, ...]
    links: tuple[Link, ...]
    is_capability: bool

    @property
    def is_pair(self) -> bool:
        """Whether there are only two devices, so that neither is the usual one."""
        return len(self.others) == 1


def model_of(device: Device) -> Model:
    """What devices of one model have in common; values that no source states are None."""
    facts = device.facts
    if "device_id" in facts:
        return (device.kind, *map(facts.text, ("vendor_id", "device_id", "subsystem_id")))
    names = (
        "vendor_id",
        "model_name",
        "class_id",
        "compute_capability",
        "gpu_architecture",
        "compute_units",
        "rate",
        "pci_name",
    )
    name = device.aliases[0] if device.aliases and device.name.upper().startswith("NIC") else device.name or device.id
    return (device.kind, *map(facts.text, names), re.split(r"[-_]?[0-9]", name, maxsplit=1)[0].lower())


def cards(devices: Iterable[Device]) -> list[Device]:
    """One device for each PCI device: its functions share one link."""
    found: dict[str, Device] = {}
    for device in devices:
        found.setdefault(device.id if device.pci is None else device.pci.rpartition(".")[0], device)
    return list(found.values())


def by_model(devices: Iterable[Device]) -> list[list[Device]]:
    """The devices in groups of one model, in their order."""
    return list(grouped((model_of(device), device) for device in devices).values())


def unlike_cards(machine: Machine) -> Iterator[Unlike]:
    """GPUs, adapters and disks whose link is slower than those of the others of their model."""
    devices = cards(device for device in machine.devices if device.kind in _CARDS)
    yield from _unlike(machine, by_model(devices))


def unlike_uplinks(machine: Machine) -> Iterator[Unlike]:
    """Bridges above GPUs or adapters whose link towards the processor is slower than those of bridges like them: of one
    model and depth, above as many of the same devices."""
    devices = cards(d for d in machine.devices if d.kind in (DeviceKind.GPU, DeviceKind.NIC))
    below = grouped((above.id, device) for device in devices for above in machine.ancestors(device))

    def place(bridge: Device) -> object:
        kinds = [device.kind for device in below[bridge.id]]
        gpus = kinds.count(DeviceKind.GPU)
        return (
            *map(bridge.facts.text, ("vendor_id", "device_id")),
            sum(1 for _ in machine.ancestors(bridge)),
            gpus,
            0 if gpus else kinds.count(DeviceKind.NIC),
        )

    bridges = [d for d in machine.of_kind(DeviceKind.BRIDGE) if d.id in below and not faces_down(machine, d)]
    yield from _unlike(machine, grouped((place(bridge), bridge) for bridge in bridges).values())


def _unlike(machine: Machine, groups: Iterable[Sequence[Device]]) -> Iterator[Unlike]:
    above = links_above(machine)
    for group in groups:
        links = [above[device.id] for device in group if device.id in above]
        for is_capability in (True, False):
            # A trained rate below a known capability is judged by that capability (rules/links.py).
            known = [link for link in links if bool(link.capable_Bps) == is_capability and _rate(link)]
            found = _odd(known, is_capability) if len(known) > 1 else None
            if found is not None:
                yield found


def _rate(link: Link) -> float:
    return link.capable_Bps or link.trained_Bps or 0.0


def _odd(links: Sequence[Link], is_capability: bool) -> Unlike | None:
    rates = sorted(map(_rate, links))
    usual = max(set(rates), key=lambda rate: (_alike(rates, rate), rate))
    odd = [link for link in links if _rate(link) < (1 - _SAME) * usual]
    others = [link.b for link in links if abs(_rate(link) - usual) <= _SAME * usual]
    is_pair = len(links) == 2
    if not odd or (not is_pair and (len(others) < 2 or len(odd) > _MOST_ODD * len(links))):
        return None
    return Unlike({link.b: _rate(link) for link in odd}, usual, tuple(others), tuple(odd), is_capability)


def _alike(rates: Sequence[float], rate: float) -> int:
    """How many of these sorted rates are about this one."""
    return bisect_right(rates, (1 + _SAME) * rate) - bisect_left(rates, (1 - _SAME) * rate)


_LEVELS = (("PIX",), ("PIX", "PXB"))
_BOARDS = (8, 16)
"""GPUs of a full board or server. Servers with six are built as 2 and 4, those with three as 1 and 2."""


class Spread(Frozen):
    """The switches or nodes of all devices of one kind: switch or node -> their ids, in order. `is_node`: they are NUMA
    nodes (or lists of CPUs), else switches, each named by its first device. `beside` are the devices of the other kind
    there."""

    what: DeviceKind
    is_node: bool
    places: Mapping[str, tuple[str, ...]]
    beside: Mapping[str, tuple[str, ...]]
    is_one_model: bool

    @property
    def counts(self) -> tuple[int, ...]:
        """Devices of each switch or node."""
        return tuple(len(ids) for ids in self.places.values())

    @property
    def has_even_others(self) -> bool:
        """Whether each of them has the same number, not 0, of devices of the other kind."""
        numbers = {len(self.beside.get(place, ())) for place in self.places}
        return len(numbers) == 1 and 0 not in numbers


class MovedDevice(Frozen):
    """A device at the wrong switch or node: `crowded` has one more than the others, `short` one less. `suspects` is the
    device that breaks the order, or all of the crowded switch or node if the order does not show which."""

    spread: Spread
    crowded: str
    short: str
    suspects: tuple[str, ...]


class Gone(Frozen):
    """A switch or node with one GPU less than the others; without one, the board has one less than it is built with."""

    spread: Spread | None
    place: str | None
    present: int
    expected: int


def spreads(machine: Machine, gpus: Sequence[Device], adapters: Sequence[Device]) -> Iterator[Spread]:
    """The GPUs and the adapters of each model over switches, then over nodes; only where all of these are known."""
    models = [group for group in by_model(adapters) if len(group) > 1]
    placings = [(_switches(machine, gpus, adapters, classes), False) for classes in _LEVELS]
    for place_of, is_node in (*placings, (_nodes(machine, [*gpus, *adapters]), True)):
        if place_of is None:
            continue
        of_gpus = _by_place(gpus, place_of)
        of_all_adapters = [_by_place(group, place_of) for group in models]
        if of_gpus is not None:
            even = next((found for found in of_all_adapters if found and _is_even(found, of_gpus)), {})
            yield Spread(DeviceKind.GPU, is_node, of_gpus, even, is_one_model=len(set(map(model_of, gpus))) == 1)
        for group, found in zip(models, of_all_adapters, strict=True):
            if found is not None and of_gpus:
                known = all("device_id" in device.facts or "rate" in device.facts for device in group)
                places = {place: found.get(place, ()) for place in (*of_gpus, *found)}
                yield Spread(DeviceKind.NIC, is_node, places, of_gpus, is_one_model=known)


def moved(spread: Spread) -> MovedDevice | None:
    """The device at the wrong switch or node, or None if the spread is even, or uneven in another way."""
    if spread.what is DeviceKind.NIC and not spread.is_node:
        apart = [place for place in spread.places if place not in spread.beside]
        near = replace(spread, places={p: ids for p, ids in spread.places.items() if p not in apart})
        if len(apart) == 1 and len(spread.places[apart[0]]) == 1:
            return _moved_away(near, apart[0], spread.places[apart[0]])
        spread = near
    counts = spread.counts
    usual, rest = divmod(sum(counts), len(counts))
    if rest or usual == 0 or sorted(counts) != [usual - 1, *[usual] * (len(counts) - 2), usual + 1]:
        return None
    if len(counts) > 2:
        is_clear = spread.has_even_others or (usual > 1 and not spread.beside and len(counts) > 3)
    elif spread.what is DeviceKind.GPU:
        is_clear = sum(counts) in _BOARDS
    else:
        is_clear = spread.has_even_others and usual >= (2 if spread.is_one_model else 4)
    if not is_clear:
        return None
    by_count = {len(ids): place for place, ids in spread.places.items()}
    crowded, short = by_count[usual + 1], by_count[usual - 1]
    return MovedDevice(spread, crowded, short, _suspects(spread, crowded, short))


def _short_place(spread: Spread) -> str | None:
    """The only switch or node with one device less than all others have; None if there is none."""
    counts = Counter(spread.counts)
    most = max(counts)
    if counts != Counter({most: len(spread.places) - 1, most - 1: 1}):
        return None
    return next(name for name, ids in spread.places.items() if len(ids) == most - 1)


def _moved_away(near: Spread, place: str, adapters: tuple[str, ...]) -> MovedDevice | None:
    """An adapter near no GPU, if one of the switches or nodes with GPUs has just one fewer."""
    short = _short_place(near)
    is_clear = short is not None and len(near.places) > 2 and near.has_even_others
    return MovedDevice(near, place, short, adapters) if is_clear and short is not None else None


def gone(spread: Spread) -> Gone | None:
    """The switch or node with one GPU less than all others, or None."""
    number, most = sum(spread.counts), max(spread.counts)
    place = _short_place(spread) if spread.what is DeviceKind.GPU else None
    if place is None or most < 2:
        return None
    is_board = number + 1 in _BOARDS or (len(spread.places) > 3 and spread.has_even_others)
    return Gone(spread, place, number, number + 1) if is_board else None


def short_of_a_board(links: DirectLinks) -> Gone | None:
    """Linked GPUs, one less than boards have; None for any other number, or if some have no links."""
    number = len(links.gpus)
    if number + 1 not in _BOARDS or len(links.linked) < number:
        return None
    return Gone(None, None, number, number + 1)


def _is_even(found: Mapping[str, Sequence[str]], places: Mapping[str, Sequence[str]]) -> bool:
    return set(found) == set(places) and len({len(ids) for ids in found.values()}) == 1


def _switches(
    machine: Machine, gpus: Sequence[Device], adapters: Sequence[Device], classes: Sequence[str]
) -> Mapping[str, str] | None:
    """Device -> the first device below its switch. An adapter is where its GPUs are: two adapters of one card are near
    each other wherever they are."""
    ids = {device.id for device in gpus}
    others = {device.id for device in adapters}
    near = [
        (p.a, p.b) for p in machine.paths if p.path_class in classes and p.a in ids | others and p.b in ids | others
    ]
    pairs = [pair for pair in near if ids & set(pair)]
    pairs += _with_the_same_classes(machine, gpus, adapters)
    if "PXB" in classes:
        pairs += _below_one_bridge(machine, gpus)
    if not pairs:
        return None
    groups = connected([device.id for device in (*gpus, *adapters)], pairs)
    return {device: group[0] for group in groups for device in group}


def _with_the_same_classes(
    machine: Machine, gpus: Sequence[Device], adapters: Sequence[Device]
) -> list[tuple[str, str]]:
    """Neighbours among the GPUs that have the same classes to all adapters: those of a switch that lost its adapter."""
    others = [device.id for device in adapters]
    class_of = {pair: p.path_class for p in machine.paths for pair in ((p.a, p.b), (p.b, p.a))}
    rows = [(gpu.id, tuple(class_of.get((gpu.id, nic)) for nic in others)) for gpu in gpus]
    known = [(gpu, row) for gpu, row in rows if row and None not in row]
    return [pair for group in grouped((row, gpu) for gpu, row in known).values() for pair in pairwise(group)]


def _below_one_bridge(machine: Machine, gpus: Sequence[Device]) -> list[tuple[str, str]]:
    """Neighbours below one bridge of the PCI tree: GPUs that may have direct links have no class in it."""
    last: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    for gpu in gpus:
        bridges = [above for above in machine.ancestors(gpu) if above.kind is DeviceKind.BRIDGE]
        for bridge in bridges:
            if bridge.pci is not None and bridge.pci.count(":") > 1:  # not a host bridge
                if bridge.id in last:
                    pairs.append((last[bridge.id], gpu.id))
                last[bridge.id] = gpu.id
    return pairs


def _nodes(machine: Machine, devices: Sequence[Device]) -> Mapping[str, str]:
    stated = {affinity.device: affinity for affinity in machine.affinity}
    found: dict[str, str] = {}
    for device in devices:
        affinity = stated.get(device.id)
        node = device.numa if device.numa is not None or affinity is None else affinity.numa
        if node is not None:
            found[device.id] = f"NUMA node {node}"
        elif affinity is not None and affinity.cpus:  # an old matrix has no numbers of nodes
            found[device.id] = f"CPUs {cpu_list(affinity.cpus)}"
    return found


def _by_place(devices: Sequence[Device], place_of: Mapping[str, str]) -> Mapping[str, tuple[str, ...]] | None:
    """Place -> the devices there; None if the switch or node of one is unknown, or all have the same."""
    if any(device.id not in place_of for device in devices):
        return None
    found = grouped((place_of[device.id], device.id) for device in devices)
    return {place: tuple(ids) for place, ids in found.items()} if len(found) > 1 else None


def _suspects(spread: Spread, crowded: str, short: str) -> tuple[str, ...]:
    """The devices whose return to the short one makes the order of the devices agree best with them."""
    place_of = {device: place for place, ids in spread.places.items() for device in ids}
    candidates = spread.places[crowded]
    order = sorted(place_of, key=_natural)
    companions = sorted((d for ids in spread.beside.values() for d in ids), key=_natural)
    place_of_companion = {device: place for place, ids in spread.beside.items() for device in ids}

    def cost(candidate: str) -> tuple[int, int]:
        """How often the switch or node changes along the order, and how often it is not that of the companion in that
        order."""
        places = [short if device == candidate else place_of[device] for device in order]
        step = len(companions) / len(order)
        beside = [place_of_companion[companions[int(k * step)]] for k in range(len(order))] if companions else places
        return sum(a != b for a, b in pairwise(places)), sum(a != b for a, b in zip(places, beside, strict=True))

    costs = {candidate: cost(candidate) for candidate in candidates}
    least = min(costs.values())
    return tuple(candidate for candidate in candidates if costs[candidate] == least)


def _natural(name: str) -> tuple[object, ...]:
    """Order by the numbers in a name: GPU2 before GPU10."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"([0-9]{1,18})", name))
