"""The direct links between GPUs (NVLink, XGMI): which pairs have how many, and what they run through.

Two kinds of boards are distinguished by their numbers. Where switches connect the GPUs, a matrix lists for each pair
the links of a GPU to the switches; where GPUs are connected to each other, the pairs of a GPU divide its links.

Direct links that are missing: GPUs, or pairs of them, with fewer links than the rest of their board.

Only what the board's own symmetry contradicts counts. Boards differ by design (a hybrid cube mesh, bridges between two
cards, a ring), and a batch system or container may hide GPUs, so a number that merely differs is not a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
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


_FEW = 0.2
"""Up to this share of a full mesh's pairs may deviate. In a ring of four, a third of them are missing; in a cube
mesh, more."""

_NO_PART, _WHOLE = 6, 8
"""The largest cube mesh has eight GPUs. From six of them on, each is linked to another; fewer may be without."""


class Missing(StrEnum):
    """What is missing."""

    ALL = "all links of GPUs"
    SOME = "some links of GPUs"
    PAIRS = "links between pairs of GPUs"
    BETWEEN_GROUPS = "links between groups of GPUs"


class LinkFault(Frozen):
    """One kind of missing link. `gpus` and `pairs` have the links listed with them, the others `usual` ones (between
    groups: the number of groups). `is_certain`: no design of a board and no hidden GPU explains it."""

    missing: Missing
    gpus: Mapping[str, int]
    pairs: Mapping[Pair, int]
    usual: int
    is_certain: bool = True


def link_faults(links: DirectLinks) -> tuple[LinkFault, ...]:
    """All missing links; empty if the links are regular, or if it cannot be known."""
    if len(links.linked) < 2:
        return ()
    return tuple(_switched(links) if links.is_switched else _unswitched(links))


def _switched(links: DirectLinks) -> Iterator[LinkFault]:
    """Switches: each pair has the links of its end with fewer, which are those of all GPUs of the model."""
    peers = {gpu: frozenset(links.peers_of(gpu)) for gpu in links.gpus}
    top = {gpu: max((links.totals[peer] for peer in peers[gpu]), default=0) for gpu in links.gpus}
    yield from _off(links, [gpu for gpu in _without(links) if top[gpu]], max(top.values()), is_certain=True)
    total = links.totals
    short = {gpu: number for gpu, number in total.items() if links.is_counted and number < top[gpu]}
    if short:
        yield LinkFault(Missing.SOME, short, {}, max(top[gpu] for gpu in short))
    groups = links.groups()
    group_of = {gpu: number for number, group in enumerate(groups) for gpu in group}
    fewer: dict[Pair, int] = {}
    for a, b in combinations(links.linked, 2):
        number = links.between(a, b)
        if number is None or group_of[a] != group_of[b] or b not in peers[a]:
            continue
        if number < min(total[a], total[b]) and (links.is_counted or number == 0) and not {a, b} <= short.keys():
            fewer[a, b] = number
    if fewer:
        yield _pairs(links, fewer, max(total.values()))
    if len(groups) > 1 and _stated_apart(links, groups):
        yield LinkFault(Missing.BETWEEN_GROUPS, links.totals, {}, len(groups), is_certain=False)


def _unswitched(links: DirectLinks) -> Iterator[LinkFault]:
    """GPUs connected to each other: a full mesh, a cube mesh, a ring, or bridges."""
    without = [gpu for gpu in _without(links) if links.peers_of(gpu)]
    groups = links.groups()
    if without and len(groups) == 1 and len(groups[0]) > 2:
        # A GPU for a display beside a full board (DGX Station A100: four and one) is the only odd number known. Up to
        # four GPUs of a cube mesh may be a triangle and one that none of them reaches.
        number = len(groups[0]) + len(without)
        certain = number % 2 == 0 and (number >= _NO_PART or _is_board(links, groups[0]))
        yield from _off(links, without, max(links.totals[gpu] for gpu in groups[0]), is_certain=certain)
    elif without and len(links.linked) > max(len(without), 3):
        yield from _off(links, without, max(links.totals[gpu] for gpu in links.linked), is_certain=False)
    for group in groups:
        if len(group) > 3 and _is_known(links, group):
            yield from _irregular(links, group)


def _irregular(links: DirectLinks, group: Sequence[str]) -> Iterator[LinkFault]:
    """Fewer links than the rest of a connected group."""
    total = {gpu: links.totals[gpu] for gpu in group}
    most = max(total.values())
    short = {gpu: most - number for gpu, number in total.items() if number < most}
    if not short:
        return
    numbers = {pair: links.between(*pair) or 0 for pair in combinations(group, 2)}
    usual = Counter(numbers.values()).most_common(1)[0][0]
    fewer = {pair: number for pair, number in numbers.items() if number < usual}
    if fewer and max(numbers.values()) == usual and len(fewer) <= _FEW * len(numbers):
        yield _pairs(links, fewer, usual)
        return
    if 2 * len(short) >= len(group):
        return  # most GPUs differ: part of a board (hidden GPUs), or a board that is not regular
    # A link between two visible GPUs is missing at both of its ends; else its other end may be hidden.
    both = len(group) >= _WHOLE and sum(short.values()) % 2 == 0 and 2 * max(short.values()) <= sum(short.values())
    if both and len(short) == 2:
        pair = (next(iter(short)), next(reversed(short)))
        lost = short[pair[0]]
        yield _pairs(links, {pair: numbers[pair]}, numbers[pair] + lost)
        return
    yield LinkFault(Missing.SOME, {gpu: total[gpu] for gpu in short}, {}, most, is_certain=both)


def _is_board(links: DirectLinks, group: Sequence[str]) -> bool:
    """Whether each pair has the same links, and more than a cube mesh has between neighbours on a side."""
    numbers = {links.pairs.get(pair, 0) for pair in combinations(group, 2)}
    return len(numbers) == 1 and (links.name != "NVLink" or next(iter(numbers)) not in (0, 1, None))


def _without(links: DirectLinks) -> list[str]:
    """The GPUs that have no link to any other, according to a source."""
    linked = set(links.linked)
    return [
        gpu
        for gpu in links.gpus
        if gpu not in linked and all(links.between(gpu, other) == 0 for other in links.gpus if other != gpu)
    ]


def _off(links: DirectLinks, gpus: Sequence[str], usual: int, *, is_certain: bool) -> Iterator[LinkFault]:
    if gpus:
        off = set(gpus)
        apart = (pair for pair in combinations(links.gpus, 2) if off & set(pair))
        yield LinkFault(Missing.ALL, dict.fromkeys(gpus, 0), dict.fromkeys(apart, 0), usual, is_certain)


def _pairs(links: DirectLinks, fewer: Mapping[Pair, int], usual: int) -> LinkFault:
    ends = {end for pair in fewer for end in pair}
    return LinkFault(Missing.PAIRS, {gpu: links.totals[gpu] for gpu in links.gpus if gpu in ends}, fewer, usual)


def _is_known(links: DirectLinks, group: Sequence[str]) -> bool:
    """Whether the links of all pairs are known: their numbers, or of none a number (then each counts one)."""
    members = set(group)
    inside = [count for (a, b), count in links.pairs.items() if a in members and b in members]
    if any(count is None for count in inside) and any(count is not None for count in inside):
        return False
    return all(links.between(a, b) is not None for a, b in combinations(group, 2))


def _stated_apart(links: DirectLinks, groups: Sequence[Sequence[str]]) -> bool:
    """Whether a source says that the groups, each of several GPUs of one model, have no links between them."""
    several = [group for group in groups if len(group) > 1]
    return len(several) > 1 and all(
        links.between(a, b) == 0 and b in links.peers_of(a)
        for one, other in combinations(several, 2)
        for a in one
        for b in other
    )
