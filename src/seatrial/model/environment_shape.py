"""The shape of an environment as stored in a results folder. Other keys than these are only displayed."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from seatrial.model.declaration import StoredDeclarationJson


class _MpiJson(TypedDict):
    variables: NotRequired[dict[str, str | None] | None]


class EnvironmentJson(TypedDict):
    """What a program was built and run in, as far as its parts are used by name."""

    name: NotRequired[str]
    flags: NotRequired[list[str]]
    added_flags: NotRequired[list[str]]
    variables: NotRequired[dict[str, str | None] | None]
    settings: NotRequired[dict[str, str]]
    compiler: NotRequired[dict[str, object]]
    target: NotRequired[dict[str, object]]
    mpi: NotRequired[_MpiJson | None]
    declaration: NotRequired[StoredDeclarationJson]
