"""Direct links that are missing: GPUs, or pairs of them, with fewer links than the rest of their board.

Only what the board's own symmetry contradicts counts. Boards differ by design (a hybrid cube mesh, bridges between two
cards, a ring), and a batch system or container may hide GPUs, so a number that merely differs is not a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations

from seatrial.analysis.direct_links import DirectLinks, Pair
from seatrial.model.frozen import Frozen

_FEW = 0.2
"""Up to this share of a full mesh's pairs may deviate. A ring of four lacks a third of them, a cube mesh more."""

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
