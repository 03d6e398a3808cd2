"""Fabric -> blocks: the switches of the highest level, and below them the parts into which the rest falls.

Without its highest switches a fat tree falls into equal parts (pods, then leaves). Equal parts are folded into one
block with their number; a part with other numbers of switches, nodes or links, or with slow links, is a block of its
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.model.fabric import AdapterKind, Fabric, FabricLink
from seatrial.model.frozen import Frozen

_DEEPEST = 6
"""Levels below this one are not divided further: a chain of switches is not a tree."""
_SMALL_SWITCHES = 12
_SMALL_NODES = 32
"""Up to these numbers, nothing is folded."""


class Bundle(Frozen):
    """Links of one kind between a block and the block above: their number, rate in B/s of each (None: unknown)."""

    number: int
    kind: str
    rate_Bps: float | None
    is_low: bool


class Block(Frozen):
    """Switches of one level, `parts` below them, and the nodes directly on them.

    `switches` and `nodes` are the names of the first of `number` equal blocks; `alike` are the switches of all of them.
    `unnamed` counts adapters whose node has no name. `up` are the links to the block above, `inside` those to nodes.
    """

    level: int | None
    switches: tuple[str, ...]
    nodes: tuple[str, ...]
    unnamed: int
    parts: tuple[Block, ...]
    up: tuple[Bundle, ...]
    inside: tuple[Bundle, ...] = ()
    number: int = 1
    alike: tuple[str, ...] = ()
    above: frozenset[str] = frozenset()
    slow_above: frozenset[str] = frozenset()
    """Names of the switches above that are connected to it, and of those over a slow link."""

    @property
    def shape(self) -> tuple[object, ...]:
        """What equal blocks have in common: everything but names."""
        parts = tuple((part.number, part.shape) for part in self.parts)
        return self.level, len(self.switches), len(self.nodes), self.unnamed, parts, self.up, self.inside


def fold_fabric(fabric: Fabric) -> tuple[Block, ...]:
    """The blocks that are not connected to each other."""
    is_small = len(fabric.switches) <= _SMALL_SWITCHES and len(fabric.nodes) <= _SMALL_NODES
    folder = _Folder(fabric, is_small=is_small)
    found = [folder.block(part, frozenset(), 1) for part in folder.components([s.id for s in fabric.switches])]
    return folder.folded(found)


class _Folder:
    def __init__(self, fabric: Fabric, *, is_small: bool) -> None:
        self._fabric = fabric
        self._is_small = is_small
        known = fabric.switch_by_id
        self._near: dict[str, list[tuple[str, FabricLink]]] = {switch: [] for switch in known}
        self._nodes: dict[str, dict[str, None]] = {}
        self._unnamed: Counter[str] = Counter()
        for link in fabric.links:
            a, b = link.a.device, link.b.device
            if a in known and b in known:
                self._near[a].append((b, link))
                self._near[b].append((a, link))
            elif a in known:
                self._add_end(a, b)
        self._down: dict[str, list[FabricLink]] = {}
        for link in fabric.links:
            if link.a.device in known and link.b.device not in known:
                self._down.setdefault(link.a.device, []).append(link)

    def _add_end(self, switch: str, device: str) -> None:
        adapter = self._fabric.adapter_by_id.get(device)
        if adapter is None or adapter.node is not None:
            self._nodes.setdefault(switch, {})[self._fabric.place(device)] = None
        elif adapter.kind is AdapterKind.UNNAMED:
            self._unnamed[switch] += 1

    def components(self, switches: Iterable[str]) -> list[list[str]]:
        """The connected parts of these switches, without all others."""
        left = dict.fromkeys(switches)
        parts: list[list[str]] = []
        while left:
            first = next(iter(left))
            del left[first]
            part = [first]
            for switch in part:
                for other, _ in self._near[switch]:
                    if other in left:
                        del left[other]
                        part.append(other)
            parts.append(part)
        return parts

    def block(self, part: Sequence[str], above: frozenset[str], depth: int) -> Block:
        """The block of a connected part; `above` are the switches over it."""
        levels = {switch: self._fabric.switch_by_id[switch].level or 0 for switch in part}
        top = max(levels.values())
        if depth > _DEEPEST or top - min(levels.values()) > _DEEPEST:
            upper = list(part)
        else:
            upper = [switch for switch in part if levels[switch] == top]
        here = frozenset(upper)
        below = self.components(switch for switch in part if switch not in here)
        ups = [(other, link) for switch in part for other, link in self._near[switch] if other in above]
        nodes = dict.fromkeys(name for switch in upper for name in self._nodes.get(switch, ()))
        return Block(
            level=top or None,
            switches=tuple(sorted(self._fabric.name(switch) for switch in upper)),
            nodes=tuple(sorted(nodes)),
            unnamed=sum(self._unnamed[switch] for switch in upper),
            parts=self.folded([self.block(each, here, depth + 1) for each in below]),
            up=self._bundles(link for _, link in ups),
            inside=self._bundles(link for switch in upper for link in self._down.get(switch, ())),
            above=frozenset(self._fabric.name(other) for other, _ in ups),
            slow_above=frozenset(self._fabric.name(other) for other, link in ups if link.is_low),
        )

    def folded(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Equal blocks once, the most frequent first."""
        if self._is_small:
            return tuple(sorted(blocks, key=lambda block: block.switches))
        groups: dict[tuple[object, ...], list[Block]] = {}
        for block in sorted(blocks, key=lambda block: block.switches):
            groups.setdefault(block.shape, []).append(block)
        found = [_merged(group) for group in groups.values()]
        return tuple(sorted(found, key=lambda block: (-block.number, block.switches)))

    def _bundles(self, links: Iterable[FabricLink]) -> tuple[Bundle, ...]:
        counts: Counter[tuple[str, float, bool]] = Counter()
        for link in links:
            kind = f"{link.width}x{link.speed}" if link.width and link.speed else ""
            counts[kind, link.trained_Bps or 0.0, link.is_low] += 1
        return tuple(
            Bundle(number, kind, rate or None, is_low) for (kind, rate, is_low), number in sorted(counts.items())
        )


def _merged(group: Sequence[Block]) -> Block:
    return replace(
        group[0],
        number=len(group),
        alike=tuple(name for block in group for name in block.switches),
        above=frozenset().union(*(block.above for block in group)),
        slow_above=frozenset().union(*(block.slow_above for block in group)),
    )


def totals(blocks: Iterable[Block]) -> Mapping[str, int]:
    """Numbers of all switches and nodes in these blocks, with the equal ones."""
    found = {"switches": 0, "nodes": 0, "blocks": 0}
    for block in blocks:
        below = totals(block.parts)
        found["switches"] += block.number * (len(block.switches) + below["switches"])
        found["nodes"] += block.number * (len(block.nodes) + below["nodes"])
        found["blocks"] += block.number
    return found
