"""A plain table of numbers, next to a chart or folded below a panel."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen


class Cell(Frozen):
    """The content of a cell. `value` is the exact number behind a rounded text; `href` makes it a link.

    `tone` is a class of the style sheet that colours the cell; `is_code` marks a command, which a click selects.
    """

    text: str
    value: float | None = None
    href: str | None = None
    tone: str = ""
    is_code: bool = False


class Column(Frozen):
    """A column's heading; numbers are right-aligned, the heading of an `upright` column is rotated to save width."""

    title: str
    numeric: bool = False
    is_upright: bool = False


class Table(Frozen):
    """Rows with column headings. `caption` describes the table; the first cell of a row is its heading."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
