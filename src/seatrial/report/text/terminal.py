"""Text layout: plain here, for pipes and files; `terminal_colours.py` adds colours and the terminal's width.

Callers remove control characters from external text first, with `clean`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from seatrial.model.spelling import shortened
from seatrial.printable import printable
from seatrial.report.blocks import Cell, Table, Tone

_LONGEST_SIDE = 60
_LONGEST_CELL = 72
"""A longer one is without its middle: the page and the JSON have it whole."""
_LEAST_WIDTH = 40


class Style:
    """Without colours and with a fixed width, so that outputs can be compared."""

    width = 118
    """Of a line of prose. A table, a name or a command may be wider."""

    @classmethod
    def of_width(cls, width: int) -> Style:
        """The same in this width, but no narrower than prose can be read and no wider than usual."""
        style = cls()
        style.width = min(cls.width, max(_LEAST_WIDTH, width))
        return style

    def paint(self, text: str, tone: Tone) -> str:
        """The text in the colour of its tone."""
        return text

    def wrapped(self, text: str, lead: str = "", then: str | None = None) -> list[str]:
        """Lines that break between words only, so that no path or option is cut. The first begins with `lead`, the
        others with `then` (default: the same indentation). Empty for an empty text."""
        then = " " * len(lead) if then is None else then
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=lead,
            subsequent_indent=then,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def table(self, rows: Iterable[Sequence[str]], indent: str = "  ", *, has_head: bool = False) -> str:
        """Rows with their cells aligned on the left; nothing is cut. `has_head`: the first row names the columns."""
        table = [list(row) for row in rows]
        widths = [max(len(row[k]) for row in table if k < len(row)) for k in range(max(map(len, table), default=0))]
        lines = (
            indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in table
        )
        return "\n".join(line.rstrip() for line in lines)


PLAIN = Style()


def clean(text: str) -> str:
    """`text` in one line, so that a product name cannot carry escape codes."""
    return printable(text)


def plain(text: str) -> str:
    """Text without control characters; our own no-break spaces become blanks."""
    return clean(text.replace("\N{NO-BREAK SPACE}", " "))


def cut(text: str, longest: int) -> str:
    """The beginning of a text that is longer."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


_TONES: dict[str, Tone] = {
    "verdict-faster": "direct",
    "verdict-slower": "error",
    "verdict-ambiguous": "warning",
    "verdict-same": "near",
    "verdict-equivalent": "near",
}
"""Tone of a cell -> its colour on a terminal."""


def rows_of(table: Table, style: Style = PLAIN) -> list[list[str]]:
    """A table for `Style.table`, its headings first."""
    kept = [k for k, column in enumerate(table.columns) if column.short is not None]
    head = [shortened(plain(table.columns[k].heading), _LONGEST_CELL) for k in kept]
    return [head, *([_cell(row[k], style) for k in kept] for row in table.rows)]


def _cell(cell: Cell, style: Style) -> str:
    text, tone = shortened(plain(cell.text), _LONGEST_CELL), _TONES.get(cell.tone)
    return text if tone is None else style.paint(text, tone)


def sentences(texts: Iterable[str], style: Style, lead: str = "  ", then: str | None = None) -> list[str]:
    """Lines of plain texts, each wrapped for itself; an empty one has none."""
    return [line for text in texts for line in style.wrapped(plain(text), lead, then)]


def block(title: str, lines: Sequence[str], style: Style, tone: Tone = "heading") -> str:
    """Lines below a title; "" without lines."""
    return "\n".join([style.paint(title, tone), *lines]) if lines else ""


def joined(blocks: Iterable[str]) -> str:
    """The blocks that have a text, with an empty line between them."""
    return "\n\n".join(filter(None, blocks))
