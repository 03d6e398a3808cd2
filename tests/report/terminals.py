"""Terminals of a given width that have colours."""

from __future__ import annotations

import io

from rich.console import Console

from seatrial.report.text.terminal_colours import TerminalStyle


def terminal(width: int = 118) -> TerminalStyle:
    return TerminalStyle(
        Console(file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False, width=width)
    )


COLOURED = terminal()
