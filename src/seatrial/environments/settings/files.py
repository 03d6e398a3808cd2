"""Settings that are files of one value, and those of GPUs: reading, writing, and putting back what they held."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seatrial.environments.settings.gpus import GPU_SETTING, read_gpu_setting, write_gpu_setting
from seatrial.environments.settings.journal import Entry
from seatrial.model.frozen import Frozen

_MOST_BYTES = 4096


class Undone(Frozen):
    """What was put back, and what was not: path -> why."""

    restored: tuple[str, ...]
    kept: dict[str, str]


def read_setting(path: str, root: Path) -> str | None:
    """What its line holds; None for a setting that cannot be read. Raises OSError."""
    if GPU_SETTING.fullmatch(path):
        return read_gpu_setting(path)
    with (root / path.lstrip("/")).open("rb") as file:
        return file.read(_MOST_BYTES).partition(b"\n")[0].decode("ascii", "replace").strip()


def write_setting(path: str, value: str, root: Path) -> None:
    """Write a line in one call, as sysfs takes it: there is no moment at which the file has neither value. Raises
    OSError."""
    if GPU_SETTING.fullmatch(path):
        write_gpu_setting(path, value)
        return
    descriptor = os.open(root / path.lstrip("/"), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{value}\n".encode())
    finally:
        os.close(descriptor)


def undo(entries: Sequence[Entry], root: Path) -> Undone:
    """Put back what each file held before its first change, the last file first, where a value that we wrote or found
    meanwhile still stands: an earlier attempt may have ended anywhere. What cannot be read is put back in any case. A
    file that does not take its value before another one has its own (the ends of a range) is tried again."""
    first: dict[str, str] = {}
    ours: dict[str, set[str]] = {}
    for entry in entries:
        first.setdefault(entry.path, entry.old)
        ours.setdefault(entry.path, set()).update((entry.old, entry.new))
    restored: dict[str, None] = {}
    kept: dict[str, str] = {}
    for path in (*reversed(first), *reversed(first)):
        try:
            now = read_setting(path, root)
            if now is None and path in restored:
                continue
            if now is None or (now != first[path] and now in ours[path]):
                write_setting(path, first[path], root)
                now = read_setting(path, root)
                restored[path] = None
        except OSError as error:
            kept[path] = f"cannot be written: {error.strerror or error}"
            continue
        kept.pop(path, None)
        if now is not None and now != first[path]:
            by_whom = f"still; it was {first[path]!r}" if now in ours[path] else "which somebody else has set"
            kept[path] = f"is {now!r}, {by_whom}"
    return Undone(tuple(path for path in restored if path not in kept), kept)
