"""How reports show values: the formats shared with findings (`model.spelling`), and those for pages only."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.benchmark.benchmark import Better
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
    show_alike,
    show_ends,
    show_fact,
    show_percent,
    show_range,
    show_transfers,
    surrounding,
    workers_text,
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
    "few_names",
    "label",
    "plain",
    "setting_number",
    "settings",
    "show",
    "show_alike",
    "show_ends",
    "show_fact",
    "show_percent",
    "show_range",
    "show_transfers",
    "surrounding",
    "workers_text",
    "written",
]

NO_VALUE = "\N{EN DASH}"
"""The text of an empty cell."""


def arrow(better: Better) -> str:
    """Whether higher or lower is better, as one character."""
    return "↑" if better is Better.HIGHER else "↓"


def arrow_meaning(better: Better) -> str:
    """The same in words, for screen readers."""
    return f"{better.value} is better"


def few_names(names: Sequence[object], most: int) -> str:
    """The first names, and how many more: "a, b and 9 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"
