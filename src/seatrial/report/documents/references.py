"""The key `references` of `seatrial.list/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatrial.model.reference import Reference


def references_document(references: Iterable[Reference]) -> list[dict[str, Any]]:
    """One object for each reference; the value in the SI unit beside it, never with an interval."""
    return [
        {
            "id": reference.id,
            "benchmark": reference.benchmark,
            "figure": reference.figure,
            "value": reference.value,
            "unit": reference.unit,
            "better": reference.better.value,
            "qualifier": reference.qualifier.value or None,
            "parameters": dict(reference.parameters),
            "configuration": dict(reference.configuration),
            "source": reference.source,
            "year": reference.year,
            "remark": reference.remark,
            "contradicts": list(reference.contradicts),
        }
        for reference in references
    ]
