"""References as text for a terminal: a block for each source, a line for each value, its remarks below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seatrial.model.results.history import Reference
from seatrial.model.spelling import arrow, settings
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)

_INTRODUCTION = (
    f"Published values, each of {ANOTHER_MACHINE}. To compare one with results: seatrial compare reference:ID DIR."
)


def references_text(references: Iterable[Reference]) -> str:
    """All references. A value that contradicts another one of its source is marked with "!"."""
    sources: dict[str, list[Reference]] = {}
    for reference in references:
        sources.setdefault(source_text(reference), []).append(reference)
    return "\n\n".join([_INTRODUCTION, *(_block(source, those) for source, those in sources.items())])


def _block(source: str, references: Sequence[Reference]) -> str:
    shared = _shared(references)
    common = [text if name == "machine" else f"{name.replace('_', ' ')}: {text}" for name, text in shared.items()]
    lines = [source, *(f"  {text}" for text in common)]
    widest_id = max(len(reference.id) for reference in references)
    widest_value = max(len(value_text(reference)) for reference in references)
    for reference in references:
        mark = "!" if reference.contradicts else " "
        what = " ".join(filter(None, (reference.benchmark, reference.figure, settings(reference.parameters))))
        value = f"{value_text(reference).ljust(widest_value)} {arrow(reference.better)}"
        lines.append(f"{mark} {reference.id.ljust(widest_id)}  {value}  {what}")
        machine = "" if "machine" in shared else machine_of(reference)
        configuration = configuration_text(reference, without=shared)
        lines += [f"      {note}" for note in (machine, configuration, reference.remark) if note]
        if reference.contradicts:
            lines.append(f"      {contradiction_text(reference)}")
    return "\n".join(lines)


def _shared(references: Sequence[Reference]) -> Mapping[str, str]:
    """The configuration that all references of a source have in common, without `of` and `over`."""
    first = references[0].configuration
    return {
        name: text
        for name, text in first.items()
        if name not in ("of", "over") and all(other.configuration.get(name) == text for other in references)
    }
