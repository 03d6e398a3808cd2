"""What follows the classes in a row of `nvidia-smi topo -m`: CPU affinity, NUMA affinity, the GPU's own NUMA node.

The tool puts a tab between cells, one more before the GPU's node, and one more before a NUMA affinity that is N/A.
Where tabs were lost, an empty cell leaves
nothing behind: a row with a word for each column is read in order, any other only by positions, and only where the
full rows of the same matrix prove how it is laid out. What cannot be determined is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.machine.readers.topology_matrix import (
    CPU_AFFINITY,
    GPU_NUMA,
    NUMA_AFFINITY,
    Grid,
    Matrix,
    Row,
    Word,
    gpu_index,
)

_NUMBER = r"(?:0|[1-9][0-9]{0,5})"
_LIST = re.compile(f"{_NUMBER}(?:-{_NUMBER})?(?:,{_NUMBER}(?:-{_NUMBER})?)*\\Z")
_NONE = "N/A"
_TAB = 8
_MAX_CPUS = 8192  # Linux's largest NR_CPUS


@dataclass(frozen=True, slots=True)
class Place:
    """What is next to a device: CPUs, the NUMA node (None also where there are several); and a GPU's own node."""

    cpus: frozenset[int] | None = None
    numa: int | None = None
    gpu_numa: int | None = None


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of a row: its words, and its cells where tabs keep them apart (else None)."""

    row: Row
    start: int
    words: tuple[Word, ...]
    cells: tuple[str, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


_Cells = Mapping[str, str]
"""Column -> its text; a column without one is empty or unknown."""


def read_places(matrix: Matrix, grid: Grid, tool: str) -> tuple[Mapping[str, Place], tuple[str, ...]]:
    """The place of each label, and what could not be told, a sentence each. Raises ParseError at a damaged row."""
    columns = matrix.columns
    names = [column.text for column in columns]
    tails = [_tail(row, len(grid.labels), names, tool) for row in matrix.rows]
    of_gpus = [tail for tail in tails if gpu_index(tail.row.label) is not None]
    counts = [len(tail.cells) for tail in of_gpus if tail.cells is not None]
    places: dict[str, Place] = {}
    lists: dict[str, str] = {}
    unread: list[str] = []
    for tail in tails:
        is_gpu = gpu_index(tail.row.label) is not None
        if is_gpu and tail.cells is not None and len(tail.cells) != counts[0]:
            raise tail.row.line.error(tool, f"the row has other cells than that of {of_gpus[0].row.label}")
        cells = _by_tabs(tail, names, tool)
        if cells is None and len(tail.words) == len(columns):
            cells = dict(zip(names, tail.texts, strict=True))
        if cells is None and tail.words:
            cells = _by_positions(tail, columns, tails)
        if is_gpu and columns and not tail.row.line.is_ended:
            _check_end(tail, cells, names, of_gpus, tool)
        if cells is None and tail.words:
            unread.append(f"{tool}: line {tail.row.line.number}: the affinity of {tail.row.label} is unclear")
        places[tail.row.label] = _place(tail, cells or {}, tool, unread)
        lists[tail.row.label] = (cells or {}).get(CPU_AFFINITY, _NONE)
    unread += _disagreements(matrix, places, lists, tool)
    return places, tuple(unread)


def _disagreements(matrix: Matrix, places: Mapping[str, Place], lists: Mapping[str, str], tool: str) -> Iterator[str]:
    """A sentence for each row whose affinity can hardly be of the same machine as another's: a lost digit shows here.

    The driver gives the CPUs of the NUMA node that a device is on, so one node has one list, and lists of two nodes
    are apart. It is no proof (virtual machines, edited text), so the row is not refused.
    """
    masks = {text: _mask(text) for text in set(lists.values()) if text != _NONE}
    of_nodes: dict[int, tuple[str, str]] = {}
    for row in matrix.rows:
        text, node = lists[row.label], places[row.label].numa
        if text not in masks or node is None or places[row.label].cpus is None:
            continue
        for other_node, (label, other) in of_nodes.items():
            common = masks[other] & masks[text]
            if (node == other_node and masks[other] != masks[text]) or (node != other_node and common):
                yield (
                    f"{tool}: line {row.line.number}: the affinities of {label} (CPUs {other:.60}, node {other_node}) "
                    f"and {row.label} (CPUs {text:.60}, node {node}) do not fit together: one of the two may be damaged"
                )
                break
        of_nodes.setdefault(node, (row.label, text))


def _mask(text: str) -> int:
    """A bit for each number of a list."""
    mask = 0
    for item in text.split(","):
        first, _, last = item.partition("-")
        mask |= (1 << int(last or first) + 1) - (1 << int(first))
    return mask


def _tail(row: Row, n_labels: int, names: Sequence[str], tool: str) -> _Tail:
    words = row.words[n_labels + 1 :]
    for word in words:
        if word.text != _NONE and not _LIST.match(word.text):
            raise row.line.error(tool, f"{word.text[:40]} is neither CPUs nor NUMA nodes nor N/A")
    if len(words) > len(names):
        raise row.line.error(tool, f"{len(words)} cells after the classes, but {len(names)} columns for them")
    start = row.words[n_labels].end
    before, *rest = row.text[start:].split("\t")
    cells = tuple(cell.strip() for cell in rest)
    extra = len(cells) - len(names) - (GPU_NUMA in names)
    if names[1:2] == [NUMA_AFFINITY] and extra == 1 and cells[1:3] == ("", _NONE):
        cells = (cells[0], *cells[2:])
    is_tabbed = bool(cells) and not before.strip() and not any(len(cell.split()) > 1 for cell in cells)
    return _Tail(row, start, words, cells if is_tabbed else None)


def _by_tabs(tail: _Tail, names: Sequence[str], tool: str) -> _Cells | None:
    """The cells of a row that has its tabs; None if it has not."""
    if tail.cells is None or not names:
        return None
    cells = list(tail.cells)
    is_usual = names[-1] == GPU_NUMA and len(cells) == len(names) + 1 and not cells[-2]
    if is_usual:
        del cells[-2]
    while len(cells) > len(names) and not cells[-1]:
        cells.pop()
    if not any(cells):
        return {}
    if len(cells) != len(names):
        raise tail.row.line.error(tool, f"{len(cells)} cells after the classes for {len(names)} columns")
    said = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    if GPU_NUMA in names and not is_usual and NUMA_AFFINITY not in said:
        said.pop(CPU_AFFINITY, None)  # one tab too few: it may as well be the NUMA node, its CPU affinity being lost
    return said


def _by_positions(tail: _Tail, columns: Sequence[Word], tails: Sequence[_Tail]) -> _Cells | None:
    """The only way to give a row's words to columns in a layout that every full row of the matrix has."""
    names = [column.text for column in columns]
    full = [other for other in tails if other.cells is None and len(other.words) == len(columns)]
    possible: list[dict[str, str]] = []
    for fits in (_fits_tabs, _fits_header):
        if not full or not all(fits(other, dict(zip(names, other.texts, strict=True)), columns) for other in full):
            continue
        for chosen in combinations(names, len(tail.words)):
            cells = dict(zip(chosen, tail.texts, strict=True))
            if fits(tail, cells, columns) and _is_aligned(tail, chosen, full, names) and cells not in possible:
                possible.append(cells)
    if len(possible) != 1:
        return None
    if CPU_AFFINITY in possible[0] and NUMA_AFFINITY not in possible[0]:
        return None  # where one cell was lost, the NUMA node stands in the place of the CPUs
    return possible[0]


def _is_aligned(tail: _Tail, chosen: Sequence[str], full: Sequence[_Tail], names: Sequence[str]) -> bool:
    """Whether each word begins or ends where one of a full row does in the same column: where two cells were glued
    together, what follows them is moved into another column."""
    for name, word in zip(chosen, tail.words, strict=True):
        others = [other.words[names.index(name)] for other in full]
        if not any(word.start == other.start or word.end == other.end for other in others):
            return False
    return True


def _fits_tabs(tail: _Tail, cells: _Cells, columns: Sequence[Word]) -> bool:
    """Whether the words stand where a terminal puts cells that tabs (8 characters) separate."""
    base = tail.row.words[0].start
    at = _next_stop(tail.start - base)
    starts: list[int] = []
    for column in columns:
        if column.text == GPU_NUMA and column is not columns[0]:
            at = _next_stop(at)
        if column.text in cells:
            starts.append(at)
        at = _next_stop(at + len(cells.get(column.text, "")))
    return starts == [word.start - base for word in tail.words]


def _next_stop(position: int) -> int:
    return (position // _TAB + 1) * _TAB


def _fits_header(tail: _Tail, cells: _Cells, columns: Sequence[Word]) -> bool:
    """Whether each word begins below its column's name, as in a table that somebody aligned."""
    spans = [(column.start - 2, column.end) for column in columns if column.text in cells]
    return all(low <= word.start < high for word, (low, high) in zip(tail.words, spans, strict=True))


def _check_end(tail: _Tail, cells: _Cells | None, names: Sequence[str], of_gpus: Sequence[_Tail], tool: str) -> None:
    """Refuse a last row without a line break unless it is surely whole: a cut number is still a number."""
    is_repeated = any(
        other is not tail and other.texts == tail.texts and (other.cells == tail.cells) and tail.words
        for other in of_gpus
    )
    is_full = cells is not None and cells.get(names[-1]) in (_NONE, "0")  # after either no digit can follow
    if not is_repeated and not is_full:
        raise tail.row.line.error(
            tool, "the file ends in this row without a line break: it may be cut off (end it with one if it is whole)"
        )


def _place(tail: _Tail, cells: _Cells, tool: str, unread: list[str]) -> Place:
    numbers = {name: _numbers(tail, text, tool) for name, text in cells.items() if text != _NONE}
    cpus, nodes = numbers.get(CPU_AFFINITY), numbers.get(NUMA_AFFINITY)
    if cpus and nodes and len(nodes) > 1 and len(nodes) >= len(cpus):
        unread.append(f"{tool}: line {tail.row.line.number}: more NUMA nodes than CPUs: neither was taken")
        cpus = nodes = None
    own = numbers.get(GPU_NUMA)
    if own is not None and len(own) != 1:
        raise tail.row.line.error(tool, f"{cells[GPU_NUMA]} is not one NUMA node")
    return Place(
        frozenset(cpus) if cpus else None,
        nodes[0] if nodes and len(nodes) == 1 else None,
        own[0] if own else None,
    )


def _numbers(tail: _Tail, text: str, tool: str) -> tuple[int, ...]:
    """The numbers of a list whose items rise, as the tool writes them."""
    ends = [int(end) for item in text.split(",") for end in item.split("-")]
    if max(ends) >= _MAX_CPUS:
        raise tail.row.line.error(tool, f"{text[:40]}: more CPUs than Linux supports")
    if ends != sorted(ends) or len(set(text.split(","))) != text.count(",") + 1:
        raise tail.row.line.error(tool, f"{text[:40]}: the numbers do not rise")
    return read_cpu_list(text)
