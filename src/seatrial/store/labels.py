"""Labels of a results folder: its name, tags and notes. Each change is a file of its own, written once."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import check_shape
from seatrial.model.strict_json import parse_json
from seatrial.store.files import make_folder, names, read_file, reason, write_once
from seatrial.store.folder import ResultsFolder

FOLDER = "labels"
_MOST_B = 1 << 20
_MOST_CHANGES = 100_000


class ChangeJson(TypedDict):
    """One change: what is given is set, added or removed."""

    v: Literal[1]
    at: float
    name: NotRequired[str]
    add: NotRequired[list[str]]
    remove: NotRequired[list[str]]
    note: NotRequired[str]


class Labels(Frozen):
    """The labels in force. `notes`: (seconds since the epoch, text), oldest first."""

    name: str = ""
    tags: tuple[str, ...] = ()
    notes: tuple[tuple[float, str], ...] = ()
    damaged: tuple[str, ...] = ()


def read_labels(folder: ResultsFolder) -> Labels:
    """The labels of a folder. Files that are damaged are left out and reported."""
    name, tags, notes, damaged = "", dict[str, None](), list[tuple[float, str]](), list[str]()
    try:
        listed = names(folder.path, FOLDER, suffix=".json")[:_MOST_CHANGES]
    except StoreError as error:
        return Labels(damaged=(error.message,))
    for file in listed:  # their names begin with the time
        try:
            change = parse_json(read_file(folder.path, FOLDER, file, most=_MOST_B))
            check_shape(ChangeJson, change)
        except (StoreError, ValueError) as error:
            damaged.append(f"{FOLDER}/{file}: {error}")
            continue
        name = change.get("name", name)
        tags |= dict.fromkeys(change.get("add", ()))
        for tag in change.get("remove", ()):
            tags.pop(tag, None)
        if "note" in change:
            notes.append((change["at"], change["note"]))
    return Labels(name, tuple(tags), tuple(notes), tuple(damaged))


def change_labels(
    folder: ResultsFolder,
    *,
    name: str | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    note: str | None = None,
) -> None:
    """Record a change. Raises StoreError."""
    change: ChangeJson = {"v": 1, "at": time.time()}
    if name is not None:
        change["name"] = name
    if add:
        change["add"] = list(add)
    if remove:
        change["remove"] = list(remove)
    if note is not None:
        change["note"] = note
    file = f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    try:
        make_folder(folder.path, FOLDER)
        write_once(folder.path, FOLDER, file, data=json.dumps(change).encode() + b"\n")
    except OSError as error:
        raise StoreError(f"{folder.path / FOLDER} cannot be written: {reason(error)}") from error
