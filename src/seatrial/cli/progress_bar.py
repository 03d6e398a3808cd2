"""The bar of `seatrial run` on a terminal, by rich: loaded only where there is one."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar as Bar
from rich.table import Table
from rich.text import Text

_BAR_WIDTH = 24


def can_redraw(stream: TextIO) -> bool:
    """Whether a terminal can rewrite what it shows: all but those that say TERM=dumb."""
    return not Console(file=stream).is_dumb_terminal


class ProgressBar:
    """What runs, below a bar of how much is done. It is drawn when something happens and at no other time: a thread
    that redraws it would take time from what is measured."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._live: Live | None = None

    def show(self, what: str, done: int = 0, of: int = 0, words: str = "") -> None:
        """`done` of `of` experiments; no bar where `of` is 0."""
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
        """Remove it; the next `show` draws it again."""
        if self._live is not None:
            self._live.stop()
            self._live = None
