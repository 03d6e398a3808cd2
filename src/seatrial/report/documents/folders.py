"""`seatrial.folders/1`: results folders as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from seatrial.model.json_shape import Count, From, filled, shape


@shape(None)
class FolderJson(TypedDict):
    """One results folder. Times are in seconds since the epoch; null: it has no repeat."""

    path: str
    name: Annotated[str, "empty: it has no name"]
    tags: list[str]
    notes: list[str]
    benchmarks: list[str]
    hosts: list[str]
    studies: Count
    experiments: Count
    ok: Annotated[Count, "experiments whose outcome is ok"]
    repeats: Count
    first_s: Annotated[float | None, From("first_t0")]
    last_s: Annotated[float | None, From("last_t0")]
    damaged: Annotated[Count, "lines and files that were rejected"]
    trash: Annotated[list[str], "what was dropped and can be restored"]


@shape(None)
class FoldersJson(TypedDict):
    """Results folders."""

    schema: Literal["seatrial.folders/1"]
    folders: list[FolderJson]


def folders_document(found: Sequence[Any]) -> FoldersJson:
    """The document."""
    return FoldersJson(schema="seatrial.folders/1", folders=[filled(FolderJson, one) for one in found])
