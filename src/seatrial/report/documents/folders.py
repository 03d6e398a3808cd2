"""`seatrial.folders/1`: results folders as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from seatrial.analysis.folder import FolderSummary
from seatrial.model.json_object import filled
from seatrial.model.json_shape import Json, shape


@shape(None)
class FoldersJson(TypedDict):
    """Results folders."""

    schema: Literal["seatrial.folders/1"]
    folders: list[FolderSummary]


def folders_document(found: Sequence[FolderSummary]) -> Json:
    """The document."""
    return filled(FoldersJson, None, folders=found)
