"""Studies as stored: what is damaged is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial.model.study.study import (
    Axis,
    Compare,
    KeptStudy,
    Study,
    StudyBenchmark,
    StudyPoint,
    study_document,
    study_from_document,
)

KEPT = KeptStudy(
    Study(
        "s", "q", (StudyBenchmark("b", {"argv": ("x", "y")}),), (Axis("n", (1, True, None)),), compare=Compare("n", 1)
    ),
    "machine",
    (StudyPoint("e", "b", {"n": None}),),
)


def stored() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(study_document(KEPT)))
    return document


def test_it_is_read_as_it_was_stored() -> None:
    assert study_from_document(stored()) == KEPT
    assert "asks_equivalence" not in stored()["study"]["compare"]


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("name", 3, r"study\.name is 3"),
        ("axes", [{"name": "n"}], r"study\.axes\[0\]"),
        ("repeat", {"precision": 0.01, "budget_s": 1.0, "maximum": 0}, "maximum"),
    ],
)
def test_what_is_damaged_is_refused_with_its_place(key: str, value: object, place: str) -> None:
    document = stored()
    document["study"][key] = value
    with pytest.raises(ValueError, match=place):
        study_from_document(document)
