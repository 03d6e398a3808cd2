"""Settings that are files of one value: reading, writing, and putting back what they held."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seatrial.environments.settings.journal import Entry
from seatrial.model.frozen import Frozen

_MOST_BYTES = 4096


class Undone(Frozen):
    """What was put back, and what was not: path -> why."""

    restored: tuple[str, ...]
    kept: dict[str, str]


def read_setting(path: str, root: Path) -> str:
    """What its line holds. Raises OSError."""
    with (root / path.lstrip("/")).open("rb") as file:
        return file.read(_MOST_BYTES).partition(b"\n")[0].decode("ascii", "replace").strip()


def write_setting(path: str, value: str, root: Path) -> None:
    """Write a line in one call, as sysfs takes it: there is no moment at which the file has neither value. Raises
    OSError."""
    descriptor = os.open(root / path.lstrip("/"), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{value}\n".encode())
    finally:
        os.close(descriptor)


def undo(entries: Sequence[Entry], root: Path) -> Undone:
    """Put back the old values, the last change first, where the value that was written still stands."""
    restored: list[str] = []
    kept: dict[str, str] = {}
    for entry in reversed(entries):
        try:
            now = read_setting(entry.path, root)
            if now == entry.old:
                continue
            if now != entry.new:
                kept[entry.path] = f"is {now!r}, which somebody else has set"
                continue
            write_setting(entry.path, entry.old, root)
            if (now := read_setting(entry.path, root)) == entry.old:
                restored.append(entry.path)
            else:
                kept[entry.path] = f"is {now!r} still; it was {entry.old!r}"
        except OSError as error:
            kept[entry.path] = f"cannot be written: {error.strerror}"
    return Undone(tuple(restored), kept)
