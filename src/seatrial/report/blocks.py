"""What a report consists of: sections of texts, aspects, tables and charts. `pages` renders them as HTML, `text` for a
terminal, where a chart is not drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal

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
    """An inline `<svg>` element. Its author has escaped all text in it. `is_picture`: not a sentence instead."""

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
    picture: Svg | None = None
    """In place of the text, on a page."""

    @classmethod
    def amount(cls, value: float | None, unit: Unit, digits: int = DIGITS, *, binary: bool = False) -> Cell:
        """A quantity; NO_VALUE if it is unknown."""
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
    """A column's heading; numbers are right-aligned, the heading of an `upright` column is rotated to save width.
    `short` is the heading on a terminal (default: the title in lower case); None: only a page has the column."""

    title: str
    numeric: bool = False
    is_upright: bool = False
    short: str | None = ""

    @property
    def heading(self) -> str:
        """The heading on a terminal."""
        return self.short or (self.title if self.title.isupper() else f"{self.title[:1].lower()}{self.title[1:]}")


Cells = Sequence[Cell | str]
"""A row; a text is a cell of it."""


class Table(Frozen):
    """Rows with column headings. `caption` describes the table; the first cell of a row is its heading. `look` are
    classes of the style sheet; `is_folded`: a page opens it on request; `detail`: from which a terminal prints it."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    look: str = ""
    is_folded: bool = False
    detail: Detail = Detail.USUAL

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
    once; `table` has its numbers, which are folded on a page. `is_listed`: a terminal shows them;
    `is_bare`: they are in a table beside it, so that a page shows the picture alone."""

    title: str
    caption: str
    draw: Callable[[], Svg]
    table: Table
    is_listed: bool = False
    is_bare: bool = False

    @property
    def svg(self) -> Svg:
        """The picture."""
        return self.draw()


def always(picture: Svg) -> Callable[[], Svg]:
    """For `Chart.draw`, of a picture that is cheap to make."""
    return lambda: picture


class About(Frozen):
    """How to read what follows; only on a page."""

    text: str


class Lines(Frozen):
    """Sentences, each a paragraph. `label` leads each on a terminal ("why: ..."); `look` is that on a page."""

    texts: Sequence[str]
    label: str = ""
    look: Literal["about", "strong", "note", "list"] = "about"


class Heading(Frozen):
    """The heading of a part of a section: its subject, and what is found about it."""

    subject: str
    text: str = ""


class Aspect(Frozen):
    """One aspect of how reliable results are. `is_weak`: it limits their value."""

    name: str
    text: str
    is_weak: bool = False


class Aspects(Frozen):
    """The reliability of results: a headline, tables, and a line for each aspect. `is_weak`: something limits the value
    of the results. On a terminal, the weak aspects, and in full all of them."""

    headline: str
    lines: Sequence[Aspect]
    is_weak: bool
    tables: Sequence[Table] = ()


class VerdictLine(Frozen):
    """A verdict in words: its subject, the word for it, the sentence, advice if there is no verdict, a limitation.
    `verdict` is its class in the style sheet."""

    verdict: str
    subject: str
    word: str
    sentence: str
    hint: str = ""
    note: str = ""


class Verdicts(Frozen):
    """Verdicts, the most important first; `counts` is how many there are of each. Where many are left, a page folds and
    a terminal leaves out the last ones."""

    found: Sequence[VerdictLine]
    counts: str = ""


class OddOne(Frozen):
    """A part of a cluster that differs from the others: how far (`by`, of what), and what to do about it. `also` are
    its further figures; `is_command`: the remedy is one."""

    kind: str
    by: str
    of: str
    title: str
    settings: str
    said: str
    also: Sequence[str]
    remedy: str
    is_command: bool


class OddOnes(Frozen):
    """What differs, the most important first."""

    found: Sequence[OddOne]


class Fold(Frozen):
    """Blocks that a page opens on request; a terminal prints them in full."""

    summary: str
    blocks: Sequence[Block]


Block = About | Lines | Heading | Aspects | Verdicts | OddOnes | Fold | Table | Chart


class Section(Frozen):
    """One part of a report. A page renders `blocks` with the template, a file in `templates/study/`, which may have a
    `context` of its own. `detail`: from which on a terminal prints it (None: never); evidence has its title there."""

    name: str
    title: str
    template: str = "blocks"
    context: Mapping[str, Any] = {}
    blocks: Sequence[Block] = ()
    detail: Detail | None = Detail.FULL
