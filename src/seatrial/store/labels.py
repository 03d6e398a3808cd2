"""Labels of a results folder: its name, tags and notes. Each change is a file of its own, written once."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import ClassVar, Literal

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_record import record_of
from seatrial.model.json_shape import Sparse
from seatrial.model.strict_json import parse_json
from seatrial.store.files import make_folder, names, read_file, reason, write_once
from seatrial.store.folder import ResultsFolder

FOLDER = "labels"
_MOST_B = 1 << 20
_MOST_CHANGES = 100_000


class _Change(Frozen):
    """One change: what is given is set, added or removed."""

    v: ClassVar[Literal[1]] = 1
    at: float
    name: Sparse[str | None] = None
    add: Sparse[tuple[str, ...]] = ()
    remove: Sparse[tuple[str, ...]] = ()
    note: Sparse[str | None] = None


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
            change = record_of(_Change, parse_json(read_file(folder.path, FOLDER, file, most=_MOST_B)))
        except (StoreError, ValueError) as error:
            damaged.append(f"{FOLDER}/{file}: {error}")
            continue
        name = name if change.name is None else change.name
        tags |= dict.fromkeys(change.add)
        for tag in change.remove:
            tags.pop(tag, None)
        if change.note is not None:
            notes.append((change.at, change.note))
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
    change = _Change(time.time(), name, tuple(add), tuple(remove), note)
    file = f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    try:
        make_folder(folder.path, FOLDER)
        write_once(folder.path, FOLDER, file, data=json.dumps(plain(change)).encode() + b"\n")
    except OSError as error:
        raise StoreError(f"{folder.path / FOLDER} cannot be written: {reason(error)}") from error
