"""The direct links between GPUs (NVLink, XGMI): which pairs have how many, and what they run through.

Two kinds of boards are told apart by their numbers. Where switches connect the GPUs, a matrix lists for each pair the
links of a GPU to the switches; where GPUs are connected to each other, the pairs of a GPU divide its links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Device, DeviceKind, Machine

DIRECT_CLASSES = frozenset({"NV", "XGMI", "C2C"})
DIRECT_KINDS = frozenset({"nvlink", "xgmi", "c2c"})

MOST_LINKS = 18
"""No GPU has more links (NVLink 4 and 5), so more in total can only be links to switches, reported for each pair."""

Pair = tuple[str, str]

_NAMES = {"nv": "NVLink", "nvlink": "NVLink", "xgmi": "XGMI", "c2c": "C2C"}


class DirectLinks(Frozen):
    """The direct links of one machine; ids in the order of the machine.

    `pairs` have links (their number, None if unknown); `apart` have none according to a source. Other pairs are
    unknown. `totals` are the links of each linked GPU: to the switches, or to all others together. `models` are those
    of the GPUs, None if unknown. `is_switched`: the links go through switches, listed as devices or implied by more
    links than a GPU has.
    """

    gpus: tuple[str, ...]
    pairs: Mapping[Pair, int | None]
    apart: frozenset[Pair]
    models: Mapping[str, str | None]
    name: str
    totals: Mapping[str, int]
    is_switched: bool

    @property
    def linked(self) -> tuple[str, ...]:
        """The GPUs that have links to others."""
        return tuple(self.totals)

    @property
    def is_counted(self) -> bool:
        """Whether the number of links of every linked pair is known."""
        return all(count is not None for count in self.pairs.values())

    def between(self, a: str, b: str) -> int | None:
        """The number of links between two GPUs: 0 if a source says so, 1 if only their kind is known, None if
        unknown."""
        pair = (a, b) if (a, b) in self.pairs or (a, b) in self.apart else (b, a)
        if pair in self.pairs:
            return self.pairs[pair] or 1
        return 0 if pair in self.apart else None

    def groups(self) -> list[list[str]]:
        """The linked GPUs in groups that links connect."""
        return connected(self.linked, self.pairs)

    def peers_of(self, gpu: str) -> tuple[str, ...]:
        """The linked GPUs that may be compared with this one: those not known to be of another model."""
        model = self.models[gpu]
        return tuple(
            other
            for other in self.linked
            if other != gpu and (model is None or self.models[other] is None or self.models[other] == model)
        )


def direct_links(machine: Machine) -> DirectLinks:
    """The direct links of a machine; matrices take precedence over lists of links, which have no pairs without."""
    gpus = machine.of_kind(DeviceKind.GPU)
    order = {gpu.id: place for place, gpu in enumerate(gpus)}
    stated = [(p.a, p.b, p.links, p.path_class) for p in machine.paths if p.path_class in DIRECT_CLASSES]
    if not any(a in order and b in order for a, b, _, _ in stated):
        stated = [(link.a, link.b, link.count, link.kind) for link in machine.links if link.kind in DIRECT_KINDS]
    found: dict[Pair, int | None] = {}
    kinds: list[str] = []
    for a, b, count, kind in stated:
        if a in order and b in order and a != b:
            pair = (a, b) if order[a] < order[b] else (b, a)
            known = found.get(pair)
            found[pair] = count if known is None else max(known, count or 0)
            kinds.append(_NAMES.get((kind or "").lower(), "NVLink"))
    pairs = {pair: found[pair] for pair in sorted(found, key=lambda p: (order[p[0]], order[p[1]]))}
    numbers: dict[str, list[int]] = {}
    for pair, count in pairs.items():
        for end in pair:
            numbers.setdefault(end, []).append(count or 1)
    linked = {gpu: numbers[gpu] for gpu in order if gpu in numbers}
    is_switched = bool(machine.of_kind(DeviceKind.SWITCH)) or any(sum(n) > MOST_LINKS for n in linked.values())
    return DirectLinks(
        gpus=tuple(order),
        pairs=pairs,
        apart=_apart(machine, order, pairs),
        models={gpu.id: _model(gpu) for gpu in gpus},
        name=max(sorted(set(kinds)), key=kinds.count, default="NVLink"),
        totals={gpu: max(n) if is_switched else sum(n) for gpu, n in linked.items()},
        is_switched=is_switched,
    )


def connected(names: Iterable[str], pairs: Iterable[Pair]) -> list[list[str]]:
    """The names in groups that pairs connect, in their order."""
    group_of = {name: [name] for name in names}
    for a, b in pairs:
        one, other = group_of[a], group_of[b]
        if one is not other:
            if len(one) < len(other):
                one, other = other, one
            one += other
            group_of |= dict.fromkeys(other, one)
    order = {name: place for place, name in enumerate(group_of)}
    groups = {id(group): group for group in group_of.values()}
    return [sorted(group, key=order.__getitem__) for group in groups.values()]


def _apart(machine: Machine, order: Mapping[str, int], linked: Mapping[Pair, int | None]) -> frozenset[Pair]:
    """Pairs of GPUs without links: those of another class in a matrix; all others where a source lists the links."""
    others = [pair for pair in combinations(order, 2) if pair not in linked]
    if any(link.kind in DIRECT_KINDS and (link.a in order or link.b in order) for link in machine.links):
        return frozenset(others)
    classes = {(path.a, path.b): path.path_class for path in machine.paths}
    return frozenset((a, b) for a, b in others if classes.get((a, b)) or classes.get((b, a)))


def _model(gpu: Device) -> str | None:
    return gpu.facts.text("device_id") or gpu.facts.text("model_name") or gpu.facts.text("pci_name")
