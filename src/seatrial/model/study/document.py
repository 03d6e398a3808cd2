"""A study as stored in a results folder, with the experiments of its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_record import record_of
from seatrial.model.json_shape import Json
from seatrial.model.secrets import masked_document
from seatrial.model.study.study import Study


class StudyPoint(Frozen):
    """One point: the id of its experiment, and the values of the axes as written in the study."""

    experiment: str
    benchmark: str
    given: Mapping[str, Value | None]


class KeptStudy(Frozen):
    """A study that was run on one machine (its identity, as in experiments), with its points in planned order."""

    study: Study
    machine: str
    points: tuple[StudyPoint, ...]


def study_document(kept: KeptStudy) -> Json:
    """As stored in `studies/<key>.json`. A key that was added later is absent where it changes nothing, so that a study
    keeps its key."""
    return plain(kept)


def study_from_document(document: Mapping[str, Any]) -> KeptStudy:
    """The study that `study_document` described. Raises ValueError if it is invalid."""
    return record_of(KeptStudy, document)


def study_without_secrets(study: Study) -> Study:
    """The study with secrets among its arguments masked, as it may be shown and stored."""
    return record_of(Study, masked_document(plain(study)))
