"""Tables of numbers as MPI and GPU benchmarks print them: one row a line, columns aligned at their right edges.

Alignment is what tells a whole row from one that was cut or run together with another: each program prints its columns
with fixed widths, so that a row whose cells end elsewhere than those of the header and the other rows is damaged. Text
whose white space was squeezed has no alignment to hold on to, and is not held to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from seatrial.imports.text import Line

MOST_SECONDS = 1e7
"""No single operation of a benchmark takes longer: four months."""
MOST_PER_SECOND = 1e19
"""No machine of today moves as many bytes or makes as many operations in a second."""

_NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = re.compile(r"[0-9]{1,16}")
_WORD = re.compile(r"\S+")
_LABEL = re.compile(r"\[[0-9]{1,6},[0-9]{1,6}\]<std(?:out|err)>:[ ]?")
"""What `mpirun --tag-output` puts before each line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A word of a line, and the columns that it begins at and ends before."""

    text: str
    start: int
    end: int


Row = tuple[Line, tuple[Cell, ...]]


def body(line: Line) -> str:
    """The text of a line without the label that a launcher put on it, with spaces for tabs."""
    text = line.text.replace("\N{NO-BREAK SPACE}", " ").expandtabs(8)
    return text[match.end() :] if (match := _LABEL.match(text)) else text


def cells_of(text: str) -> tuple[Cell, ...]:
    """The words of a line with their places."""
    return tuple(Cell(match[0], match.start(), match.end()) for match in _WORD.finditer(text))


def decimal_of(text: str) -> Decimal | None:
    """A number that is not negative, in digits, exactly; None for anything else (nan, inf, commas, signs)."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def whole_number(text: str) -> int | None:
    """A whole number that is not negative, or None."""
    return int(text) if _WHOLE.fullmatch(text) else None


def scaled(value: Decimal, exponent: int) -> float:
    """`value` x 10^exponent, rounded once: 0.39 us is 3.9e-07 s, not 3.8999999999999997e-07 s."""
    return float(value.scaleb(exponent))


def is_noise(text: str) -> bool:
    """Whether a line is a sentence that a launcher or library wrote between rows."""
    return sum(word.isalpha() and len(word) > 1 for word in text.split()[:30]) >= 3


def check_aligned(header: Sequence[Cell], rows: Sequence[Row], tool: str) -> None:
    """Hold every row to the right edges of the columns. Raises ParseError at the first row that is off.

    `header` is empty where it has other words than columns. The first column is left out: some programs print it from
    the left. A column that is too narrow for its number pushes the rest of its row to the right, which is no damage.
    """
    if not rows:
        return
    edges = _edges(header, rows)
    if edges is None:
        _check_last(rows, tool)
        return
    starts = [0, *edges[:-1]]
    for line, cells in rows:
        shift = 0
        for place, cell in enumerate(cells[1:]):
            off = cell.end - edges[place] - shift
            gap = cell.start - cells[place].end
            fits = off == 0 or (off > 0 and gap <= 2 and cell.end - cell.start > edges[place] - starts[place] - 3)
            if not fits:
                raise line.error(tool, f"{cell.text[:40]} does not stand in its column: the row is cut or run together")
            shift += max(off, 0)


def _edges(header: Sequence[Cell], rows: Sequence[Row]) -> tuple[int, ...] | None:
    """The edges that most rows have; where rows are few, those of the header. None: the white space was squeezed."""
    of_rows = [tuple(cell.end for cell in cells[1:]) for _, cells in rows]
    of_header = tuple(cell.end for cell in header[1:])
    common, times = Counter(of_rows).most_common(1)[0]
    if of_header in of_rows:
        return of_header
    if times >= 3 and times * 2 > len(of_rows):
        return common
    is_squeezed = all(_is_squeezed(cells) for _, cells in rows) or _is_squeezed(header)
    return None if is_squeezed or not of_header else of_header


def _is_squeezed(cells: Sequence[Cell]) -> bool:
    return all(cells[k + 1].start - cells[k].end <= 1 for k in range(len(cells) - 1))


def _check_last(rows: Sequence[Row], tool: str) -> None:
    """A last row that is not ended, in a table without alignment: it must have as many decimals as the others."""
    line, cells = rows[-1]
    if line.is_ended:
        return
    usual = Counter(len(row[-1].text.partition(".")[2]) for _, row in rows[:-1]).most_common(1)
    if not usual or len(cells[-1].text.partition(".")[2]) != usual[0][0]:
        raise line.error(tool, "the file ends in this row: it may have been cut off")


def check_distinct(keys: Iterable[tuple[object, Line]], tool: str, what: str) -> None:
    """Raise ParseError where a key comes twice."""
    seen: dict[object, int] = {}
    for key, line in keys:
        if key in seen:
            raise line.error(tool, f"{what} came before, in line {seen[key]}: give each run a file of its own")
        seen[key] = line.number
