"""The published values that a study names, as a section of its page and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen
from seatrial.model.reference import Reference
from seatrial.model.study import Study
from seatrial.references.loader import all_references
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.section import Section
from seatrial.report.units import arrow, settings

_RULE = (
    "What others measured for the same question on other machines, without intervals: compare directions and sizes "
    "with the verdicts, not the values themselves."
)


_MOST_LINES = 4
"""Of one source on a terminal."""


class Source(Frozen):
    """The values of one source, in the order of the study."""

    name: str
    references: Sequence[Reference]


def published_sources(study: Study) -> Sequence[Source]:
    """The published values of a study by source; ids that are not known here (a results folder of another site) are
    left out."""
    known = {reference.id: reference for reference in all_references()}
    sources: dict[str, list[Reference]] = {}
    for reference in filter(None, map(known.get, study.references)):
        sources.setdefault(_source(reference), []).append(reference)
    return [Source(name, those) for name, those in sources.items()]


def published_sections(study: Study) -> list[Section]:
    """One section with a table for each source; none if the study names no value."""
    tables = [_table(source) for source in published_sources(study)]
    if not tables:
        return []
    return [Section("published", "Published values", "published", {"rule": _RULE, "tables": tables})]


def published_lines(study: Study) -> list[tuple[str, str]]:
    """(What stands before it and below which it is wrapped, text): a line for each source and for its first values."""
    lines = []
    for source in published_sources(study):
        lines.append(("published: ", f"{source.name} ({ANOTHER_MACHINE})"))
        for reference in source.references[:_MOST_LINES]:
            value = f"{reference.benchmark} {reference.figure} {value_text(reference)} {arrow(reference.better)}"
            about = "; ".join(filter(None, (_with(reference), f"reference {reference.id}")))
            lines.append(("  ", f"{value}: {about}"))
        if len(source.references) > _MOST_LINES:
            lines.append(("  ", f"and {len(source.references) - _MOST_LINES} more, on the page"))
    return lines


def _table(source: Source) -> Table:
    columns = [Column("What"), Column("Published", numeric=True), Column("With"), Column("Remark"), Column("Reference")]
    rows = [
        [
            Cell(f"{reference.benchmark} {reference.figure}"),
            Cell(f"{value_text(reference)} {arrow(reference.better)}", reference.value),
            Cell(_with(reference)),
            Cell(
                "; ".join(filter(None, (reference.remark, contradiction_text(reference)))),
                tone="remark-cell" if reference.contradicts else "",
            ),
            Cell(reference.id),
        ]
        for reference in source.references
    ]
    return Table(source.name, columns, rows)


def _with(reference: Reference) -> str:
    return "; ".join(filter(None, (configuration_text(reference), settings(reference.parameters))))


def _source(reference: Reference) -> str:
    return ": ".join(filter(None, (source_text(reference), machine_of(reference))))
