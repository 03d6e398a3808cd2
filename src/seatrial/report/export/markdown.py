"""A Markdown table of figures, for a paper or a merge request; numbers in units that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import cast

from seatrial.model.results.figure_result import Exported, ExportedRow
from seatrial.model.spelling import show
from seatrial.model.units import Unit

_HEAD = ("Benchmark", "Parameters", "Figure", "Median", "95 % interval", "Repeats", "Outcome")


def markdown_text(exported: Exported) -> str:
    """The table, in the form that GitHub and pandoc read."""
    lines = [_line(_HEAD), _line("---" for _ in _HEAD)]
    lines += [_line(_cells(row)) for row in exported.rows]
    return "\n".join(lines) + "\n"


def _cells(row: ExportedRow) -> tuple[str, ...]:
    parameters = json.loads(row.figure_parameters if row.figure else row.parameters)
    shown = " ".join(f"{name}={_value(value)}" for name, value in parameters.items())
    if not row.figure or row.median is None:
        return row.benchmark, shown, "", "", "", "", f"{row.outcome}: {row.reason}" if row.reason else row.outcome
    unit = cast(Unit, row.unit)
    interval = ""
    if row.ci95_low is not None and row.ci95_high is not None:
        interval = f"{show(row.ci95_low, unit)} to {show(row.ci95_high, unit)}"
    median = f"{show(row.median, unit)} {'↑' if row.better == 'higher' else '↓'}"
    return row.benchmark, shown, row.figure, median, interval, str(row.n_repeats), row.outcome


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return escape(re.sub(r"([\\|`\[\]*])", r"\\\1", plain), quote=False)
