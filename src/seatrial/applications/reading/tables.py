"""Tables of numbers as MPI and GPU benchmarks print them: one row per line, columns aligned at their right edges.

Alignment distinguishes a complete row from one that was cut or joined with another: each program prints columns of
fixed width, so a row whose cells end elsewhere than those of the header and the other rows is damaged. Text whose white
space was collapsed has no alignment, and is not checked for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise

from seatrial.applications.reading.figures import in_SI
from seatrial.applications.reading.text import LogLine, Pattern, is_product
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import half_unit

MOST_SECONDS = 1e7
"""No single operation of a benchmark takes longer: four months."""
MOST_PER_SECOND = 1e19
"""No machine today moves that many bytes or does that many operations in a second."""
_ROUNDING = Decimal("0.011")
"""Of two times with two decimals."""

_NUMBER = Pattern(r"[0-9]{1,19}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = Pattern(r"[0-9]{1,16}")
_WORD = Pattern(r"\S+")


class TextCell(Frozen):
    """A word of a line, with its first character column and the one after its last."""

    text: str
    start: int
    end: int


Row = tuple[LogLine, tuple[TextCell, ...]]


def body(line: LogLine) -> str:
    """The text of a line, tabs expanded."""
    return line.text.replace("\N{NO-BREAK SPACE}", " ").expandtabs(8)


def cells_of(text: str) -> tuple[TextCell, ...]:
    """The words of a line with their positions."""
    return tuple(TextCell(match[0], match.start(), match.end()) for match in _WORD.finditer(text))


def decimal_of(text: str) -> Decimal | None:
    """A non-negative decimal number, exactly; None for anything else (nan, inf, commas, signs)."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def whole_number(text: str) -> int | None:
    """A non-negative whole number, or None."""
    return int(text) if _WHOLE.fullmatch(text) else None


def scaled(value: Decimal, exponent: int) -> float:
    """`value` x 10^exponent, rounded once: 0.39 us is 3.9e-07 s, not 3.8999999999999997e-07 s."""
    return float(value.scaleb(exponent))


_TIMED = Pattern(r"\s*(?:real|user|sys)\s+[0-9]{1,9}\.[0-9]{1,9}\s*")


def is_noise(text: str) -> bool:
    """Whether a line is a message that a launcher, a library or `time -p` printed between rows."""
    if _TIMED.fullmatch(text):
        return True
    return sum(word.isalpha() and len(word) > 1 for word in text.split()[:30]) >= 3


def check_aligned(header: Sequence[TextCell], rows: Sequence[Row]) -> None:
    """Check every row against the right edges of the columns. Raises ParseError for the first misaligned row.

    `header` is empty if its words are not the columns. The first column is not checked: some programs align it left. A
    number wider than its column, also in a first one that is aligned right, shifts the rest of its row to the right,
    which is not damage. Rows that were written again by hand or by a spreadsheet fit if all have one such form.
    """
    if not rows:
        return
    if _are_written_again(rows):
        _check_last(rows)
        return
    edges = _edges(header, rows)
    if edges is None:
        _check_last(rows)
        return
    first, times = Counter(cells[0].end for _, cells in rows).most_common(1)[0]
    is_right_aligned = times * 2 > len(rows)
    for line, cells in rows:
        wrong = _misaligned(cells, edges, 0)
        if wrong is not None and is_right_aligned and cells[0].end > first:
            wrong = _misaligned(cells, edges, cells[0].end - first)
        if wrong is not None:
            raise line.error(
                f"{wrong.text[:40]} is not aligned with its column: the row is cut, or joined with another"
            )


def _misaligned(cells: Sequence[TextCell], edges: Sequence[int], shift: int) -> TextCell | None:
    """The first cell that does not end at its edge; those after the first cell are `shift` farther right."""
    starts = [0, *edges[:-1]]
    for place, cell in enumerate(cells[1:]):
        offset = cell.end - edges[place] - shift
        gap = cell.start - cells[place].end
        if offset and (offset < 0 or gap > 2 or cell.end - cell.start <= edges[place] - starts[place] - 3):
            return cell
        shift += offset
    return None


_LEAST_ROWS = 3


def _are_written_again(rows: Sequence[Row]) -> bool:
    """Whether the rows are not as a program prints them: one tab between all cells, or all columns aligned left."""
    texts = [line.text.strip() for line, _ in rows]
    if all(
        text.count("\t") == len(cells) - 1 and "  " not in text for text, (_, cells) in zip(texts, rows, strict=True)
    ):
        return True
    starts = {tuple(cell.start for cell in cells) for _, cells in rows}
    ends = Counter(tuple(cell.end for cell in cells[1:]) for _, cells in rows)
    decimals = {tuple(len(cell.text.partition(".")[2]) for cell in cells) for _, cells in rows}
    is_left = len(starts) == len(decimals) == 1 and 2 * max(ends.values()) <= len(rows)
    return is_left and len(rows) >= _LEAST_ROWS


def _edges(header: Sequence[TextCell], rows: Sequence[Row]) -> tuple[int, ...] | None:
    """The edges of most rows; with few rows, those of the header. None if the white space was collapsed."""
    of_rows = [tuple(cell.end for cell in cells[1:]) for _, cells in rows]
    of_header = tuple(cell.end for cell in header[1:])
    common, times = Counter(of_rows).most_common(1)[0]
    if times >= 3 and times * 2 > len(of_rows):
        return common
    if of_header in of_rows:
        return of_header
    is_collapsed = all(_is_collapsed(cells) for _, cells in rows) or _is_collapsed(header)
    return None if is_collapsed or not of_header else of_header


def _is_collapsed(cells: Sequence[TextCell]) -> bool:
    return all(cells[k + 1].start - cells[k].end <= 1 for k in range(len(cells) - 1))


def _check_last(rows: Sequence[Row]) -> None:
    """Without alignment, a last row without a line break must have as many decimals as the others."""
    line, cells = rows[-1]
    if line.is_ended:
        return
    usual = Counter(len(row[-1].text.partition(".")[2]) for _, row in rows[:-1]).most_common(1)
    if not usual or len(cells[-1].text.partition(".")[2]) != usual[0][0]:
        raise line.error("the file ends in this row: it may have been cut off")


def missing_sizes(sizes: Sequence[int], what: str) -> tuple[str, ...]:
    """A remark on sizes that should double from row to row, and where they do not; `what` names the table.

    Rows that were lost with their line breaks leave nothing else behind. Size 0 comes before 1 or the first element.
    """
    gaps = [f"between {a} and {b} B" for a, b in pairwise(sizes) if a and b != 2 * a]
    if not gaps:
        return ()
    more = f" and {len(gaps) - 3} more" if len(gaps) > 3 else ""
    return (f"{what}: sizes do not double {', '.join(gaps[:3])}{more}: rows may be missing",)


def too_small(values: Sequence[tuple[str, object]], what: str) -> tuple[str, ...]:
    """A remark on values printed as 0.00, given as (column, size), of which no figure is made."""
    columns: dict[str, list[object]] = {}
    for column, size in values:
        columns.setdefault(column, []).append(size)
    remarks = []
    for column, sizes in columns.items():
        at = [f"{size} B" for size in dict.fromkeys(sizes) if size is not None]
        where = f" at {', '.join(at[:6])}{f' and {len(at) - 6} more sizes' if len(at) > 6 else ''}" if at else ""
        remarks.append(f"{what}: {column} is 0{where}, below the printed digits: no figure")
    return tuple(remarks)


def check_possible(line: LogLine, what: str, series: str, value: float, times: Collection[str]) -> None:
    """Raise ParseError if a value (SI) of a series is more than any machine takes or reaches; `times` are seconds."""
    most = MOST_SECONDS if series in times else 1.0 if series == "overlap" else MOST_PER_SECOND
    if value > most:
        raise line.error(f"{what} of {value:g} (SI) is impossible")


def check_order(line: LogLine, times: Sequence[Decimal], what: str) -> None:
    """Raise ParseError if minimum, mean and maximum, as far as they are printed, are not in this order."""
    if any(low > high + _ROUNDING for low, high in pairwise(times)):
        raise line.error(f"the minimum, mean and maximum {what} are not in this order")


def check_distinct(keys: Iterable[tuple[object, LogLine]], what: str) -> None:
    """Raise ParseError if a key occurs twice."""
    seen: dict[object, int] = {}
    for key, line in keys:
        if key in seen:
            raise line.error(f"{what} is in line {seen[key]} already: put each run in its own file")
        seen[key] = line.number


def best_rate(
    line: LogLine, kernel: str, moved_B: float | None, cells: Sequence[str], unit: float, slack: float = 1.0
) -> float:
    """The rate (B/s) in a row of STREAM or a program like it, whose cells are rate, least, mean and longest time.

    Raises ParseError if the times are not in this order, or if rate x least time is not the bytes that the kernel moves
    (None: unknown). `slack` widens the rounding error of the rate, where the bytes are not exactly known.
    """
    rate = line.number_of(cells[0], "the rate")
    whole = next((cell for cell in cells[1:] if "." not in cell and "e" not in cell.lower()), None)
    if whole is not None:
        raise line.error(f"a time is {whole[:40]!r}, but these programs print times with decimals")
    least, mean, most = (line.number_or_zero(cell, "a time") for cell in cells[1:])
    off = half_unit(cells[1]) + half_unit(cells[2])
    if not least <= mean + off <= most + 2 * off:
        raise line.error("the minimum, mean and maximum time are not in this order")
    if moved_B is not None and not is_product(
        moved_B / unit, (rate, half_unit(cells[0]) * slack), (least, half_unit(cells[1]))
    ):
        raise line.error(f"{cells[0]} in {cells[1]} s is not the {moved_B:.0f} B that {kernel} moves")
    return in_SI(rate, unit)
