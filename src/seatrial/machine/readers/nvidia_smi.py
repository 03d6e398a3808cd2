"""`nvidia-smi`: the matrices of `topo -m` (also -mp, -i) and `topo -p2p r|w|rw`, and answers about the memory of GPUs.

topo -m has the path class of each pair of GPUs and adapters, and their affinity. Format: the tool's output and its
legend; there is no published specification. Old drivers print SOC for SYS. Newer releases add columns after the labels:
CPU Affinity, NUMA Affinity, GPU NUMA ID.

topo -p2p states whether GPUs can read and write each other's memory. Format: the tool's output, its legend (OK, CNS,
GNS, TNS, NS, DR, U) and its help. Only the command above a matrix states its capability; n (NVLink), a (atomics) and p
(properties) are not about reading and writing.

ECC mode and remapped rows, separated by commas: `nvidia-smi --query-gpu=pci.bus_id,ecc.mode.current` and `nvidia-smi
--query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,
remapped_rows.failure`, both with
`--format=csv,noheader,nounits` (nvidia-smi --help-query-gpu, --help-query-remapped-rows). A value that a product does
not have is "[N/A]" or "[Not Supported]". Whether a remapping is pending or failed is Yes or No, or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.affinity_cells import DevicePlace, read_places
from seatrial.machine.readers.dump import Line, choose, is_fence, without_prefix
from seatrial.machine.readers.matrix_lines import read_matrix_lines
from seatrial.machine.readers.topology_matrix import (
    VOCABULARY,
    CellKind,
    Grid,
    Matrix,
    find_matrices,
    gpu_index,
    own_matrices,
    read_grid,
)
from seatrial.machine.survey import FactBook, NamedPart, Survey, merge_facts, one_fact
from seatrial.model.machine.links import pci_address
from seatrial.model.machine.machine import DeviceKind, Path, PeerAccess

TOOL = "nvidia-smi-topo"
SOURCE = "nvidia-smi topo -m"

_TITLE = re.compile(r"\s*NIC Legend:\s*\Z")
_ENTRY = re.compile(r"\s*([^\s:]{1,256}):\s*([A-Za-z0-9][A-Za-z0-9_.:\-]{0,255})(?:```|~~~)?\s*\Z")
_NUMBERED = re.compile(r"(.{0,250}?)(0|[1-9][0-9]{0,4})\Z")


def read_nvidia_smi_topo(data: bytes, pick: int | None = None) -> Survey:
    """The matrix of a dump, the `pick`-th (from 1) if there are several.

    Parts have the labels of the header, in its order; `paths` has each unordered pair once. Raises ParseError if
    the matrix is damaged or missing; UsageError for several matrices without `pick`.
    """
    lines = read_matrix_lines(data, TOOL)
    found = find_matrices(lines)
    own = own_matrices(lines, found, CellKind.TOPOLOGY, TOOL)
    matrix = choose(own, lambda one: one.header.number, pick, TOOL, "matrix")
    grid = read_grid(matrix, CellKind.TOPOLOGY, TOOL)
    places, ambiguous = read_places(matrix, grid, TOOL)
    next_one = min((other.first for other in found if other.first > matrix.first), default=len(lines))
    aliases, unnamed = _legend(lines[matrix.end : next_one], grid.labels)
    return Survey(
        source=SOURCE,
        named_parts=tuple(
            _placed(nvidia_part(label), places.get(label, DevicePlace()), aliases.get(label)) for label in grid.labels
        ),
        paths=tuple(_path(a, b, grid.cell(a, b)) for a, b in combinations(grid.labels, 2)),
        unread=(*ambiguous, *unnamed, *_not_pasted(matrix, grid)),
    )


def nvidia_part(label: str) -> NamedPart:
    """A device by its label in one of nvidia-smi's matrices."""
    index = gpu_index(label)
    if index is None:
        return NamedPart(DeviceKind.NIC, label, is_label=True)
    facts = one_fact("vendor_id", "10de", "nvidia-smi lists NVIDIA GPUs")
    return NamedPart(DeviceKind.GPU, label, index=index, is_label=True, facts=facts)


def _placed(part: NamedPart, place: DevicePlace, alias: str | None) -> NamedPart:
    facts = merge_facts(part.facts, one_fact("gpu_numa", place.gpu_numa, SOURCE))
    aliases = (alias,) if alias else ()
    return replace(part, numa=place.numa, numa_nodes=place.numa_nodes, cpus=place.cpus, aliases=aliases, facts=facts)


def _not_pasted(matrix: Matrix, grid: Grid) -> Iterator[str]:
    """A sentence about the rows, or the header, that the text does not have."""
    if grid.without_rows:
        rows = f"no rows of {', '.join(grid.without_rows)}"
        yield f"{TOOL}: line {matrix.header.number}: {rows} below: the paths between them are unknown"
    if matrix.header == matrix.rows[0].line:
        yield f"{TOOL}: line {matrix.header.number}: a matrix without its header: CPUs and NUMA nodes are left out"


def _path(a: str, b: str, cell: str | None) -> Path:
    if cell is None:
        return Path(a, b, None)
    match = VOCABULARY[CellKind.TOPOLOGY].match(cell)
    links = match["links"] if match else None
    if links is not None:
        return Path(a, b, "NV", int(links))
    return Path(a, b, "SYS" if cell == "SOC" else cell)


def _legend(lines: Sequence[Line], labels: Sequence[str]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Label -> the adapter's other name in the legend below a matrix, and a sentence about missing names.

    Raises ParseError if the legend contradicts itself.
    """
    title = next((number for number, line in enumerate(lines) if _TITLE.match(_bare(line))), None)
    if title is None:
        return {}, ()
    entries, wrong = _entries(lines[title + 1 :], labels)
    if wrong is not None:
        return {}, (f"{TOOL}: line {wrong.number}: not an adapter name: the whole NIC legend was ignored",)
    adapters = [label for label in labels if gpu_index(label) is None]
    if entries and not entries[-1][0].is_ended and not _is_certainly_complete(entries, adapters):
        entries.pop()
    aliases: dict[str, str] = {}
    for line, label, name in entries:
        if label in aliases:
            raise line.error(TOOL, f"the legend has {label} twice")
        if name in aliases.values() or (name in labels and name != label):
            raise line.error(TOOL, f"{name} is already the name of another adapter")
        aliases[label] = name
    unnamed = [label for label in adapters if label not in aliases]
    sentence = f"{TOOL}: the NIC legend has no other name for {', '.join(unnamed)}"
    return {label: name for label, name in aliases.items() if name != label}, (sentence,) if unnamed else ()


def _entries(lines: Sequence[Line], labels: Sequence[str]) -> tuple[list[tuple[Line, str, str]], Line | None]:
    """The entries of a legend, and the first invalid one.

    With many adapters, nvidia-smi prints pieces of the matrix instead of names ("NIC0: DE      N/A"), some of them a
    single word: if one entry is invalid, none can be trusted.
    """
    entries: list[tuple[Line, str, str]] = []
    for line in lines:
        text = _bare(line)
        match = _ENTRY.match(text)
        if match is None:
            label, colon, _ = text.partition(":")
            if colon and label.strip() in labels:
                return [], line
            if text.strip() or is_fence(line.text):
                break
        elif match[1] in labels and gpu_index(match[1]) is None:
            entries.append((line, match[1], match[2]))
    return entries, None


def _bare(line: Line) -> str:
    return without_prefix(line.text) if len(line.text) < 2000 else line.text[:2000]


def _is_certainly_complete(entries: Sequence[tuple[Line, str, str]], adapters: Sequence[str]) -> bool:
    """Whether the last entry of a file without a final line break is certainly complete.

    It is if it belongs to the last adapter and continues the number of the entry before (mlx5_7, mlx5_8): a cut name
    would end in a smaller number. A single entry is complete if it ends in 0, which no digit can follow.
    """
    if {label for _, label, _ in entries} != set(adapters):
        return False
    last = _NUMBERED.match(entries[-1][2])
    if last is None:
        return False
    if last[2] == "0":
        return True
    before = _NUMBERED.match(entries[-2][2]) if len(entries) > 1 else None
    return before is not None and before[1] == last[1] and int(last[2]) == int(before[2]) + 1


TOOL_P2P = "nvidia-smi-p2p"
SOURCE_P2P = "nvidia-smi topo -p2p"

_CAPABILITY = re.compile(r"nvidia-smi\s{1,20}topo\b.{0,300}?\s(?:-p2p|--p2pstatus)[ =]\s{0,20}([A-Za-z]{1,20})\b")
_DEFAULT = "r"  # if the command is not in the dump


def read_nvidia_smi_p2p(data: bytes, pick: int | None = None) -> Survey:
    """The read or write matrix of a dump, the `pick`-th (from 1) if there are several.

    `p2p` has each unordered pair once; without a command above the matrix, it is assumed to be about reading. Raises
    ParseError if the matrix is damaged or missing; UsageError for several matrices without `pick`, or if all are about
    something else.
    """
    lines = read_matrix_lines(data, TOOL_P2P)
    every = own_matrices(lines, find_matrices(lines), CellKind.P2P, TOOL_P2P)
    own = [matrix for matrix in every if set(_capability(matrix)) <= {"r", "w"}]
    if every and not own:
        other = every[0]
        raise UsageError(
            f"{TOOL_P2P}: line {other.header.number}: the matrix is of `-p2p {_capability(other)}`, not about "
            "reading or writing",
            "take one of `nvidia-smi topo -p2p r` (or w)",
        )
    matrix = choose(own, lambda one: one.header.number, pick, TOOL_P2P, "matrix")
    grid = read_grid(matrix, CellKind.P2P, TOOL_P2P)
    reads, writes = ("r" in _capability(matrix), "w" in _capability(matrix))
    return Survey(
        source=SOURCE_P2P,
        named_parts=tuple(nvidia_part(label) for label in grid.labels),
        p2p=tuple(PeerAccess(a, b, cell if reads else None, cell if writes else None) for a, b, cell in grid.pairs()),
    )


def _capability(matrix: Matrix) -> str:
    match = _CAPABILITY.search(matrix.command[:2000])
    return match[1].lower() if match else _DEFAULT


_QUERY = "nvidia-smi"
ECC_QUERY = "--query-gpu=pci.bus_id,ecc.mode.current"
ROWS_QUERY = (
    "--query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,"
    "remapped_rows.pending,remapped_rows.failure"
)

_MODES = {"enabled": "enabled", "disabled": "disabled"}
_MOST_ROWS = 1_000_000


def read_ecc_modes(text: str) -> tuple[NamedPart, ...]:
    """One part per GPU with `ecc_mode`, if it has one. Raises ParseError."""
    parts = []
    for address, (mode,) in _lines(text, 1):
        book = FactBook()
        book.say("ecc_mode", _MODES.get(mode.lower()), f"{_QUERY} {ECC_QUERY}")
        parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)


def read_remapped_rows(text: str) -> tuple[NamedPart, ...]:
    """One part per GPU with the number of rows remapped after correctable and after uncorrectable errors, and whether a
    remapping is pending or failed, as far as it has them. Raises ParseError."""
    source = f"{_QUERY} {ROWS_QUERY.partition('=')[0]}"
    parts = []
    for address, (correctable, uncorrectable, pending, failure) in _lines(text, 4):
        book = FactBook()
        book.say("rows_remapped_correctable", _number(correctable), source, "1", volatile=True)
        book.say("rows_remapped_uncorrectable", _number(uncorrectable), source, "1", volatile=True)
        book.say("row_remapping_pending", _flag(pending), source, volatile=True)
        book.say("row_remapping_failed", _flag(failure), source, volatile=True)
        parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)


def _lines(text: str, values: int) -> Iterator[tuple[str, list[str]]]:
    """(PCI address, the other values) of each line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        first, *others = (cell.strip() for cell in line.split(","))
        address = pci_address(first)
        if address is None or len(others) != values:
            raise ParseError(_QUERY, number, line, f"expected a PCI address and {values} values, separated by commas")
        yield address, others


def _number(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() and cell.isascii() and len(cell) < 8 and int(cell) < _MOST_ROWS else None


def _flag(cell: str) -> bool | None:
    if cell.lower() in ("yes", "no"):
        return cell.lower() == "yes"
    number = _number(cell)
    return None if number is None else number > 0
