"""A plain table of numbers, as it stands beside a chart or folded below a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell. `value` is the exact number behind a rounded text; `href` makes it a link.

    `tone` is a class of the style sheet that colours the cell; `is_code` sets a command, which one click selects whole.
    """

    text: str
    value: float | None = None
    href: str | None = None
    tone: str = ""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers stand on the right, the heading of an `upright` one is turned to save width."""

    title: str
    numeric: bool = False
    is_upright: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. `caption` says what the table holds; the first cell of a row names it."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
