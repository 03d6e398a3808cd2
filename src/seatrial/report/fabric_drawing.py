"""The drawing of a fabric as SVG: switches by level, the nodes below them, and the links in between.

Parts that look alike are folded: one of each is drawn. A small fabric is drawn switch by switch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import AdapterKind, Fabric, FabricLink
from seatrial.model.machine.host_list import by_number, host_spans
from seatrial.model.spelling import count, show
from seatrial.report.drawing.geometry import HEAD_SIZE, PAD, Box, Drawing, Text, clean, label, moved, set_text
from seatrial.report.drawing.render import document
from seatrial.report.drawing.scene import Grade, Note, Tone
from seatrial.report.text.fabric import counts_of

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
        self._down: dict[str, list[FabricLink]] = {}
        for link in fabric.links:
            a, b = link.a.device, link.b.device
            if a in known and b in known:
                self._near[a].append((b, link))
                self._near[b].append((a, link))
            elif a in known:
                self._add_end(a, b)
                self._down.setdefault(a, []).append(link)

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
        groups = grouped((block.shape, block) for block in sorted(blocks, key=lambda block: block.switches))
        found = [
            replace(
                group[0],
                number=len(group),
                alike=tuple(name for block in group for name in block.switches),
                above=frozenset().union(*(block.above for block in group)),
                slow_above=frozenset().union(*(block.slow_above for block in group)),
            )
            for group in groups.values()
        ]
        return tuple(sorted(found, key=lambda block: (-block.number, block.switches)))

    def _bundles(self, links: Iterable[FabricLink]) -> tuple[Bundle, ...]:
        counts: Counter[tuple[str, float, bool]] = Counter()
        for link in links:
            kind = f"{link.width}x{link.speed}" if link.width and link.speed else ""
            counts[kind, link.trained_Bps or 0.0, link.is_low] += 1
        return tuple(
            Bundle(number, kind, rate or None, is_low) for (kind, rate, is_low), number in sorted(counts.items())
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


_WIDTH = 190.0
_GAP = 16.0
_RISE = 62.0
"""Height of the links between two rows."""
_MARGIN = 16.0
_MOST_PARTS = (4, 7, 4)
"""Blocks of one parent that are drawn, by depth; the rest becomes one box."""
_LONGEST_NAMES = 110
_MOST_SEPARATE = 4
"""Switches of a block that get a box each."""
_MANY_PARTS = 8


class _Drawn(Frozen):
    """A block with its position: middles and top of its boxes of switches, and its right and lower edge."""

    middles: tuple[float, ...]
    top: float
    right: float
    bottom: float


def lay_out(title: str, about: str, blocks: Sequence[Block]) -> Drawing:
    """The whole picture."""
    picture = Drawing()
    picture.labels.append(Text(_MARGIN, _MARGIN + HEAD_SIZE, clean(title), HEAD_SIZE, bold=True))
    texts, height = set_text("", (Note(about, Tone.MUTED),), 900.0)
    picture.labels += moved(texts, _MARGIN, _MARGIN + HEAD_SIZE + 6)
    top = _MARGIN + HEAD_SIZE + 6 + height + 20
    x = _MARGIN
    for block, rest in _shown(blocks, 0):
        drawn = _draw_rest(picture, rest, x, top) if rest else _draw(picture, block, x, top, 0)
        x = drawn.right + 2 * _GAP
    right = max((box.right for box in picture.boxes), default=0.0)
    picture.width = max(right, *(text.extent[2] for text in picture.labels)) + _MARGIN
    picture.height = picture.lowest + _MARGIN
    return picture


def _shown(blocks: Sequence[Block], depth: int) -> list[tuple[Block, Sequence[Block]]]:
    """The blocks to draw; the last one may stand for the rest, which are unlike."""
    most = _MOST_PARTS[min(depth, len(_MOST_PARTS) - 1)]
    if len(blocks) <= most or sum(block.number for block in blocks) <= _MANY_PARTS:
        return [(block, ()) for block in blocks]
    kept = sorted(blocks, key=lambda block: not _is_low(block))[: most - 1]  # slow links are not folded away
    rest = [block for block in blocks if block not in kept]
    return [(block, ()) for block in blocks if block in kept] + [(rest[0], rest)]


def _is_low(block: Block) -> bool:
    return any(bundle.is_low for bundle in (*block.up, *block.inside)) or any(map(_is_low, block.parts))


def _draw(picture: Drawing, block: Block, x: float, top: float, depth: int, *, is_folded: bool = False) -> _Drawn:
    """Draw a block with its parts. `is_folded`: it is in a block that stands for several."""
    below = _switch_rows(block, is_folded)
    heights = [set_text(title, lines, _WIDTH - 2 * PAD)[1] + 2 * PAD for title, lines in below]
    row = max(heights)
    is_folded = is_folded or block.number > 1
    shown = _shown(block.parts, depth + 1)
    parts: list[_Drawn] = []
    at = x
    for part, rest in shown:
        place = top + row + _RISE
        parts.append(
            _draw_rest(picture, rest, at, place)
            if rest
            else _draw(picture, part, at, place, depth + 1, is_folded=is_folded)
        )
        at = parts[-1].right + _GAP
    width = len(below) * (_WIDTH + _GAP) - _GAP
    span = max(at - _GAP - x, width)
    left = x + (max(at - _GAP - x, width) - width) / 2 if parts else x
    boxes: list[Box] = []
    for (heading, lines), height in zip(below, heights, strict=True):
        boxes.append(_box(heading, lines, left, top + row - height, "hub", _names(block.alike or block.switches)))
        left += _WIDTH + _GAP
    for box in boxes:
        picture.add(box)
    for drawn, (part, rest) in zip(parts, shown, strict=True):
        names = block.switches if len(boxes) == len(block.switches) > 1 else [""] * len(boxes)
        named = list(zip(names, boxes, strict=True))
        _join(picture, named, drawn, None if rest else part, part.number > 1 or is_folded)
    bottom = max([top + row, *(drawn.bottom for drawn in parts)])
    if block.nodes or block.unnamed:
        beside = x + span + _GAP if parts else x + (span - _WIDTH) / 2
        bottom = max(bottom, _draw_nodes(picture, block, boxes, beside, top + row, is_folded))
        span += _WIDTH + _GAP if parts else 0.0
    return _Drawn(tuple(box.middle for box in boxes), top, x + span, bottom)


def _switch_rows(block: Block, is_folded: bool) -> list[tuple[str, tuple[Note, ...]]]:
    """The box of each switch, or one for all of them."""
    level = f"level {block.level}" if block.level is not None else "level unknown"
    is_few = len(block.switches) <= _MOST_SEPARATE and len(block.parts) <= _MANY_PARTS
    if block.number == 1 and not is_folded and is_few:
        return [(clean(name), (Note(level, Tone.MUTED),)) for name in block.switches]
    if block.number > 1 and len(block.switches) > 1:
        title = f"{block.number} x {count(len(block.switches), 'switch', 'switches')}, {level}"
    else:
        title = f"{count(block.number * len(block.switches), 'switch', 'switches')}, {level}"
    if is_folded:
        return [(f"each: {title}", ())]
    return [(title, (Note(_names(block.alike or block.switches), Tone.MUTED),))]


def _names(names: Sequence[str]) -> str:
    text = clean(", ".join(host_spans(names)))
    if len(text) <= _LONGEST_NAMES:
        return text
    return f"{clean(min(names, key=by_number))} .. {clean(max(names, key=by_number))}"


def _draw_nodes(picture: Drawing, block: Block, above: Sequence[Box], x: float, top: float, is_folded: bool) -> float:
    """The box of the nodes on a block, below or beside its switches. Returns its lower edge."""
    each = " each" if is_folded else ""
    ends = [count(len(block.nodes), "node")] if block.nodes else []
    ends += [count(block.unnamed, "adapter") + " without a host name"] if block.unnamed else []
    lines = [Note(_names(block.nodes), Tone.MUTED)] if block.nodes and not is_folded else []
    lines += [_line(bundle) for bundle in block.inside]
    box = _box(", ".join(ends) + each, tuple(lines), x, top + _RISE / 2, "nic", _names(block.nodes))
    box.low = any(bundle.is_low for bundle in block.inside)
    picture.add(box)
    for switch in above:
        picture.join((switch.middle, switch.bottom), (box.middle, box.y), grade=Grade.LOW if box.low else Grade.PLAIN)
    return box.bottom


def _draw_rest(picture: Drawing, rest: Sequence[Block], x: float, top: float) -> _Drawn:
    """One box for blocks that are all different."""
    number = totals(rest)
    lines = (
        Note(f"{count(number['switches'], 'switch', 'switches')}, {count(number['nodes'], 'node')}", Tone.MUTED),
        Note(_names([name for block in rest for name in (block.alike or block.switches)]), Tone.MUTED),
    )
    box = _box(f"{number['blocks']} more, of {len(rest)} kinds", lines, x, top, "hub", "")
    picture.add(box)
    return _Drawn((box.middle,), box.y, box.right, box.bottom)


def _join(picture: Drawing, boxes: Sequence[tuple[str, Box]], drawn: _Drawn, part: Block | None, is_each: bool) -> None:
    """Join a part (None: unlike parts in one box) to the boxes above it: (name of the switch or "", box)."""
    up = part.up if part is not None else ()
    hint = "; ".join(_line(bundle).text for bundle in up)
    for name, box in boxes:
        if part is not None and name and name not in part.above:
            continue
        is_low = part is not None and (name in part.slow_above if name else bool(part.slow_above))
        grade = Grade.LOW if is_low else Grade.PLAIN
        for middle in drawn.middles:
            picture.join((box.middle, box.bottom), (middle, drawn.top), grade=grade, hint=hint)
    middle = (drawn.middles[0] + drawn.middles[-1]) / 2
    for row, bundle in enumerate(up[:2]):
        text = f"{bundle.number} x {bundle.kind}" if bundle.kind else count(bundle.number, "link")
        tone = Tone.WARNING if bundle.is_low else Tone.MUTED
        picture.labels.append(label(middle, drawn.top - 6 - 12 * row, text + (" each" if is_each else ""), tone))


def _line(bundle: Bundle) -> Note:
    text = f"{bundle.number} x {bundle.kind}" if bundle.kind else count(bundle.number, "link")
    if bundle.rate_Bps is not None:
        text += f", {show(bundle.number * bundle.rate_Bps, 'B/s')}"
    return Note(text + (" (below capability)" if bundle.is_low else ""), Tone.WARNING if bundle.is_low else Tone.MUTED)


def _box(title: str, lines: tuple[Note, ...], x: float, y: float, kind: str, hint: str) -> Box:
    texts, height = set_text(title, lines, _WIDTH - 2 * PAD)
    return Box(x, y, _WIDTH, height + 2 * PAD, kind, hint, moved(texts, x + PAD, y + PAD))


def fabric_svg(fabric: Fabric) -> str:
    """The drawing as a separate SVG file, light and dark; the same fabric always gives the same text."""
    title = f"Fabric from {', '.join(fabric.sources)}"
    about = counts_of(fabric)
    return document(lay_out(title, about, fold_fabric(fabric)), title, about)
