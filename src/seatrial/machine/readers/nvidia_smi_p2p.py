"""`nvidia-smi topo -p2p r|w|rw` -> whether GPUs can read and write each other's memory, as the driver reports it.

Format: the tool's own output, its legend (OK, CNS, GNS, TNS, NS, DR, U) and its help. Only the command above
a matrix states its capability; n (NVLink), a (atomics) and p (properties) are not about reading and writing.
"""

from __future__ import annotations

import re

from seatrial.errors import UsageError
from seatrial.machine.readers.dump import choose
from seatrial.machine.readers.matrix_lines import read_matrix_lines
from seatrial.machine.readers.nvidia_smi_topo import nvidia_part
from seatrial.machine.readers.topology_matrix import Kind, Matrix, find_matrices, own_matrices, read_grid
from seatrial.machine.survey import Survey
from seatrial.model.machine.machine import PeerAccess

TOOL = "nvidia-smi-p2p"
SOURCE = "nvidia-smi topo -p2p"

_CAPABILITY = re.compile(r"nvidia-smi\s{1,20}topo\b.{0,300}?\s(?:-p2p|--p2pstatus)[ =]\s{0,20}([A-Za-z]{1,20})\b")
_DEFAULT = "r"  # if the command is not in the dump


def read_nvidia_smi_p2p(data: bytes, pick: int | None = None) -> Survey:
    """The read or write matrix of a dump, the `pick`-th (from 1) if there are several.

    `p2p` has each unordered pair once; without a command above the matrix, it is assumed to be about reading. Raises
    ParseError if the matrix is damaged or missing; UsageError for several matrices without `pick`, or if all are about
    something else.
    """
    lines = read_matrix_lines(data, TOOL)
    every = own_matrices(lines, find_matrices(lines), Kind.P2P, TOOL)
    own = [matrix for matrix in every if set(_capability(matrix)) <= {"r", "w"}]
    if every and not own:
        other = every[0]
        raise UsageError(
            f"{TOOL}: line {other.header.number}: the matrix is of `-p2p {_capability(other)}`, not about "
            "reading or writing",
            "take one of `nvidia-smi topo -p2p r` (or w)",
        )
    matrix = choose(own, lambda one: one.header.number, pick, TOOL, "matrix")
    grid = read_grid(matrix, Kind.P2P, TOOL)
    for row in grid.rows.values():
        if len(row.values) > len(grid.labels):
            raise row.line.error(TOOL, f"the row has {len(row.values)} cells for {len(grid.labels)} columns")
    reads, writes = ("r" in _capability(matrix), "w" in _capability(matrix))
    return Survey(
        source=SOURCE,
        named_parts=tuple(nvidia_part(label) for label in grid.labels),
        p2p=tuple(PeerAccess(a, b, cell if reads else None, cell if writes else None) for a, b, cell in grid.pairs()),
    )


def _capability(matrix: Matrix) -> str:
    match = _CAPABILITY.search(matrix.command[:2000])
    return match[1].lower() if match else _DEFAULT
