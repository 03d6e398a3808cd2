"""What a report consists of: sections of texts, aspects, tables and charts. `pages` renders them as HTML, `text` for a
terminal, where a chart is not drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Literal

from seatrial.model.frozen import Frozen
from seatrial.model.spelling import DIGITS, NO_VALUE, show, show_percent
from seatrial.model.units import Unit

Tone = Literal["heading", "error", "warning", "faint", "near", "direct"]
"""What colours a text on a terminal."""


class Detail(Enum):
    """The result alone, what fits a screen, or everything that is known."""

    BRIEF = "brief"
    USUAL = "usual"
    FULL = "full"


class Svg(Frozen):
    """An inline `<svg>` element. Its author has escaped all text in it. `is_picture`: not a sentence in its place."""

    text: str
    is_picture: bool = True

    def __html__(self) -> str:
        """The text for templates with autoescaping."""
        return self.text


class Cell(Frozen):
    """The content of a cell. `value` is the exact number behind a rounded text; `href` makes it a link.

    `tone` is a class of the style sheet that colours the cell; `is_code` marks a command, which a click selects.
    """

    text: str
    value: float | None = None
    href: str | None = None
    tone: str = ""
    is_code: bool = False

    @classmethod
    def amount(cls, value: float | None, unit: Unit, digits: int = DIGITS, *, binary: bool = False) -> Cell:
        """A quantity; NO_VALUE if it is not known."""
        return cls(NO_VALUE) if value is None else cls(show(value, unit, digits, binary=binary), value)

    @classmethod
    def number(cls, number: int | None) -> Cell:
        """A number of things."""
        return cls(NO_VALUE) if number is None else cls(str(number), number)

    @classmethod
    def share(cls, share: float | None) -> Cell:
        """A share in percent."""
        return cls(NO_VALUE) if share is None else cls(show_percent(share), share)


class Column(Frozen):
    """A column's heading; numbers are right-aligned, the heading of an `upright` column is rotated to save width."""

    title: str
    numeric: bool = False
    is_upright: bool = False


Cells = Sequence[Cell | str]
"""A row; a text is a cell of it."""


class Table(Frozen):
    """Rows with column headings. `caption` describes the table; the first cell of a row is its heading."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    @classmethod
    def of(cls, caption: str, columns: Iterable[str | Column], rows: Iterable[Cells]) -> Table:
        """A table of titles and cells, which may be texts."""
        cells = [[Cell(one) if isinstance(one, str) else one for one in row] for row in rows]
        return cls(caption, headings(*columns), cells)

    @classmethod
    def if_any(cls, caption: str, columns: Iterable[str | Column], rows: Iterable[Cells]) -> Table | None:
        """The table; None without rows."""
        made = cls.of(caption, columns, rows)
        return made if made.rows else None


def headings(*titles: str | Column) -> list[Column]:
    """The headings of a table; one that is only a title has text below it."""
    return [Column(one) if isinstance(one, str) else one for one in titles]


def right(*titles: str) -> list[Column]:
    """The headings of columns of numbers, which are on the right."""
    return [Column(title, numeric=True) for title in titles]


class Chart(Frozen):
    """One chart. `caption` states how to read it and what was left out; `draw` makes the picture when a page needs it,
    once; `table` has its numbers."""

    title: str
    caption: str
    draw: Callable[[], Svg]
    table: Table

    @property
    def svg(self) -> Svg:
        """The picture."""
        return self.draw()


def always(picture: Svg) -> Callable[[], Svg]:
    """For `Chart.draw`, of a picture that is cheap to make."""
    return lambda: picture
