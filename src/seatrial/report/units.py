"""How the page shows values: the spelling that findings share (`model.spelling`), and what only a page needs."""

from __future__ import annotations

from seatrial.model.benchmark import Better
from seatrial.model.spelling import (
    bare_name,
    count,
    cpu_list,
    digits_to_tell,
    display_scale,
    label,
    plain,
    setting_number,
    settings,
    show,
    show_ends,
    show_fact,
    show_percent,
    show_range,
    show_transfers,
    surrounding,
    written,
)

__all__ = [
    "NO_VALUE",
    "arrow",
    "arrow_meaning",
    "bare_name",
    "count",
    "cpu_list",
    "digits_to_tell",
    "display_scale",
    "label",
    "plain",
    "setting_number",
    "settings",
    "show",
    "show_ends",
    "show_fact",
    "show_percent",
    "show_range",
    "show_transfers",
    "surrounding",
    "written",
]

NO_VALUE = "\N{EN DASH}"
"""Stands in a cell where there is nothing to show."""


def arrow(better: Better) -> str:
    """Which way a figure is better, as one character."""
    return "↑" if better is Better.HIGHER else "↓"


def arrow_meaning(better: Better) -> str:
    """The same in words, for those who hear the page."""
    return f"{better.value} is better"
