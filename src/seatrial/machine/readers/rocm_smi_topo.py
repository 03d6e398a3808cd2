"""`rocm-smi --showtopo` or `--showtopotype` -> how AMD GPUs are connected, and their nearest NUMA nodes.

Format: the output of rocm_smi.py (ROCm, rocm_smi_lib): sections for weight, hops and link type, each with a matrix that
has 0 on its diagonal, then "Numa Nodes" with two lines per GPU. Only the link type shows how a pair is connected;
weights and hops alone are refused. Over PCIe, 3 hops mean that both CPU sockets are on the path, 2 that it stays in one
(AMD SMI documentation, "Interpreting hops and weight"). XXXX and N/A mean that the driver does not know the link type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from seatrial.machine.readers.dump import Line, choose, without_prefix
from seatrial.machine.readers.matrix_lines import read_matrix_lines
from seatrial.machine.readers.topology_matrix import (
    CellKind,
    Grid,
    Matrix,
    find_matrices,
    gpu_index,
    own_matrices,
    read_grid,
)
from seatrial.machine.survey import NamedPart, Survey, one_fact
from seatrial.model.machine.machine import DeviceKind, Path

TOOL = "rocm-smi-topo"
SOURCE = "rocm-smi --showtopo"

_SECTION = re.compile(r"[\s=]{0,200}(\w[\w /]{0,40}) between two GPUs\b")
_LINK_TYPE, _HOPS = "link type", "hops"
_BANNER = re.compile(r"[\s=]{0,200}(?:ROCm System Management Interface|End of ROCm SMI Log)\b")
_NUMA = re.compile(
    r"\s{0,40}GPU[\[ ]?(\d{1,5})\]?\s{0,40}:\s{0,40}\(Topology\) Numa (Node|Affinity):\s{0,40}(\S{1,40})\s*\Z"
)
_NODE = re.compile(r"(?:0|[1-9][0-9]{0,4})\Z")
_UNKNOWN_NODES = frozenset({"-1", "4294967295", "None", "N/A"})
"""The kernel's -1, as a signed or unsigned number, and what the tool prints if the query failed."""

_ACROSS_SOCKETS = ("PCIE", "3")
_CLASSES = {"XGMI": "XGMI", "PCIE": "PCI"}
_VALUE = re.compile(r"(?:[0-9]{1,10}|N/A|True|False)\Z")


class _Dump(Struct):
    """The sections of one run of the tool (lower-case title -> matrix), and the lines about NUMA nodes."""

    first: Line
    sections: dict[str, Matrix] = {}
    nodes: list[tuple[Line, int, str, str]] = []


def read_rocm_smi_topo(data: bytes, pick: int | None = None) -> Survey:
    """The run of the tool in a dump, the `pick`-th (from 1) of those with link types.

    `paths` has each unordered pair once: XGMI, SYS (PCIe across sockets), PCI (over PCIe), or None if the driver does
    not know. Raises ParseError if a matrix is damaged, or there are no link types; UsageError for several runs without
    `pick`.
    """
    lines = read_matrix_lines(data, TOOL)
    found = find_matrices(lines)
    own_matrices(lines, found, CellKind.LINK_TYPE, TOOL)
    dumps = _dumps(lines, found)
    complete = [dump for dump in dumps if _LINK_TYPE in dump.sections]
    if dumps and not complete:
        shown = ", ".join(dumps[0].sections) or "NUMA nodes"
        raise dumps[0].first.error(
            TOOL, f"the dump has {shown}, but no link type: give the output of `rocm-smi --showtopo`"
        )
    dump = choose(complete, lambda one: one.first.number, pick, TOOL, "matrix")
    grid, hops = _read_sections(dump)
    nodes, unread = _nodes(dump, grid)
    return Survey(
        source=SOURCE,
        named_parts=tuple(_part(label, nodes.get(gpu_index(label))) for label in grid.labels),
        paths=tuple(
            Path(a, b, "SYS" if (cell, hops.get((a, b))) == _ACROSS_SOCKETS else _CLASSES.get(cell))
            for a, b, cell in grid.pairs()
        ),
        unread=unread,
    )


def _dumps(lines: Sequence[Line], found: Sequence[Matrix]) -> list[_Dump]:
    """The runs of the tool in a file. A banner ends a run, and so does a section that it already has."""
    by_header = {matrix.first: matrix for matrix in found}
    dumps: list[_Dump] = []
    current: _Dump | None = None
    title: tuple[str, Line] | None = None
    for number, line in enumerate(lines):
        text = without_prefix(line.text)[:400]
        section, numa, matrix = _SECTION.match(text), _NUMA.match(text), by_header.get(number)
        if _BANNER.match(text):
            current = title = None
        elif section is not None:
            title = (section[1].strip().lower(), line)
        elif matrix is not None:
            name, first = title or (_LINK_TYPE if CellKind.LINK_TYPE in matrix.kinds() else "", line)
            title = None
            if not name:
                continue
            if current is None or name in current.sections:
                dumps.append(current := _Dump(first))
            current.sections[name] = matrix
        elif numa is not None:
            if current is None:
                dumps.append(current := _Dump(line))
            current.nodes.append((line, int(numa[1]), numa[2], numa[3]))
    return dumps


def _read_sections(dump: _Dump) -> tuple[Grid, Mapping[tuple[str, str], str]]:
    """The link types, and the hops of each pair. Weights are only checked: damage there makes the link types doubtful
    too."""
    hops: Mapping[tuple[str, str], str] = {}
    for name, matrix in dump.sections.items():
        if name != _LINK_TYPE:
            # Weights and hops are numbers, accessibility is True or False.
            others = read_grid(matrix, CellKind.LINK_TYPE, TOOL, is_cell=_VALUE.match)
            hops = others.cells if name == _HOPS else hops
    grid = read_grid(dump.sections[_LINK_TYPE], CellKind.LINK_TYPE, TOOL)
    for matrix in dump.sections.values():
        if set(matrix.words) != set(grid.labels):
            raise matrix.header.error(TOOL, "the sections list different GPUs")
    return grid, hops


def _nodes(dump: _Dump, grid: Grid) -> tuple[Mapping[int | None, int], tuple[str, ...]]:
    """GPU number -> NUMA node, and sentences about ignored lines. Raises ParseError if lines contradict each other."""
    stated: dict[tuple[int, str], int | None] = {}
    unread: list[str] = []
    for line, index, what, value in dump.nodes:
        if f"GPU{index}" not in grid.labels:
            raise line.error(TOOL, f"GPU{index} is not in the matrix")
        if value not in _UNKNOWN_NODES and not _NODE.match(value):
            raise line.error(TOOL, "not a NUMA node")
        node = None if value in _UNKNOWN_NODES else int(value)
        if not line.is_ended and node != 0:
            unread.append(f"{TOOL}: line {line.number}: the file ends in this number: it may be cut off")
            node = None
        if stated.get((index, what), node) != node:
            raise line.error(TOOL, f"GPU{index} already has another node")
        stated[index, what] = node
    nodes: dict[int | None, int] = {}
    for index in sorted({index for index, _ in stated}):
        candidates = {node for what in ("Node", "Affinity") if (node := stated.get((index, what))) is not None}
        if len(candidates) == 1:
            nodes[index] = candidates.pop()
        elif candidates:
            unread.append(f"{TOOL}: GPU{index}: its node and its affinity are different NUMA nodes: both were ignored")
    return nodes, tuple(unread)


def _part(label: str, node: int | None) -> NamedPart:
    facts = one_fact("vendor_id", "1002", "rocm-smi lists AMD GPUs")
    return NamedPart(DeviceKind.GPU, label, numa=node, index=gpu_index(label), is_label=True, facts=facts)
