"""The lines of a text with matrices of devices, restored to the tool's layout, also where a terminal wrapped them.

Documentation shows matrices as Markdown tables, often with reordered columns: a table with one column of row labels,
and devices or affinities in all others, is converted to the tool's layout cell by cell. Wrapped lines are joined by
`matrix_wraps`. Everything else stays unchanged.

Matrices whose lines a terminal or mailer wrapped at its width -> the lines as printed.

A matrix of 8 GPUs and 10 adapters is 190 characters wide. Wrapping keeps every character (fold), or replaces tabs by
spaces and drops those at the end of a line (text copied from a screen). Lines are joined only if the result is certain:
a row for every label, a known cell for every pair, and the same in both directions. Lines that are not joined are read,
and refused, unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from msgspec.structs import replace

from seatrial.machine.readers.dump import Line, is_fence, read_lines, without_prefix
from seatrial.machine.readers.topology_matrix import (
    COLUMN,
    CPU_AFFINITY,
    GPU_NUMA,
    LABEL,
    MAX_LABELS,
    NUMA_AFFINITY,
    PLACE,
    is_any_cell,
)
from seatrial.model.frozen import Frozen

_NUMBER = re.compile(r"[0-9]{1,4}\Z")
_MAX_PIECES = 40
_MAX_TRIES = 200  # matrices in one text
_MAX_BLOCK = 8 * MAX_LABELS
_MAX_WIDTH = 1000


class _Seam(Frozen):
    """Where one piece ended and the next began without a space: number of the last word before; whether the piece had
    the full width; and whether it certainly ended inside a number ("0-31," must continue)."""

    word: int
    is_full: bool
    is_inside: bool


class _Joined(Frozen):
    """A rejoined line, its seams, and whether its last piece has the full width: another may be missing."""

    text: str
    seams: tuple[_Seam, ...]
    ends_full: bool

    @property
    def words(self) -> list[str]:
        return self.text.split()


def unwrapped(lines: Sequence[Line]) -> tuple[Line, ...]:
    """All lines, those of wrapped matrices joined. A joined line has the number of its first piece."""
    result: list[Line] = []
    at = tries = 0
    while at < len(lines):
        first = _first_row(lines, at) if tries < _MAX_TRIES else None
        joined = _matrix_at(lines, at, first) if first is not None else None
        tries += first is not None
        if joined is None:
            result.append(lines[at])
            at += 1
        else:
            result += joined[0]
            at = joined[1]
    return tuple(result)


def _first_row(lines: Sequence[Line], at: int) -> int | None:
    """Index of the first row below a possible header line."""
    words = without_prefix(lines[at].text[:_MAX_WIDTH]).split()
    if len(words) < 2 or words[0] != "GPU0" or is_any_cell(words[1]) or not all(map(LABEL.match, words)):
        return None
    for index in range(at, min(at + _MAX_PIECES, len(lines))):
        if lines[index].is_blank or _is_apart(lines[index]):
            return None
        if _begins_row(lines[index], {"GPU0"}):
            return index
    return None


def _matrix_at(lines: Sequence[Line], at: int, first: int) -> tuple[list[Line], int] | None:
    """The joined lines of a wrapped matrix that begins at a line, and the index of the line after it."""
    block: list[int] = []
    for index in range(at, min(first + _MAX_BLOCK, len(lines))):
        line = lines[index]
        if _is_apart(line) or (not line.is_blank and index - 1 not in (*block[-1:], at - 1) and not _begins_row(line)):
            break
        if not line.is_blank:  # a continuation may be only spaces
            block.append(index)
    for is_padded in (False, True):
        found = _join([lines[index] for index in block], first - at, is_padded)
        if found is not None:
            return found[0], block[found[1] - 1] + 1
    return None


def _is_apart(line: Line) -> bool:
    return is_fence(line.text) or line.text.lstrip().startswith("==") or len(line.text) > _MAX_WIDTH


def _begins_row(line: Line, labels: set[str] | None = None) -> bool:
    """Whether a line begins like a row of one of these labels (None: of any label)."""
    text = without_prefix(line.text)
    words = text[:_MAX_WIDTH].split(maxsplit=2)
    if len(words) < 2 or len(text) - len(text.lstrip()) > 1 or not _is_value(words[1]):
        return False
    return LABEL.match(words[0]) is not None if labels is None else words[0] in labels


def _is_value(word: str) -> bool:
    return is_any_cell(word) or _NUMBER.match(word) is not None or word in ("True", "False")


def _join(block: Sequence[Line], n_header: int, is_padded: bool) -> tuple[list[Line], int] | None:
    """The joined matrix at the beginning of a block with `n_header` header lines, and the number of its lines."""
    texts = [without_prefix(line.text) for line in block]
    width = max(len(text.expandtabs()) for text in texts)
    header = _one(texts[:n_header], width, is_padded)
    labels = COLUMN.sub("", header.text).split()
    if len(set(labels)) < len(labels) or len(labels) > MAX_LABELS or not all(map(LABEL.match, labels)):
        return None
    known = set(labels)
    starts = list(islice((n for n in range(n_header, len(block)) if _begins_row(block[n], known)), len(labels)))
    if len(starts) < len(labels):
        return None
    longest = max((b - a for a, b in pairwise(starts)), default=_MAX_PIECES)
    for end in range(min(starts[-1] + longest, len(block)), starts[-1], -1):
        rows = [_one(texts[a:b], width, is_padded) for a, b in pairwise([*starts, end])]
        if n_header == 1 and end == len(rows) + 1:
            return None  # not wrapped
        if _is_whole(labels, rows) and _are_seams_sure(header, rows, len(labels), is_padded):
            result = [replace(block[0], text=header.text)]
            are_cut = any(seam.word > len(labels) for row in rows for seam in row.seams)
            for row, a, b in zip(rows, starts, [*starts[1:], end], strict=True):
                is_ended = block[b - 1].is_ended and not (are_cut and row.ends_full)
                result.append(replace(block[a], text=row.text, is_ended=is_ended))
            return result, end
    return None


def _one(pieces: Sequence[str], width: int, is_padded: bool) -> _Joined:
    text = pieces[0]
    seams: list[_Seam] = []
    for before, piece in pairwise(pieces):
        missing = width - len(before.expandtabs())
        is_word_begin = COLUMN.match(piece) is not None
        if before and piece and not before[-1].isspace() and not piece[0].isspace() and not is_word_begin:
            is_inside = before[-1] in ",-" or piece[0] in ",-"
            seams.append(_Seam(len(text.split()) - 1, missing == 0, is_inside))
        text += " " * missing + piece if is_padded else piece
    return _Joined(text, tuple(seams), len(pieces[-1].expandtabs()) == width)


def _is_whole(labels: Sequence[str], rows: Sequence[_Joined]) -> bool:
    """Whether the rows are those of the labels, in any order, with a cell for each pair, equal in both directions."""
    cells = {row.words[0]: row.words[1 : len(labels) + 1] for row in rows}
    if set(cells) != set(labels) or any(len(values) < len(labels) for values in cells.values()):
        return False
    if not all(PLACE.match(word) for row in rows for word in row.words[len(labels) + 1 :]):
        return False
    for number, a in enumerate(labels):
        for other, b in enumerate(labels):
            if not _is_value(cells[a][other]) or cells[a][other] != cells[b][number]:
                return False
    return True


def _are_seams_sure(header: _Joined, rows: Sequence[_Joined], n_labels: int, is_padded: bool) -> bool:
    """Whether no number of an affinity is joined or split by a guess: the end of one piece and the beginning of the
    next are one word only if the width is proven, by a word that was certainly wrapped at it."""
    seams = [seam for row in rows for seam in row.seams]
    tails = [seam for seam in seams if seam.word > n_labels]
    is_proven = any(seam.is_full for seam in header.seams) or any(
        seam.is_full and (seam.is_inside or seam.word <= n_labels) for seam in seams
    )
    return not tails or (is_proven and (is_padded or all(seam.is_full for seam in tails)))


_RULE = re.compile(r":?-{1,200}:?\Z")
_DECORATION = " \t`*"


def read_matrix_lines(data: bytes, tool: str) -> tuple[Line, ...]:
    """All lines of a text, each matrix in the layout of the tool that prints it. Raises ParseError as `read_lines`."""
    return unwrapped(_without_tables(read_lines(data, tool)))


def _without_tables(lines: Sequence[Line]) -> tuple[Line, ...]:
    result = list(lines)
    at = 0
    while at + 1 < len(result):
        header, rule = _cells(result[at].text), _cells(result[at + 1].text)
        if header is None or rule is None or not all(_RULE.match(cell) for cell in rule):
            at += 1
            continue
        end = at + 2
        rows: list[list[str]] = []
        while end < len(result) and (row := _cells(result[end].text)) is not None and len(rows) <= MAX_LABELS:
            rows.append(row)
            end += 1
        texts = _matrix_texts(header, rows)
        if texts is not None:
            replaced = [texts[0], "", *texts[1:]]
            result[at:end] = [replace(line, text=text) for line, text in zip(result[at:end], replaced, strict=True)]
        at = end
    return tuple(result)


def _cells(text: str) -> list[str] | None:
    """The cells of a table row; None for any other line."""
    text = text.strip().lstrip("> ")
    if len(text) < 3 or text[0] != "|" or text[-1] != "|":
        return None
    return [cell.strip(_DECORATION) for cell in text[1:-1].split("|")]


def _matrix_texts(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """The lines of a matrix as nvidia-smi prints it; None unless the table is exactly one matrix."""
    if not rows or any(len(row) != len(header) for row in rows):
        return None
    own = [
        column
        for column in range(len(header))
        if header[column] not in (CPU_AFFINITY, NUMA_AFFINITY, GPU_NUMA)
        and all(row[column] and row[column] in header for row in rows)
    ]
    if len(own) != 1:
        return None
    labels = {row[own[0]] for row in rows}
    devices = [column for column, name in enumerate(header) if name in labels and column != own[0]]
    places = [header.index(name) for name in (CPU_AFFINITY, NUMA_AFFINITY, GPU_NUMA) if name in header]
    if len(devices) + len(places) + 1 != len(header):
        return None
    texts = ["\t".join(["", *(header[column] for column in (*devices, *places))])]
    for row in rows:
        tails = [
            f"\t{row[column]}" if header[column] == GPU_NUMA and len(places) > 1 else row[column] for column in places
        ]
        texts.append("\t".join([row[own[0]], *(row[column] for column in devices), *tails]))
    return texts
