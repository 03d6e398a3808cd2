"""Blocks of a report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.report.blocks import Aspects, Block, Chart, Detail, Heading, Lines, Section, Table
from seatrial.report.text.terminal import Style, joined, plain, rows_of, sentences

_MOST_ROWS = 12
"""Of the numbers of a chart; the page and the JSON have all."""


def sections_text(sections: Iterable[Section], style: Style, detail: Detail) -> str:
    """The sections that are shown in this detail. Evidence (of full detail) has its title above it."""
    shown = [one for one in sections if one.detail is Detail.USUAL or (one.detail is detail and one.detail is not None)]
    return joined(_section(one, style, detail) for one in shown)


def _section(section: Section, style: Style, detail: Detail) -> str:
    lines = [line for block in section.blocks for line in block_lines(block, style, detail)]
    if section.detail is Detail.FULL and lines:
        lines = [style.paint(plain(section.title), "heading"), *lines]
    return "\n".join(lines)


def block_lines(block: Block, style: Style, detail: Detail = Detail.FULL) -> list[str]:
    """The lines of a block; none of a text on how to read a page."""
    match block:
        case Lines():
            lead = f"{block.label}: " if block.label else "  "
            return sentences(block.texts, style, lead, "  ")
        case Heading():
            return [style.paint(plain(f"{block.subject}{f': {block.text}' if block.text else ''}"), "heading")]
        case Aspects():
            return _aspects(block, style, detail)
        case Table():
            return _table(block, style)
        case Chart():
            return _table(block.table, style, _MOST_ROWS) if block.is_listed else []
        case _:
            return []


def _aspects(block: Aspects, style: Style, detail: Detail) -> list[str]:
    shown = block.lines if detail is Detail.FULL else [line for line in block.lines if line.is_weak]
    return [
        style.paint(text, "warning") if line.is_weak else text
        for line in shown
        for text in sentences([line.text], style, f"{line.name.lower()}: ", "  ")
    ]


def _table(table: Table, style: Style, most: int | None = None) -> list[str]:
    head, *rows = rows_of(table, style)
    shown = rows if most is None or len(rows) <= most else [*rows[: most // 2], *rows[-most // 2 :]]
    lines = [style.table([head, *shown], has_head=True)] if shown else []
    return [*lines, *([f"  and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else [])]
