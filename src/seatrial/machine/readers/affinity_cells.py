"""The cells after the classes in a row of `nvidia-smi topo -m`: CPU affinity, NUMA affinity, the GPU's own NUMA node.

The tool separates cells by a tab, with one more before the GPU's node, and one more before a NUMA affinity of N/A. If
the tabs were lost, empty cells cannot be seen: a row with one word per column is read in order; any other row is read
by position, and only if the full rows of the same matrix prove the layout. Whatever remains ambiguous is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.machine.readers.topology_matrix import (
    CPU_AFFINITY,
    GPU_NUMA,
    NUMA_AFFINITY,
    Grid,
    Matrix,
    MatrixRow,
    Word,
    gpu_index,
)
from seatrial.model.frozen import Frozen

_NUMBER = r"(?:0|[1-9][0-9]{0,5})"
_LIST = re.compile(f"{_NUMBER}(?:-{_NUMBER})?(?:,{_NUMBER}(?:-{_NUMBER})?)*\\Z")
_NONE = "N/A"
_TAB = 8
_MAX_CPUS = 8192  # Linux's largest NR_CPUS


class DevicePlace(Frozen):
    """The CPUs and the NUMA node near a device (None for several nodes, which `numa_nodes` has), and the NUMA node of a
    GPU's own memory."""

    cpus: frozenset[int] | None = None
    numa: int | None = None
    numa_nodes: tuple[int, ...] | None = None
    gpu_numa: int | None = None


class _Tail(Frozen):
    """The end of a row: its words, and its cells if tabs separate them (else None)."""

    row: MatrixRow
    start: int
    words: tuple[Word, ...]
    cells: tuple[str, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


_Cells = Mapping[str, str]  # Column -> its text; missing if empty or unknown.


def read_places(matrix: Matrix, grid: Grid, tool: str) -> tuple[Mapping[str, DevicePlace], tuple[str, ...]]:
    """The position of each label, and a sentence about each ambiguous row. Raises ParseError for a damaged row."""
    columns = matrix.columns
    names = [column.text for column in columns]
    tails = [_tail(row, len(grid.labels), names, tool) for row in matrix.rows]
    of_gpus = [tail for tail in tails if gpu_index(tail.row.label) is not None]
    counts = [len(tail.cells) for tail in of_gpus if tail.cells is not None]
    places: dict[str, DevicePlace] = {}
    lists: dict[str, str] = {}
    unread: list[str] = []
    for tail in tails:
        is_gpu = gpu_index(tail.row.label) is not None
        if is_gpu and tail.cells is not None and len(tail.cells) != counts[0]:
            why = f"the row has a different number of cells than that of {of_gpus[0].row.label}"
            raise tail.row.line.error(tool, why)
        cells = _by_tabs(tail, names, tool)
        if cells is None and len(tail.words) == len(columns):
            cells = dict(zip(names, tail.texts, strict=True))
        if cells is None and tail.words:
            cells = _by_positions(tail, columns, tails)
        if is_gpu and columns and not tail.row.line.is_ended:
            _check_end(tail, cells, names, of_gpus, tool)
        if cells is None and tail.words:
            unread.append(f"{tool}: line {tail.row.line.number}: the affinity of {tail.row.label} is ambiguous")
        places[tail.row.label] = _place(tail, cells or {}, tool, unread)
        lists[tail.row.label] = (cells or {}).get(CPU_AFFINITY, _NONE)
    unread += _disagreements(matrix, places, lists, tool)
    return places, tuple(unread)


def _disagreements(
    matrix: Matrix, places: Mapping[str, DevicePlace], lists: Mapping[str, str], tool: str
) -> Iterator[str]:
    """A sentence for each row whose affinity contradicts another row's; a lost digit is detected here.

    The driver reports the CPUs of the device's NUMA node, so a node has one list, and the lists of two nodes are
    disjoint. Virtual machines and edited text may differ, so the row is not refused.
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
                    f"and {row.label} (CPUs {text:.60}, node {node}) contradict each other: one may be damaged"
                )
                break
        of_nodes.setdefault(node, (row.label, text))


def _mask(text: str) -> int:
    """A bit mask of a list."""
    mask = 0
    for item in text.split(","):
        first, _, last = item.partition("-")
        mask |= (1 << int(last or first) + 1) - (1 << int(first))
    return mask


def _tail(row: MatrixRow, n_labels: int, names: Sequence[str], tool: str) -> _Tail:
    words = row.words[n_labels + 1 :]
    for word in words:
        if word.text != _NONE and not _LIST.match(word.text):
            raise row.line.error(tool, f"{word.text[:40]} is neither CPUs nor NUMA nodes nor N/A")
    if len(words) > len(names):
        raise row.line.error(tool, f"{len(words)} cells after the classes for {len(names)} columns")
    start = row.words[n_labels].end
    before, *rest = row.text[start:].split("\t")
    cells = tuple(cell.strip() for cell in rest)
    extra = len(cells) - len(names) - (GPU_NUMA in names)
    if names[1:2] == [NUMA_AFFINITY] and extra == 1 and cells[1:3] == ("", _NONE):
        cells = (cells[0], *cells[2:])
    is_tabbed = bool(cells) and not before.strip() and not any(len(cell.split()) > 1 for cell in cells)
    return _Tail(row, start, words, cells if is_tabbed else None)


def _by_tabs(tail: _Tail, names: Sequence[str], tool: str) -> _Cells | None:
    """The cells of a row with tabs; None without them."""
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
    filled = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    if GPU_NUMA in names and not is_usual and NUMA_AFFINITY not in filled:
        filled.pop(CPU_AFFINITY, None)  # a tab is missing: this may be the NUMA node of a lost CPU affinity
    return filled


def _by_positions(tail: _Tail, columns: Sequence[Word], tails: Sequence[_Tail]) -> _Cells | None:
    """The only assignment of a row's words to columns that fits the layout of all full rows; None if not unique."""
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
        return None  # if one cell was lost, the NUMA node counts instead of the CPUs
    return possible[0]


def _is_aligned(tail: _Tail, chosen: Sequence[str], full: Sequence[_Tail], names: Sequence[str]) -> bool:
    """Whether each word begins or ends where a word of a full row does in the same column: if two cells were joined,
    the following words shift into other columns."""
    for name, word in zip(chosen, tail.words, strict=True):
        others = [other.words[names.index(name)] for other in full]
        if not any(word.start == other.start or word.end == other.end for other in others):
            return False
    return True


def _fits_tabs(tail: _Tail, cells: _Cells, columns: Sequence[Word]) -> bool:
    """Whether the words are at the positions of cells separated by tabs (8 characters)."""
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
    """Whether each word begins below its column's name, as in a table aligned by hand."""
    spans = [(column.start - 2, column.end) for column in columns if column.text in cells]
    return all(low <= word.start < high for word, (low, high) in zip(tail.words, spans, strict=True))


def _check_end(tail: _Tail, cells: _Cells | None, names: Sequence[str], of_gpus: Sequence[_Tail], tool: str) -> None:
    """Refuse a last row without a line break unless it is certainly complete: a cut number is still a number."""
    alike = [other for other in of_gpus if (other.texts, other.cells) == (tail.texts, tail.cells)]
    # No digit can follow either; of a list of CPUs, "0" may be the begin of "0-31".
    full = (_NONE,) if names[-1] == CPU_AFFINITY else (_NONE, "0")
    is_full = cells is not None and cells.get(names[-1]) in full
    if not (len(alike) > 1 and tail.words) and not is_full:
        raise tail.row.line.error(
            tool,
            "this row ends with the file, or at the width at which others were wrapped: it may be cut off (add a line "
            "break, or the rest of it)",
        )


def _place(tail: _Tail, cells: _Cells, tool: str, unread: list[str]) -> DevicePlace:
    numbers = {name: _numbers(tail, text, tool) for name, text in cells.items() if text != _NONE}
    cpus, nodes = numbers.get(CPU_AFFINITY), numbers.get(NUMA_AFFINITY)
    if cpus and nodes and len(nodes) > 1 and len(nodes) >= len(cpus):
        unread.append(f"{tool}: line {tail.row.line.number}: more NUMA nodes than CPUs: both were ignored")
        cpus = nodes = None
    own = numbers.get(GPU_NUMA)
    if own is not None and len(own) != 1:
        raise tail.row.line.error(tool, f"{cells[GPU_NUMA]} is not one NUMA node")
    return DevicePlace(
        frozenset(cpus) if cpus else None,
        nodes[0] if nodes and len(nodes) == 1 else None,
        nodes if nodes and len(nodes) > 1 else None,
        own[0] if own else None,
    )


def _numbers(tail: _Tail, text: str, tool: str) -> tuple[int, ...]:
    """The numbers of an ascending list, as the tool writes it."""
    ends = [int(end) for item in text.split(",") for end in item.split("-")]
    if max(ends) >= _MAX_CPUS:
        raise tail.row.line.error(tool, f"{text[:40]}: more CPUs than Linux supports")
    if ends != sorted(ends) or len(set(text.split(","))) != text.count(",") + 1:
        raise tail.row.line.error(tool, f"{text[:40]}: the numbers are not ascending")
    return read_cpu_list(text)
