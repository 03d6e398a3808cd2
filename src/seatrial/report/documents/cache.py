"""`seatrial.cache/1`: what is kept below the home folder, or was removed from there, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.environments.cache_contents import Kept
from seatrial.model.json_object import filled
from seatrial.model.json_shape import Json, shape
from seatrial.store.cache import cache_folder


@shape(None)
class CacheJson(TypedDict):
    """What is kept of each kind."""

    schema: Literal["seatrial.cache/1"]
    folder: Annotated[str, "the cache: $SEATRIAL_CACHE, else seatrial in $XDG_CACHE_HOME or ~/.cache"]
    kinds: list[Kept]
    users: Annotated[list[str], "running commands that may use the cache"]
    removed: NotRequired[Annotated[bool, "of `cache clean`: whether it was removed (false: --dry-run)"]]
    stays: NotRequired[Annotated[list[str], "of `cache clean`: what was not removed, and why"]]


def cache_document(
    found: Sequence[Kept], users: Sequence[str], *, stays: Sequence[str] = (), removed: bool | None = None
) -> Json:
    """The document. `removed`: None for `cache list`."""
    cleaned = {} if removed is None else {"removed": removed, "stays": list(stays)}
    return filled(CacheJson, None, folder=str(cache_folder()), kinds=found, users=list(users), **cleaned)
