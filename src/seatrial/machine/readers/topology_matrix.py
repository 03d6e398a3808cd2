"""Matrices of devices in a text: a header of labels, then a row for each label (nvidia-smi topo, rocm-smi --showtopo).

`find_matrices` finds candidates without checking them. `read_grid` checks a matrix and refuses a damaged one with its
first wrong line. Rows are identified by label, so their order does not matter. Labels are GPU0, GPU1,
... and names of adapters (NIC0, mlx5_0, hfi1_0, bnxt_re0, ibp12s0: RDMA devices have any name).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from typing import NoReturn

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, is_fence, without_prefix
from seatrial.model.frozen import Frozen

MAX_LABELS = 256
"""More than any machine has (16 GPUs, 20 adapters): pairs grow with the square."""

MAX_LABEL_LENGTH = 256
_ADAPTER = re.compile(r"NIC\d+|(?:mlx\d|hfi1|bnxt|irdma|efa|qedr|cxi|roce)\w*")
_MAX_LINE = 1 << 17  # longer than any row; longer lines are skipped

CPU_AFFINITY, NUMA_AFFINITY, GPU_NUMA = "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"

COLUMN = re.compile(f"{CPU_AFFINITY}|{NUMA_AFFINITY}|{GPU_NUMA}")
_WORD = re.compile(r"\S+")
LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*\Z")
_GPU = re.compile(r"GPU(0|[1-9][0-9]{0,3})\Z")
_BEGINS_WITH_GPU = re.compile(r"GPU[0-9]")
_COMMAND = re.compile(r"nvidia-smi\s+topo\b")
PLACE = re.compile(r"N/A\Z|[0-9][0-9,\-]*\Z")


class CellKind(StrEnum):
    """The meaning of the cells of a matrix."""

    TOPOLOGY = "topology"  # nvidia-smi topo -m
    P2P = "p2p"  # nvidia-smi topo -p2p
    LINK_TYPE = "link type"  # rocm-smi --showtopotype


VOCABULARY = {
    CellKind.TOPOLOGY: re.compile(r"(?:NV(?P<links>[1-9]|[12][0-9]|3[0-6])|PIX|PXB|PHB|NODE|SYS|SOC|C2C)\Z"),
    CellKind.P2P: re.compile(r"(?:OK|CNS|GNS|TNS|NS|DR|U)\Z"),
    CellKind.LINK_TYPE: re.compile(r"(?:XGMI|PCIE|XXXX|N/A)\Z"),
}
"""The cells off the diagonal. A GPU has up to 18 NVLinks today; more than twice that is damage."""

SELF = {CellKind.TOPOLOGY: "X", CellKind.P2P: "X", CellKind.LINK_TYPE: "0"}


class Word(Frozen):
    """A word of a line with its start and end (characters from 0, without the prefix of the line)."""

    text: str
    start: int
    end: int


class MatrixRow(Frozen):
    """A line of a matrix, without its prefix, and its words."""

    line: Line
    text: str
    words: tuple[Word, ...]

    @property
    def label(self) -> str:
        """The first word."""
        return self.words[0].text

    @property
    def values(self) -> tuple[str, ...]:
        """The words after the label."""
        return tuple(word.text for word in self.words[1:])


class Matrix(Frozen):
    """A header and the unchecked rows below it. `columns` are the named columns after the labels.

    `first` and `end` count the lines of the file from 0; `after` is the line at `end`. `command` is the last
    `nvidia-smi topo` above it, "" for none; `above` are the lines between the previous matrix and this one.
    """

    header: Line
    words: tuple[str, ...]
    columns: tuple[Word, ...]
    rows: tuple[MatrixRow, ...]
    first: int
    end: int
    after: Line | None
    command: str = ""
    above: tuple[Line, ...] = ()

    @property
    def may_be_prose(self) -> bool:
        """Whether it is just a line that names a GPU, with no rows below."""
        return not self.rows and len(self.words) + len(self.columns) < 3

    def kinds(self) -> frozenset[CellKind]:
        """The possible kinds: those that most of its cells belong to, as some may be damaged."""
        if self.columns:
            return frozenset({CellKind.TOPOLOGY})
        values = [value for row in self.rows for value in row.values]
        counts = {kind: sum(1 for value in values if cell.match(value)) for kind, cell in VOCABULARY.items()}
        most = max(counts.values())
        if most:
            return frozenset(kind for kind, count in counts.items() if count == most)
        if "X" not in values:
            return frozenset()
        return frozenset(
            {CellKind.P2P} if "-p2p" in self.command or "--p2p" in self.command else {CellKind.P2P, CellKind.TOPOLOGY}
        )


class Grid(Frozen):
    """A complete matrix: labels in header order, the cell of each ordered pair, the row of each label. If the rows are
    only those of GPUs, the cells between two adapters are missing."""

    labels: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    rows: Mapping[str, MatrixRow]

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Each unordered pair once, in header order, with its cell."""
        for a, b in combinations(self.labels, 2):
            if (cell := self.cell(a, b)) is not None:
                yield a, b, cell

    def cell(self, a: str, b: str) -> str | None:
        """The cell of a pair, from the row of either; None if there is neither."""
        return self.cells.get((a, b)) or self.cells.get((b, a))

    @property
    def without_rows(self) -> tuple[str, ...]:
        """The labels that have no row."""
        return tuple(label for label in self.labels if label not in self.rows)


def gpu_index(label: str) -> int | None:
    """3 for GPU3; None for the label of an adapter."""
    match = _GPU.match(label)
    return int(match[1]) if match else None


def find_matrices(lines: Sequence[Line]) -> tuple[Matrix, ...]:
    """Every matrix, complete or damaged. One without rows is a header at the end of the file, or a line of prose."""
    found: list[Matrix] = []
    at = end = 0
    while at < len(lines):
        header = _header(lines[at])
        if header is None:
            at += 1
            continue
        words, columns = header
        rows, after = _rows(lines, at, frozenset(words))
        if rows or columns or len(words) > 1:
            above = tuple(lines[end:at])
            command = next((line.text for line in reversed(above) if _COMMAND.search(line.text[:_MAX_LINE])), "")
            below = lines[after] if after < len(lines) else None
            found.append(Matrix(lines[at], words, columns, rows, at, after, below, command, above))
            end = after
        at = after
    if not found and (alone := _rows_alone(lines)) is not None:
        found.append(alone)
    return tuple(found)


def _rows_alone(lines: Sequence[Line]) -> Matrix | None:
    """The matrix whose header was not pasted: the rows of all labels, each with X against itself, give the header."""
    rows: list[MatrixRow] = []
    first = end = 0
    for number, line in enumerate(lines):
        row = _row(line)
        if row is not None and LABEL.match(row.label) and "X" in row.values and _has_own_cells(row):
            first, end = (number if not rows else first), number + 1
            rows.append(row)
        elif rows and row is not None:
            break
    if not any(_rows_agree(rows, kind) for kind in (CellKind.TOPOLOGY, CellKind.P2P)):
        return None
    if not rows[-1].line.is_ended or all(gpu_index(row.label) is None for row in rows):
        return None
    if first == 0 and not _is_whole(rows[0].label):
        return None
    words = tuple(row.label for row in rows)
    above = tuple(lines[:first])
    command = next((line.text for line in reversed(above) if _COMMAND.search(line.text[:_MAX_LINE])), "")
    below = lines[end] if end < len(lines) else None
    count = len(rows) + 1  # what follows has no name
    own = (MatrixRow(row.line, row.text[: row.words[count - 1].end], row.words[:count]) for row in rows)
    return Matrix(rows[0].line, words, (), tuple(own), first, end, below, command, above)


def _is_whole(label: str) -> bool:
    """Whether a label at the very beginning of a text is surely not the end of one: "U0" may be cut from "GPU0"."""
    return gpu_index(label) is not None or _ADAPTER.fullmatch(label) is not None


def _has_own_cells(row: MatrixRow) -> bool:
    """Whether all words after the label are cells, or what follows them: CPUs and nodes."""
    return all(is_any_cell(value) or PLACE.match(value) for value in row.values)


def own_matrices(lines: Sequence[Line], found: Sequence[Matrix], kind: CellKind, tool: str) -> tuple[Matrix, ...]:
    """The matrices of one kind. Raises ParseError for a row of that kind outside any matrix, and for a header without
    rows if there is no other matrix."""
    inside = {number for matrix in found for number in range(matrix.first, matrix.end)}
    for number, line in enumerate(lines):
        row = None if number in inside else _row(line)
        if row is not None and _is_stray(row, kind):
            raise line.error(tool, f"a row of a {kind} matrix without its header")
    own = tuple(matrix for matrix in found if kind in matrix.kinds() and not matrix.may_be_prose)
    cut = next((matrix for matrix in found if not matrix.rows), None)
    if not own and cut is not None:
        _refuse_missing_row(cut, cut.words, tool)
    return own


def read_grid(matrix: Matrix, kind: CellKind, tool: str, is_cell: Callable[[str], object] | None = None) -> Grid:
    """The matrix if it is complete, square and symmetric. `is_cell` tests other cells, which need not be symmetric.

    Raises ParseError with the first wrong line: of two cells that contradict each other, the lower row.
    """
    labels = _labels(matrix, kind, tool)
    cells: dict[tuple[str, str], str] = {}
    rows: dict[str, MatrixRow] = {}
    gap = _row_after_gap(matrix, labels)
    known = is_cell or VOCABULARY[kind].match
    for row in matrix.rows:
        if row.label not in labels:
            raise row.line.error(tool, f"no column {_short(row.label)} in the header")
        if row.label in rows:
            raise row.line.error(tool, f"a second row of {_short(row.label)}")
        if gap is not None and gap[0] == row.label:
            raise row.line.error(tool, f"expected the row of {_short(gap[1])} here")
        for label, value in zip(labels, row.values, strict=False):
            if label == row.label and value != SELF[kind]:
                raise row.line.error(tool, f"{_short(label)} against itself is {_short(value)}, not {SELF[kind]}")
            if label != row.label and not known(value):
                why = f"{_short(value)} in the column of {_short(label)} is not a known class or status"
                raise row.line.error(tool, why)
            cells[row.label, label] = value
        # After the classes of a topology come the affinities.
        if len(row.values) < len(labels) or (kind is not CellKind.TOPOLOGY and len(row.values) > len(labels)):
            raise row.line.error(tool, f"the row has {len(row.values)} cells for {len(labels)} columns")
        for label in labels if is_cell is None else ():
            there, back = cells[row.label, label], cells.get((label, row.label))
            if back is not None and there != back:
                one, other = _short(row.label), _short(label)
                raise row.line.error(tool, f"{one} to {other} is {there}, but the row of {other} states {back}")
        rows[row.label] = row
    missing = [label for label in labels if label not in rows]
    if missing and not (kind is CellKind.TOPOLOGY and _has_rows_of_gpus(labels, matrix)):
        _refuse_missing_row(matrix, missing, tool)
    return Grid(labels, cells, rows)


def _has_rows_of_gpus(labels: Sequence[str], matrix: Matrix) -> bool:
    """Whether the rows are exactly those of all GPUs, as people paste them, and none is cut off."""
    gpus = [label for label in labels if gpu_index(label) is not None]
    return sorted(gpus) == sorted(row.label for row in matrix.rows) and matrix.rows[-1].line.is_ended


def _header(line: Line) -> tuple[tuple[str, ...], tuple[Word, ...]] | None:
    """The labels and named columns of a line that looks like a header: only labels, including a GPU."""
    if len(line.text) > _MAX_LINE or _BEGINS_WITH_GPU.search(line.text) is None:
        return None
    text = without_prefix(line.text)
    columns = tuple(Word(match[0], match.start(), match.end()) for match in COLUMN.finditer(text))
    words = tuple(_WORD.findall(text[: columns[0].start] if columns else text))
    if columns and COLUMN.sub("", text[columns[0].start :]).strip():
        return None
    if not all(LABEL.match(word) for word in words) or not any(_BEGINS_WITH_GPU.match(word) for word in words):
        return None
    if any(is_any_cell(word) for word in words):
        return None
    return words, columns


@lru_cache(maxsize=4096)
def is_any_cell(word: str) -> bool:
    """Whether a word is a cell of any kind of matrix."""
    return word == "X" or any(cell.match(word) for cell in VOCABULARY.values())


def _row(line: Line) -> MatrixRow | None:
    if len(line.text) > _MAX_LINE or line.is_blank or is_fence(line.text):
        return None
    text = without_prefix(line.text)
    words = tuple(Word(match[0], match.start(), match.end()) for match in _WORD.finditer(text))
    return MatrixRow(line, text, words) if words else None


def _rows(lines: Sequence[Line], header: int, labels: frozenset[str]) -> tuple[tuple[MatrixRow, ...], int]:
    """The rows below a header, and the index of the line after the last. Blank lines between them are skipped."""
    rows: list[MatrixRow] = []
    end = header + 1
    for number in range(header + 1, len(lines)):
        line = lines[number]
        row = _row(line)
        if row is None and not is_fence(line.text) and len(line.text) <= _MAX_LINE:  # blank
            if len(rows) >= len(labels):
                break
            continue
        is_whole = len(rows) >= len(labels)
        if row is None or not _looks_like_row(row, labels, is_whole) or _is_next_header(line):
            break
        rows.append(row)
        end = number + 1
    return tuple(rows), end


def _looks_like_row(row: MatrixRow, labels: frozenset[str], is_whole: bool) -> bool:
    """Whether a line may belong to the matrix above; once that is complete, only a line with cells may."""
    if row.label in labels and not is_whole:
        return True
    if len(row.words) < 2:
        return False
    return row.values[0] == "X" or _has_cells(row) or (_GPU.match(row.label) is not None and not is_whole)


def _has_cells(row: MatrixRow) -> bool:
    """Whether at least half of the words after the label, not counting CPU and node numbers, are cells."""
    values = [value for value in row.values if not PLACE.match(value)]
    cells = sum(1 for value in values if is_any_cell(value))
    return cells > 0 and 2 * cells >= len(values)


def _is_next_header(line: Line) -> bool:
    """Whether a line below a matrix is the header of another; a row with joined cells ("GPU0 XOK") looks like one."""
    header = _header(line)
    return header is not None and (sum(1 for word in header[0] if _GPU.match(word)) > 1 or bool(header[1]))


def _is_stray(row: MatrixRow, kind: CellKind) -> bool:
    """Whether a line can only be a row of such a matrix."""
    values, cell, own = row.values, VOCABULARY[kind], SELF[kind]
    if not LABEL.match(row.label) or values.count(own) < 1:
        return False
    if not all(cell.match(value) or value == own or PLACE.match(value) for value in values):
        return False
    return any(cell.match(value) and value != "N/A" for value in values) or (
        own == "X" and _GPU.match(row.label) is not None
    )


def _labels(matrix: Matrix, kind: CellKind, tool: str) -> tuple[str, ...]:
    """The labels of the header in order; joined labels are separated with the help of the row labels."""
    names = [column.text for column in matrix.columns]
    if len(set(names)) < len(names):
        raise matrix.header.error(tool, "a column occurs twice in the header")
    words = matrix.words
    rows = [row.label for row in matrix.rows]
    if set(words) != set(rows) and len(set(rows)) == len(rows):
        words = _separated(words, rows) or words
    if len(set(words)) < len(words):
        raise matrix.header.error(tool, "a label occurs twice in the header")
    if len(words) > MAX_LABELS or max(map(len, words)) > MAX_LABEL_LENGTH:
        why = f"more than {MAX_LABELS} labels, or a label of over {MAX_LABEL_LENGTH} characters"
        raise matrix.header.error(tool, why)
    if len(words) != len(rows) and _rows_agree(matrix.rows, kind):
        why = f"the header has {len(words)} labels, but there are {len(rows)} complete rows below"
        raise matrix.header.error(tool, why)
    if not any(gpu_index(word) is not None for word in words):
        raise matrix.header.error(tool, "no GPU label in the header")
    return words


def _rows_agree(rows: Sequence[MatrixRow], kind: CellKind) -> bool:
    """Whether the rows alone form a square matrix: then the header is wrong."""
    cell, own = VOCABULARY[kind], SELF[kind]
    if not rows or len({row.label for row in rows}) < len(rows):
        return False
    for number, row in enumerate(rows):
        cells = row.values[: len(rows)]
        rest = row.values[len(rows) :]
        is_square = len(cells) == len(rows) and cells[number] == own and cells.count(own) == 1
        if not is_square or not all(value == own or cell.match(value) for value in cells):
            return False
        if any(is_any_cell(value) and value != "N/A" for value in rest):
            return False
    return True


_MAX_STEPS = 20_000


def _separated(words: Sequence[str], labels: Sequence[str]) -> tuple[str, ...] | None:
    """The only order of `labels` whose concatenation gives `words`; None unless there is exactly one."""
    starts = {0}
    for word in words:
        starts.add(max(starts) + len(word))
    text = "".join(words)
    if len(text) != sum(map(len, labels)):
        return None
    found: list[tuple[str, ...]] = []
    open_ends: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    for _ in range(_MAX_STEPS):
        if not open_ends:
            break
        at, order = open_ends.pop()
        if at == len(text):
            found.append(order)
            continue
        word_end = min(start for start in starts if start > at)
        for label in labels:
            if at + len(label) <= word_end and text.startswith(label, at) and label not in order:
                open_ends.append((at + len(label), (*order, label)))
    return found[0] if len(found) == 1 and not open_ends else None


def _row_after_gap(matrix: Matrix, labels: Sequence[str]) -> tuple[str, str] | None:
    """Labels of the first row after a gap, and of the row expected there. Rows may have any order, but if the present
    ones have that of the header, a gap is visible."""
    present = [row.label for row in matrix.rows]
    known = set(present)
    if present != [label for label in labels if label in known]:
        return None
    return next(((row, label) for row, label in zip(present, labels, strict=False) if row != label), None)


def _refuse_missing_row(matrix: Matrix, missing: Sequence[str], tool: str) -> NoReturn:
    """Raise ParseError at the line of the expected row, or at the last row at the end of the file."""
    last = matrix.rows[-1].line if matrix.rows else matrix.header
    line = matrix.after or last
    raise ParseError(tool, line.number, line.raw, f"the matrix is cut off: no row of {_short(missing[0])}")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."
