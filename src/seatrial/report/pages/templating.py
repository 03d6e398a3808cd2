"""What pages are made of: templates, which escape all text from outside, pictures and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import DIGITS, NO_VALUE, show, show_percent, show_range
from seatrial.model.units import Unit
from seatrial.report.intervals import no_interval_words

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
_KEPT = (
    "\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{SOFT HYPHEN}\N{ZERO WIDTH SPACE}\N{WORD JOINER}"
)
"""Unprintable characters that are allowed in text."""
_CODE = re.compile(r"`([^`\n]+)`")


@cache
def templates() -> Environment:
    """The environment of all templates, cached: everything is escaped unless marked as safe."""
    import jinja2  # loaded only when a page is written

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _with_code
    environment.filters["percent"] = show_percent
    return environment


def rendered(template: str, **context: Any) -> str:
    """The text of a template, by its path in the folder of templates."""
    return templates().get_template(template).render(**context)


def _printable(value: object) -> object:
    """Text from outside without unprintable characters: a name must not change the direction of a page's text."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(letter if letter.isprintable() or letter in _KEPT else "?" for letter in value)


def style_sheet() -> Verbatim:
    """The style sheet of every page."""
    return Verbatim((_TEMPLATES / "style.css").read_text(encoding="utf-8"))


class Verbatim:
    """Text that is already escaped, or our own (the style sheet)."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __html__(self) -> str:
        """The text, unchanged."""
        return self._text


def _with_code(text: str) -> Markup:
    """Text in which `backticks` become code; everything else is escaped."""
    pieces = _CODE.split(str(_printable(text)))
    marked = [Markup("<code>{}</code>").format(piece) if n % 2 else escape(piece) for n, piece in enumerate(pieces)]
    return Markup("").join(marked)


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


MEDIAN_COLUMNS = right("Median", "95 % interval")
"""The headings of `median_cells`."""


def median_cells(figure: FigureResult) -> tuple[Cell, str]:
    """The cells of a figure's median and its interval, or why there is none."""
    return Cell.amount(figure.median, figure.unit, 4), interval_text(figure)


def interval_text(figure: FigureResult) -> str:
    """The interval of a figure, or why there is none."""
    if figure.ci95 is None:
        return no_interval_words(figure.n_repeats)
    return show_range(*figure.ci95, figure.unit, beside=figure.median)
