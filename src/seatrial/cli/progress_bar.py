"""The progress bar of `seatrial run`, drawn by rich; loaded only on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar as Bar
from rich.table import Table
from rich.text import Text

_BAR_WIDTH = 24


def can_redraw(stream: TextIO) -> bool:
    """Whether a terminal can redraw a line; with TERM=dumb it cannot."""
    return not Console(file=stream).is_dumb_terminal


class ProgressBar:
    """A bar of how much is done, with the current repeat below it.

    It is redrawn only on events: a thread that refreshes it would disturb the measurement.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._live: Live | None = None

    def show(self, what: str, done: int = 0, of: int = 0, words: str = "") -> None:
        """`done` of `of` experiments; no bar if `of` is 0."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        lines: list[RenderableType] = [Text(what, overflow="fold")]
        if of:
            head = Table.grid(padding=(0, 1))
            head.add_row(Bar(of, done, width=_BAR_WIDTH), Text(words, overflow="fold"))
            lines.insert(0, head)
        self._live.update(Group(*lines), refresh=True)

    def close(self) -> None:
        """Remove the bar; the next `show` draws it again."""
        if self._live is not None:
            self._live.stop()
            self._live = None
