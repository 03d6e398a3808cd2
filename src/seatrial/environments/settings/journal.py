"""What was changed on this machine, on disk before it is changed: a file for each guard, below the user's state folder.

A line holds the host and boot, and for each file its old value and ours. Lines are on the disk (fsync(2)) before a
value is written, so that the next start can put back what a killed guard has not. After a reboot, nothing is changed
any more. A journal is trusted only if it is ours alone, and only for files that seatrial changes (knobs.py): replayed
by root, it writes them.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.processes.file_lock import lock
from seatrial.processes.own_folder import boot_id, own_name

_MOST_BYTES = 16 << 20


class Entry(Frozen):
    """A file, what it held, and what was written into it."""

    path: str
    old: str
    new: str


class Journal:
    """The journal of one guard, which holds its lock while it lives."""

    def __init__(self, file: Path) -> None:
        """Create it. Raises OSError. It has its name once it is locked: a start meanwhile would take it for one that a
        killed guard has left."""
        self.file = file
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        self._descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND, 0o600)
        lock(self._descriptor)
        fresh.rename(file)
        folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def add(self, entries: Sequence[Entry]) -> None:
        """Write down what is about to be changed. Raises OSError."""
        line = {
            "v": 1,
            "host": socket.gethostname(),
            "boot": boot_id(),
            "changes": [[e.path, e.old, e.new] for e in entries],
        }
        data = (json.dumps(line) + "\n").encode()
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)

    def clear(self) -> None:
        """All is as it was; more may be changed. Raises OSError."""
        os.ftruncate(self._descriptor, 0)

    def remove(self) -> None:
        """All is as it was."""
        with suppress(OSError):
            self.file.unlink()
        os.close(self._descriptor)


class Left(Frozen):
    """A journal whose guard has ended without removing it, or that still guards (`is_guarded`)."""

    file: Path
    is_guarded: bool
    entries: tuple[Entry, ...]


def folder() -> Path:
    """Where journals are."""
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state and state.startswith("/") else Path.home() / ".local" / "state"
    return base / "seatrial" / "settings"


def new_file() -> Path:
    """The file of a new journal."""
    return folder() / f"{own_name()}.jsonl"


def left_here() -> list[Left]:
    """The journals of this host and boot. Those of an earlier boot of this host are removed: its settings are gone."""
    try:
        files = sorted(file for file in folder().iterdir() if file.suffix == ".jsonl")
    except OSError:
        return []
    return [found for file in files for found in _read(file)]


def _read(file: Path) -> Iterator[Left]:
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if not is_ours or status.st_size > _MOST_BYTES:
            return
        is_guarded = not lock(descriptor)
        content = os.pread(descriptor, status.st_size, 0).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
    known = [line for text in content.splitlines() if (line := _line(text)) is not None]
    if any(host != socket.gethostname() for host, _, _ in known):
        return  # of another node that shares this folder
    if known and all(at != boot_id() for _, at, _ in known):
        file.unlink(missing_ok=True)
        return
    yield Left(file, is_guarded, tuple(entry for _, at, entries in known if at == boot_id() for entry in entries))


def _line(text: str) -> tuple[str, str, list[Entry]] | None:
    """Host, boot and entries; None for a line that is torn."""
    try:
        found = json.loads(text)
        changes = [Entry(*map(str, change)) for change in found["changes"]]
        return str(found["host"]), str(found["boot"]), changes
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
