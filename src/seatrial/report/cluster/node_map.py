"""The nodes of a cluster by switch: a cell for each node, the odd ones marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.screening.columns import natural
from seatrial.model.screen import OddKind, Screen
from seatrial.report.charts.heat import number, rectangle, svg, text
from seatrial.report.pages.svg import Svg
from seatrial.report.units import count

_EDGE = 1060.0
_NAMED_CELL = (64.0, 26.0)
_SMALL_CELL = (11.0, 11.0)
_MOST_NAMED = 96
"""Up to so many nodes, each cell has its name."""
_GAP = 22.0
_TITLE = 16.0
UNKNOWN = "switch not known"


def node_map(found: Screen, ident: str) -> tuple[Svg, str]:
    """The picture, and the same in words."""
    switches = members(found.nodes, found.switch_of)
    odd_nodes = {one.nodes[0] for one in found.odd if one.kind in (OddKind.NODE, OddKind.DEVICE)}
    odd_links = {one.nodes[0] for one in found.odd if one.kind is OddKind.LINK and len(one.nodes) == 1}
    odd_switches = {name for one in found.odd if one.kind is OddKind.SWITCH for name in one.what.split(" or ")}
    minority = {node for classes in found.classes for node in classes.minority}
    is_named = len(found.nodes) <= _MOST_NAMED
    cell = _NAMED_CELL if is_named else _SMALL_CELL
    parts: list[str] = []
    x = y = row_height = 0.0
    widest = 0.0
    for switch, nodes in switches.items():
        columns = _columns(len(nodes), is_named)
        width = max(columns * cell[0], 6.6 * len(switch) + 4)
        height = _TITLE + math.ceil(len(nodes) / columns) * cell[1]
        if x and x + width > _EDGE:
            x, y, row_height = 0.0, y + row_height + _GAP, 0.0
        parts.append(text(x, y + 11, switch, "odd-name" if switch in odd_switches else "tick", "start"))
        places = {
            node: (x + k % columns * cell[0], y + _TITLE + k // columns * cell[1]) for k, node in enumerate(nodes)
        }
        parts += _cells(places, cell, is_named, odd_nodes, odd_links, minority)
        if switch in odd_switches:
            parts.append(rectangle(x - 3, y - 3, width + 6, height + 6, "odd-frame"))
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
    content = f'<g transform="translate(6 6)">{"".join(parts)}</g>'
    return Svg(svg(ident, max(widest, 520.0) + 12, bottom + 42, "Nodes by switch", said, content)), said


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
            f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
        )
    for kind, squares in plain.items():
        yield f'<path class="{kind}" d="{"".join(squares)}"/>'
    for node in odd_links & places.keys():
        x, y = places[node]
        yield rectangle(x, y, width, height, "odd-frame")
    if is_named:
        for node, (x, y) in places.items():
            shown = node if len(node) <= 9 else f"{node[:4]}…{node[-4:]}"
            yield text(x + width / 2, y + height / 2 + 4, shown, "on-odd" if node in odd_nodes else "")


def _legend(y: float, has_classes: bool) -> list[str]:
    entries = [("fine", "as the others"), ("odd", "odd"), ("odd-frame", "its link, or the switch, is odd")]
    if has_classes:
        entries.insert(1, ("minor", "of the smaller class"))
    parts, x = [], 0.0
    for kind, words in entries:
        parts += [rectangle(x + 1, y, 11, 11, kind), text(x + 18, y + 10, words, "tick", "start")]
        x += 34 + 6.4 * len(words)
    return parts
