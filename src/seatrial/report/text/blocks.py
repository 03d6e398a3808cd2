"""Blocks of a report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.model.spelling import count
from seatrial.model.study.screen import with_kind
from seatrial.report.blocks import (
    Aspects,
    Block,
    Chart,
    Detail,
    Fold,
    Heading,
    Lines,
    OddOnes,
    Section,
    Table,
    Tone,
    Verdicts,
)
from seatrial.report.text.terminal import Style, joined, plain, rows_of, sentences

_MOST_VERDICTS = 6
_TONES: dict[str, Tone] = {"slower": "error", "faster": "direct", "ambiguous": "warning"}
_MOST_ODD = 10
_MOST_ROWS = 40
"""Of the numbers of a chart; the page and the JSON have all."""


def sections_text(sections: Iterable[Section], style: Style, detail: Detail) -> str:
    """The sections that are shown in this detail. Evidence (of full detail) has its title above it."""
    shown = [one for one in sections if one.detail is Detail.USUAL or (one.detail is detail and one.detail is not None)]
    return joined(section_text(one, style, detail) for one in shown)


def section_text(section: Section, style: Style, detail: Detail) -> str:
    """One section; "" without anything to print."""
    several = sum(isinstance(block, Table) for block in section.blocks) > 1
    lines = [line for block in section.blocks for line in _block(block, style, detail, has_caption=several)]
    if section.detail is Detail.FULL and lines:
        lines = [style.paint(plain(section.title), "heading"), *lines]
    return "\n".join(lines)


def _block(block: Block, style: Style, detail: Detail, *, has_caption: bool) -> list[str]:
    """The lines of a block; none of a text on how to read a page."""
    is_full = detail is Detail.FULL
    match block:
        case Lines():
            lead = f"{block.label}: " if block.label else "  "
            return sentences(block.texts, style, lead, "  ")
        case Heading():
            text = plain(": ".join(filter(None, (block.subject, block.text))))
            return style.wrapped(style.paint(text, "heading"), then="  ")
        case Aspects():
            return _aspects(block, style, is_full=is_full)
        case Verdicts():
            return _verdicts(block, style, is_full=is_full)
        case OddOnes():
            return _odd_ones(block, style, is_full=is_full)
        case Fold() if is_full:
            return [line for one in block.blocks for line in _block(one, style, detail, has_caption=has_caption)]
        case Table() if is_full or block.detail is not Detail.FULL:
            return [*([plain(block.caption)] if has_caption else []), *_table(block, style)]
        case Chart() if block.is_listed and (is_full or block.table.detail is not Detail.FULL):
            return _table(block.table, style, _MOST_ROWS)
        case _:
            return []


def _aspects(block: Aspects, style: Style, *, is_full: bool) -> list[str]:
    lines = [style.paint(plain(block.headline), "error" if block.is_weak else "heading")]
    for table in block.tables:
        if is_full or table.detail is not Detail.FULL:
            lines += [*([plain(table.caption)] if is_full else []), *_table(table, style)]
    shown = block.lines if is_full else [line for line in block.lines if line.is_weak]
    return [
        *lines,
        *(
            style.paint(text, "warning") if line.is_weak else text
            for line in shown
            for text in sentences([line.text], style, f"{line.name.lower()}: ", "  ")
        ),
    ]


def _verdicts(block: Verdicts, style: Style, *, is_full: bool) -> list[str]:
    lines = [style.paint(plain(block.counts), "heading")] if block.counts and is_full else []
    shown = block.found if is_full else block.found[:_MOST_VERDICTS]
    for one in shown:
        first, *others = style.wrapped(plain(f"{one.subject}: {one.sentence}"), f"{one.word} ", "  ")
        lines += [style.paint(one.word, _TONES.get(one.verdict, "near")) + first[len(one.word) :], *others]
        lines += sentences((one.hint, one.note) if is_full else (one.note,), style)
    more = len(block.found) - len(shown)
    return [*lines, *([f"and {count(more, 'more verdict')} (--verbose shows all)"] if more else [])]


def _odd_ones(block: OddOnes, style: Style, *, is_full: bool) -> list[str]:
    lines = []
    shown = block.found if is_full else block.found[:_MOST_ODD]
    for one in shown:
        lines += sentences([f"{with_kind(one.kind, one.title)}: {one.said}"], style, "  ", "    ")
        lines += sentences((f"also {text}" for text in one.also), style, "    ", "      ") if is_full else []
        lines += sentences([f"to do: {one.remedy}"], style, "    ", "      ")
    more = len(block.found) - len(shown)
    return [*lines, *([f"  and {more} more (--verbose shows all)"] if more else [])]


def _table(table: Table, style: Style, most: int | None = None) -> list[str]:
    head, *rows = rows_of(table, style)
    shown = rows if most is None or len(rows) <= most else [*rows[: most // 2], *rows[-most // 2 :]]
    lines = [style.table([head, *shown], has_head=True)] if shown else []
    return [*lines, *([f"  and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else [])]
