"""A folder that only we can write to, with a lock, for what outlives the process that made it: a cluster, a guest."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from seatrial.errors import BusyError, StoreError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain, record_of
from seatrial.processes.file_lock import lock

STATE = "state.json"
"""What is known of what runs: a JSON file, written when it has come up."""
_VERSION = 1
_STILL_LOCKED_S = 2.0
"""A program that a killed process was just starting holds the lock until it has replaced that process's image."""
T = TypeVar("T", bound=Frozen)


class OwnedFolder(Frozen):
    """The folder of one kind of thing: `what` it is, the command of seatrial that brings it up and down, the variable
    that names the folder, and the longest path, since sockets in it have at most 107 characters. `others`: who must not
    write there. `last`: the file in it that finds processes, and is removed last."""

    what: str
    command: str
    variable: str
    longest_path: int
    others: str
    last: str

    def named(self, variables: Mapping[str, str]) -> Path | None:
        """The folder that the variable names. Raises UsageError."""
        given = variables.get(self.variable)
        if not given:
            return None
        path = Path(given)
        if not path.is_absolute() or len(str(path)) > self.longest_path or not given.isprintable():
            todo = f"it must be an absolute path of at most {self.longest_path} characters"
            raise UsageError(f"${self.variable} is {given!r}", todo)
        return path

    def already_there(self, path: Path) -> UsageError:
        """The error of a second one."""
        shown, ended = f"seatrial {self.command} status", f"seatrial {self.command} down"
        return UsageError(f"a {self.what} is already there, in {path}", f"{shown} shows it, {ended} ends it")

    def is_there(self, path: Path) -> bool:
        """Whether there is one. Raises UsageError if others could have written there."""
        try:
            found = path.lstat()
        except FileNotFoundError:
            return False
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022
        if not is_ours:
            why = f"{path} is not a {self.what}'s folder: {self.others} can write there"
            raise UsageError(why, f"check ${self.variable}, or remove it")
        return True

    @contextmanager
    def new(self, path: Path, mode: int) -> Iterator[None]:
        """Make the folder, and hold its lock. Raises UsageError if there is one, StoreError."""
        try:
            path.mkdir(mode=mode)
            path.chmod(mode)
        except FileExistsError:
            raise self.already_there(path) from None
        except OSError as error:
            raise StoreError(f"the {self.what}'s folder {path} cannot be made: {error.strerror}") from error
        with self._locked(path):
            yield

    @contextmanager
    def existing(self, path: Path) -> Iterator[bool]:
        """Hold the lock of the folder; False if there is none. Raises UsageError if others could have written there,
        BusyError if a process is bringing it up or down."""
        if not self.is_there(path):
            yield False
            return
        with self._locked(path):
            yield path.exists()

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not lock(descriptor, wait_s=_STILL_LOCKED_S):
                raise BusyError(
                    f"another seatrial process is bringing the {self.what} in {path} up or down",
                    f"wait for it, or end it and run seatrial {self.command} down",
                )
            yield
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Remove the folder, the file that finds processes last. Raises StoreError."""
        try:
            for entry in path.iterdir():
                if entry.name != self.last:
                    shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            (path / self.last).unlink(missing_ok=True)
            path.rmdir()
        except OSError as error:
            raise StoreError(f"{path} cannot be removed: {error.strerror} ({error.filename})", "try again") from error


def write_state(folder: Path, state: Frozen) -> None:
    """It is complete, with this state."""
    write_synced(folder / STATE, json.dumps({"v": _VERSION, **plain(state)}, indent=1))


def read_state(folder: Path, kind: type[T]) -> T | None:
    """The state of what is in this folder; None if it has not come up, or its file is damaged."""
    try:
        document = json.loads((folder / STATE).read_text())
        return record_of(kind, document) if document["v"] == _VERSION else None
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None


def write_synced(path: Path, text: str) -> None:
    """Write a file whole or not at all; on disk when this returns."""
    new = path.with_name(f".{path.name}")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
