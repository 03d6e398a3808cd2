"""The matrix of pairs of nodes; of many nodes, folded to pairs of switches or of blocks of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from seatrial.model.frozen import Frozen
from seatrial.model.screen import Odd, OddKind, PairFigure, Screen
from seatrial.report.charts.heat import Place, rectangle, text
from seatrial.report.charts.pair_matrix import CELL_WITH_LABEL, Matrix
from seatrial.report.cluster.node_map import UNKNOWN, members
from seatrial.report.cluster.words import figure_name
from seatrial.report.pages.svg import Svg
from seatrial.report.units import arrow_meaning, count, show, show_range

_MOST_CELLS = 128
_LEAST_MARK = 3.0


class PairMap(Frozen):
    """One figure of pairs: its name, its picture, and the same in words."""

    title: str
    said: str
    picture: Svg


def pair_map(figure: PairFigure, found: Screen, ident: str) -> PairMap:
    """The matrix of a figure, with frames around odd links and switches."""
    groups, of_what = _groups(found)
    place = {node: k for k, (_, nodes) in enumerate(groups) for node in nodes}
    collected: dict[Place, list[float]] = {}
    for (a, b), own in zip(figure.pairs, figure.values, strict=True):
        row, column = sorted((place[a], place[b]))
        collected.setdefault((row, column), []).append(median(own))
    values: dict[Place, float] = {}
    for (row, column), each in collected.items():
        values[row, column] = values[column, row] = median(each)
    is_folded = of_what != "node"
    title = f"{figure_name(figure.benchmark, figure.figure)} between nodes"
    said = _said(figure, len(groups), of_what)
    matrix = Matrix(values, len(groups), figure.unit, arrow_meaning(figure.better), _LEAST_MARK, has_diagonal=is_folded)
    odd = [one for one in found.odd if one.figure == figure.figure and one.benchmark == figure.benchmark]
    if is_folded:  # a row has many nodes, of which one is odd
        odd = [one for one in odd if one.kind is OddKind.SWITCH]
    frames = [part for one in odd for part in _frames(one, place, matrix)]
    return PairMap(title, said, matrix.drawn(ident, title, said, _labels([name for name, _ in groups], matrix), frames))


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


def _labels(names: Sequence[str], matrix: Matrix) -> list[str]:
    step = 1
    while step * matrix.side < CELL_WITH_LABEL:
        step *= 2
    parts = [text(-6, (k + 0.5) * matrix.side + 4, names[k][-10:], "tick", "end") for k in range(0, len(names), step)]
    if matrix.side >= 8 * max(len(name) for name in names):
        parts += [text((k + 0.5) * matrix.side, -6, name, "tick") for k, name in enumerate(names)]
    return parts


def _frames(one: Odd, place: dict[str, int], matrix: Matrix) -> list[str]:
    side, edge = matrix.side, matrix.edge
    places = sorted({place[node] for node in one.nodes if node in place})
    parts: list[str] = []
    if one.kind is OddKind.LINK and len(one.nodes) == 2 and len(places) == 2:
        mark = max(side, 2 * _LEAST_MARK)
        for row, column in (places, places[::-1]):
            x, y = (column + 0.5) * side - mark / 2, (row + 0.5) * side - mark / 2
            parts += [rectangle(x, y, mark, mark, kind) for kind in ("slow-rim", "slow")]
        return parts
    for k in places[:8]:
        for kind in ("slow-rim", "slow"):
            parts += [rectangle(0, k * side, edge, side, kind), rectangle(k * side, 0, side, edge, kind)]
    return parts
