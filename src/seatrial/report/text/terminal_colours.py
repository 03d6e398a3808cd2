"""Text layout on a terminal, by rich: in colours, in the terminal's width.

rich respects NO_COLOR, TERM=dumb and COLUMNS. It is loaded only if there is a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.report.blocks import Tone
from seatrial.report.text.terminal import Style

_COLOURS: dict[Tone, str] = {
    "heading": "bold",
    "error": "bold red",
    "warning": "yellow",
    "faint": "dim",
    "near": "cyan",
    "direct": "green",
}
_RULE_BELOW_HEAD = Box("    \n    \n ─  \n    \n    \n    \n    \n    \n")
_NO_RULE = Box("    \n" * 8)
_GAP = 2
_SPACE, _NOT_AFTER_A_NUMBER = re.compile(r" +"), re.compile(r"(?<!\d) +")
_LEAST_WIDTH = 40
_LONGEST_WORD = 24
"""A longer one, such as a path, may be broken if the table would otherwise be wider than the terminal."""


class TerminalStyle(Style):
    """For the terminal of a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._terminal_width = max(_LEAST_WIDTH, console.width)
        self.width = min(Style.width, self._terminal_width)

    def paint(self, text: str, tone: Tone) -> str:
        """The text with colour codes, if the terminal has colours."""
        return self._rendered(Text(text, style=_COLOURS[tone]))

    def table(self, rows: Iterable[Sequence[str]], indent: str = "  ", *, has_head: bool = False) -> str:
        """The table; cells are folded if it is wider than the terminal. Cells may contain colour codes."""
        cells = [[Text.from_ansi(cell) for cell in row] for row in rows]
        widths = _widths(cells, self._terminal_width - len(indent))
        table = Table(
            box=_RULE_BELOW_HEAD if has_head else _NO_RULE,
            show_header=has_head,
            show_edge=False,
            padding=(0, _GAP - 1, 0, 0),
            pad_edge=False,
        )
        for k, width in enumerate(widths):
            title = cells[0][k] if has_head and k < len(cells[0]) else ""
            table.add_column(title, width=width, overflow="fold")
        for row in cells[has_head:]:
            table.add_row(*row)
        self._console.width = sum(widths) + _GAP * len(widths)
        return "\n".join(indent + line.rstrip() for line in self._rendered(table).splitlines())

    def _rendered(self, thing: Text | Table) -> str:
        """As ANSI text."""
        with self._console.capture() as capture:
            self._console.print(thing, end="", soft_wrap=isinstance(thing, Text), highlight=False)
        return capture.get()


def _widths(cells: Sequence[Sequence[Text]], available: int) -> list[int]:
    """The column widths: the widest columns are folded between words until the table fits, between a number and its
    unit only if nothing else helps. A table that still does not fit keeps its width, and the terminal wraps it."""
    columns = [[row[k] for row in cells if k < len(row)] for k in range(max(map(len, cells), default=0))]
    natural = [max(1, *(cell.cell_len for cell in column)) for column in columns]
    for between in (_NOT_AFTER_A_NUMBER, _SPACE):
        parts = [[part for cell in column for part in between.split(cell.plain)] for column in columns]
        least = [min(_LONGEST_WORD, max(map(cell_len, words), default=1)) for words in parts]
        widths = list(natural)
        while (excess := sum(widths) + _GAP * (len(widths) - 1) - available) > 0:
            wider = [k for k, width in enumerate(widths) if width > least[k]]
            if not wider:
                break
            widths[max(wider, key=widths.__getitem__)] -= 1
        if excess <= 0:
            return widths
    return natural
