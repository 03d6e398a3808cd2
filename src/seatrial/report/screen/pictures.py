"""Pictures of a cluster with what is odd marked: nodes by switch, pairs of nodes, figures over nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from seatrial.analysis.screening.columns import natural
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import arrow_meaning, count, few_names, settings, show, show_range
from seatrial.model.study.screen import FigureOverNodes, Odd, OddKind, PairFigure, Screen
from seatrial.report.blocks import Svg
from seatrial.report.charts import heat
from seatrial.report.screen.words import MOST_NAMED, figure_name

_EDGE = 1060.0
_NAMED_CELL = (64.0, 26.0)
_SMALL_CELL = (11.0, 11.0)
_MOST_NAMED = 96
"""Up to so many nodes, each cell has its name."""
_GAP = 22.0
_TITLE = 16.0
UNKNOWN = "switch not known"


class Picture(Frozen):
    """A picture with its name, "" if it needs none, and the same in words."""

    title: str
    said: str
    svg: Svg


def node_map(found: Screen, ident: str) -> Picture:
    """The nodes by switch."""
    switches = members(found.nodes, found.switch_of)
    odd_nodes = {one.nodes[0] for one in found.odd if one.kind in (OddKind.NODE, OddKind.DEVICE)}
    odd_links = {one.nodes[0] for one in found.odd if one.kind is OddKind.LINK and len(one.nodes) == 1}
    odd_switches = {name for one in found.odd if one.kind is OddKind.SWITCH for name in one.what.split(" or ")}
    minority = {node for classes in found.classes for node in classes.minority}
    is_named = len(found.nodes) <= _MOST_NAMED
    cell = _NAMED_CELL if is_named else _SMALL_CELL
    parts: list[str] = []
    x = y = row_height = widest = 0.0
    for switch, nodes in switches.items():
        columns = _columns(len(nodes), is_named)
        width = max(columns * cell[0], 6.6 * len(switch) + 4)
        height = _TITLE + math.ceil(len(nodes) / columns) * cell[1]
        if x and x + width > _EDGE:
            x, y, row_height = 0.0, y + row_height + _GAP, 0.0
        parts.append(heat.text(x, y + 11, switch, "odd-name" if switch in odd_switches else "tick", "start"))
        places = {
            node: (x + k % columns * cell[0], y + _TITLE + k // columns * cell[1]) for k, node in enumerate(nodes)
        }
        parts += _cells(places, cell, is_named, odd_nodes, odd_links, minority)
        if switch in odd_switches:
            parts.append(heat.rectangle(x - 3, y - 3, width + 6, height + 6, "odd-frame"))
        x += width + _GAP
        widest = max(widest, x - _GAP)
        row_height = max(row_height, height)
    bottom = y + row_height
    parts += _legend(bottom + 18, bool(minority))
    known = sum(len(nodes) for switch, nodes in switches.items() if switch != UNKNOWN)
    of_switches = count(len(switches) - (UNKNOWN in switches), "switch", "switches")
    of_them = "" if known == len(found.nodes) else f", {known} of them"
    said = f"{count(len(found.nodes), 'node')}{of_them} on {of_switches}."
    if not known:
        said = f"{count(len(found.nodes), 'node')}; their switches are not known."
    size = (max(widest, 520.0) + 12, bottom + 42)
    return Picture("", said, heat.svg(ident, size, "Nodes by switch", said, parts, (6, 6)))


def members(nodes: Sequence[str], switch_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Switch -> its nodes, both in the order of their names; those on no known switch last."""
    found: dict[str, list[str]] = {}
    for switch in sorted({switch_of[node] for node in nodes if node in switch_of}, key=natural):
        found[switch] = []
    for node in sorted(nodes, key=natural):
        found.setdefault(switch_of.get(node, UNKNOWN), []).append(node)
    return found


def _columns(n: int, is_named: bool) -> int:
    if is_named:
        return max(1, min(n, 8))
    if n <= 64:
        return max(1, math.ceil(math.sqrt(n) * 1.2))
    return int(_EDGE // _SMALL_CELL[0])


def _cells(
    places: Mapping[str, tuple[float, float]],
    cell: tuple[float, float],
    is_named: bool,
    odd_nodes: set[str],
    odd_links: set[str],
    minority: set[str],
) -> Iterator[str]:
    width, height = cell[0] - 2, cell[1] - 2
    plain: dict[str, list[str]] = {}
    for node, (x, y) in places.items():
        kind = "odd" if node in odd_nodes else "minor" if node in minority else "fine"
        plain.setdefault(kind, []).append(
            f"M{heat.number(x)} {heat.number(y)}h{heat.number(width)}v{heat.number(height)}h{heat.number(-width)}z"
        )
    for kind, squares in plain.items():
        yield f'<path class="{kind}" d="{"".join(squares)}"/>'
    for node in odd_links & places.keys():
        x, y = places[node]
        yield heat.rectangle(x, y, width, height, "odd-frame")
    if is_named:
        for node, (x, y) in places.items():
            shown = node if len(node) <= 9 else f"{node[:4]}…{node[-4:]}"
            yield heat.text(x + width / 2, y + height / 2 + 4, shown, "on-odd" if node in odd_nodes else "")


def _legend(y: float, has_classes: bool) -> list[str]:
    entries = [("fine", "as the others"), ("odd", "odd"), ("odd-frame", "its link, or the switch, is odd")]
    if has_classes:
        entries.insert(1, ("minor", "of the smaller class"))
    parts, x = [], 0.0
    for kind, words in entries:
        parts += [heat.rectangle(x + 1, y, 11, 11, kind), heat.text(x + 18, y + 10, words, "tick", "start")]
        x += 34 + 6.4 * len(words)
    return parts


_MOST_CELLS = 128
_LEAST_MARK = 3.0


def pair_map(figure: PairFigure, found: Screen, ident: str) -> Picture:
    """The matrix of a figure, with frames around odd links and switches."""
    groups, of_what = _groups(found)
    place = {node: k for k, (_, nodes) in enumerate(groups) for node in nodes}
    collected: dict[heat.Place, list[float]] = {}
    for (a, b), own in zip(figure.pairs, figure.values, strict=True):
        row, column = sorted((place[a], place[b]))
        collected.setdefault((row, column), []).append(median(own))
    values: dict[heat.Place, float] = {}
    for (row, column), each in collected.items():
        values[row, column] = values[column, row] = median(each)
    is_folded = of_what != "node"
    title = f"{figure_name(figure.benchmark, figure.figure)} between nodes"
    said = _said(figure, len(groups), of_what)
    matrix = heat.HeatMatrix(
        values, len(groups), figure.unit, arrow_meaning(figure.better), _LEAST_MARK, has_diagonal=is_folded
    )
    odd = [one for one in found.odd if one.figure == figure.figure and one.benchmark == figure.benchmark]
    if is_folded:  # a row has many nodes, of which one is odd
        odd = [one for one in odd if one.kind is OddKind.SWITCH]
    frames = [part for one in odd for part in _frames(one, place, matrix)]
    return Picture(title, said, matrix.drawn(ident, title, said, _labels([name for name, _ in groups], matrix), frames))


def _groups(found: Screen) -> tuple[list[tuple[str, Sequence[str]]], str]:
    """The rows of the matrix, with the nodes of each: a node each, a switch each, or a block of neighbours."""
    switches = members(found.nodes, found.switch_of)
    ordered = [node for nodes in switches.values() for node in nodes]
    if len(ordered) <= _MOST_CELLS:
        return [(node, [node]) for node in ordered], "node"
    if UNKNOWN not in switches and len(switches) <= _MOST_CELLS:
        return list(switches.items()), "switch"
    if UNKNOWN not in switches:
        each = math.ceil(len(switches) / _MOST_CELLS)
        names = list(switches)
        blocks = [names[k : k + each] for k in range(0, len(names), each)]
        return [
            (block[0], [node for name in block for node in switches[name]]) for block in blocks
        ], "block of switches"
    each = math.ceil(len(ordered) / _MOST_CELLS)
    return [(ordered[k], ordered[k : k + each]) for k in range(0, len(ordered), each)], "block of nodes"


def _said(figure: PairFigure, groups: int, of_what: str) -> str:
    medians = [median(own) for own in figure.values]
    folded = "" if of_what == "node" else f" Folded: a row is a {of_what}, a cell the median of its pairs."
    return (
        f"{count(len(figure.pairs), 'pair')} measured: median {show(median(medians), figure.unit)}, range "
        f"{show_range(min(medians), max(medians), figure.unit)}.{folded}"
    )


def _labels(names: Sequence[str], matrix: heat.HeatMatrix) -> list[str]:
    step = heat.step_of_labels(matrix.side, heat.CELL_WITH_LABEL)
    parts = [
        heat.text(-6, (k + 0.5) * matrix.side + 4, names[k][-10:], "tick", "end") for k in range(0, len(names), step)
    ]
    if matrix.side >= 8 * max(len(name) for name in names):
        parts += [heat.text((k + 0.5) * matrix.side, -6, name, "tick") for k, name in enumerate(names)]
    return parts


def _frames(one: Odd, place: dict[str, int], matrix: heat.HeatMatrix) -> list[str]:
    side, edge = matrix.side, matrix.edge
    places = sorted({place[node] for node in one.nodes if node in place})
    parts: list[str] = []
    if one.kind is OddKind.LINK and len(one.nodes) == 2 and len(places) == 2:
        mark = max(side, 2 * _LEAST_MARK)
        for row, column in (places, places[::-1]):
            parts += heat.framed((column + 0.5) * side - mark / 2, (row + 0.5) * side - mark / 2, mark, mark)
        return parts
    for k in places[:8]:
        for kind in ("slow-rim", "slow"):
            parts += [heat.rectangle(0, k * side, edge, side, kind), heat.rectangle(k * side, 0, side, edge, kind)]
    return parts


_WIDTH, _HEIGHT = 500.0, 74.0
_BINS = 80
_LEAST_WIDTH = 0.02
"""The axis spans at least 2 %, so that noise does not look like a difference."""
_MARGIN = 14.0
_TOP = 22.0
_MOST_MARKS = 200
_MOST_DOTS = 48
_MOST_PILES_NAMED = 12
_DOT = 4.0
_MOST_WITH_ENDS = 10
"""The middle 90 % of so few are all of them."""


def distribution(figure: FigureOverNodes, odd: Sequence[Odd], ident: str) -> Picture:
    """The histogram of the medians of a figure; `odd` are the odd ones in this figure."""
    low, high = min(figure.medians), max(figure.medians)
    least = _LEAST_WIDTH * figure.median
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    named = " ".join(filter(None, (figure_name(figure.benchmark, figure.figure), settings(figure.parameters))))
    said = _spread_said(figure, odd)
    parts = _dots(figure, odd, low, high) if len(figure.items) <= _MOST_DOTS else _bars(figure, low, high)
    parts += [*_axis(figure, low, high), *_marks(figure, odd, low, high)]
    size = (_WIDTH + 2 * _MARGIN, _TOP + _HEIGHT + 24)
    return Picture(named, said, heat.svg(ident, size, named, said, parts, (_MARGIN, _TOP)))


def _spread_said(figure: FigureOverNodes, odd: Sequence[Odd]) -> str:
    ends = [f"{(end - 1.0) * 100:+.1f}".replace("-", "\N{MINUS SIGN}") for end in figure.spread]
    among = f" Odd: {few_names([one.what for one in odd], MOST_NAMED)}." if odd else ""
    which = "all" if len(figure.items) <= _MOST_WITH_ENDS else "the middle 90 %"
    return (
        f"{count(len(figure.items), figure.kind.value)}: median {show(figure.median, figure.unit)} "
        f"({arrow_meaning(figure.better)}), {which} from {ends[0]} to {ends[1]} %.{among}"
    )


def _dots(figure: FigureOverNodes, odd: Sequence[Odd], low: float, high: float) -> list[str]:
    """A dot for each, those with nearly equal values above each other; of a dozen, with names above the piles where
    there is room."""
    marked = {one.value for one in odd}
    piles: dict[int, list[str]] = {}
    for item, value in sorted(zip(figure.items, figure.medians, strict=True), key=lambda pair: pair[1]):
        if value not in marked:
            place = round((value - low) / (high - low) * _WIDTH / (2.2 * _DOT))
            piles.setdefault(place, []).append(item.name)
    parts: list[str] = []
    last_end = -1e9
    for place, names in sorted(piles.items()):
        at = min(place * 2.2 * _DOT, _WIDTH)
        step = min(2.2 * _DOT, (_HEIGHT - 18) / len(names))
        heights = [heat.number(_HEIGHT - _DOT - 1 - k * step) for k in range(len(names))]
        circle = f'<circle class="fine" cx="{heat.number(at)}" cy="{{}}" r="{heat.number(_DOT)}"/>'
        parts += map(circle.format, heights)
        shown = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
        length = 6.6 * len(shown)
        start = min(max(0.0, at - length / 2), _WIDTH - length)
        below = max(
            len(own) for own_place, own in piles.items() if start - 6 <= own_place * 2.2 * _DOT <= start + length + 6
        )
        if start > last_end + 6 and len(figure.items) <= _MOST_PILES_NAMED:
            parts.append(heat.text(start, _HEIGHT - 2 * _DOT - 6 - (below - 1) * step, shown, "tick", "start"))
            last_end = start + length
    return parts


def _bars(figure: FigureOverNodes, low: float, high: float) -> list[str]:
    """A bar for each bin with values, at least a pixel high: a single node is visible among thousands."""
    width = (high - low) / _BINS
    counts = [0] * _BINS
    for value in figure.medians:
        counts[min(_BINS - 1, int((value - low) / width))] += 1
    tallest = max(counts)
    side = _WIDTH / len(counts)
    bars = []
    for k, n in enumerate(counts):
        if n:
            height = max(1.5, n / tallest * _HEIGHT)
            bars.append(heat.rectangle(k * side, _HEIGHT - height, max(1.0, side - 0.5), height, "fine"))
    return bars


def _axis(figure: FigureOverNodes, low: float, high: float) -> list[str]:
    at = (figure.median - low) / (high - low) * _WIDTH
    median = f'<path class="border-package" d="M{heat.number(at)} {heat.number(_HEIGHT)}v6"/>'
    line = f'<path class="border-node" d="M0 {heat.number(_HEIGHT)}h{heat.number(_WIDTH)}"/>'
    under = _HEIGHT + 18
    labels = [line, median]
    anchor = "start" if at < 40 else "end" if at > _WIDTH - 40 else "middle"
    labels.append(heat.text(at, under, show(figure.median, figure.unit), "tick", anchor))
    if at > 150:
        labels.append(heat.text(0, under, show(low, figure.unit), "tick", "start"))
    if at < _WIDTH - 150:
        labels.append(heat.text(_WIDTH, under, show(high, figure.unit), "tick", "end"))
    return labels


def _marks(figure: FigureOverNodes, odd: Sequence[Odd], low: float, high: float) -> list[str]:
    """A triangle above each odd one, and the names of the first of each side."""
    parts: list[str] = []
    last_end = -1e9
    for one in sorted(odd[:_MOST_MARKS], key=lambda one: one.value):
        at = (min(max(one.value, low), high) - low) / (high - low) * _WIDTH
        parts.append(f'<path class="odd" d="M{heat.number(at)} {heat.number(_HEIGHT - 4)}l-5 -9h10z"/>')
        length = 6.6 * len(one.what)
        start = min(max(0.0, at - length / 2), _WIDTH - length)
        if start > last_end + 6:
            parts.append(heat.text(start, _HEIGHT - 18, one.what, "odd-name", "start"))
            last_end = start + length
    return parts
