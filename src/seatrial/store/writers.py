"""Who writes to a results folder, how records are written, and those that other processes add meanwhile.

Processes that add records share a lock, one that renumbers or removes them has it alone (docs/adr/0029). The lock is
flock(2) on an empty file in the folder, so it ends with its process, however that ends, and containers that share the
folder see it. On file systems without locks, and in folders that cannot be written, nobody has it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seatrial.errors import ProtocolError, StoreError, UsageError
from seatrial.model.machine.host_list import host_in_names
from seatrial.model.results.record import RepeatRecord, decode, encode
from seatrial.processes.file_lock import lock
from seatrial.store.files import is_local, is_remote, open_new, opened_file, opened_folder
from seatrial.store.folder import ResultsFolder

_FILE = ".writers"
_LONGEST_WAIT_S = 60.0
_EACH_S = 0.1


class AddsRecords:
    """The shared lock of a process that adds records, until `end`.

    Waits for a merge or drop in the folder. Raises UsageError if that takes longer than a minute.
    """

    def __init__(self, folder: Path) -> None:
        self._file = _opened(folder)
        until = time.monotonic() + _LONGEST_WAIT_S
        try:
            while self._file >= 0 and not lock(self._file, fcntl.LOCK_SH):
                if time.monotonic() > until:
                    raise UsageError(
                        f"another process merges into {folder}, or drops or restores experiments in it",
                        "wait until it has ended; then start the same command again",
                    )
                time.sleep(_EACH_S)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Release the lock."""
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # a late error of the file system: nothing was written to this file
                os.close(file)

    def __del__(self) -> None:
        self.end()


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """The lock of a process that nobody may add records beside; yields whether the file system has locks.

    Raises UsageError if a process adds records.
    """
    file = _opened(folder)
    try:
        if file >= 0 and not lock(file):
            raise UsageError(
                f"a run is active in {folder}, or another process changes it", "wait until it ends, and try again"
            )
        yield file >= 0 and _has_locks(file)
    finally:
        if file >= 0:
            os.close(file)


def _opened(folder: Path) -> int:
    """The descriptor of the file; -1 if it cannot be opened, or is not a plain file."""
    usual = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # another user's file may only be readable
        try:
            with opened_folder(folder) as top:
                file = os.open(_FILE, flags | usual, 0o666, dir_fd=top)
        except OSError:
            continue
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
    return -1


def _has_locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # we have it already, if anyone can
    except OSError:
        return False
    return True


_SYNC_EVERY_S = 1.0
"""On a local disk. Each takes 2 to 7 ms there, and removing files right after it as long again."""


class RecordWriter:
    """Appends to `records/<host>-<pid>-<start>.jsonl`; the file is created with the first record.

    A line is written completely before `append` returns, so `kill -9` cannot lose it. If the disk is full, a partial
    line is removed, so the file stays valid. A network file system may report a full quota or a lost file only when it
    writes back: there, a record counts once the server has it. On a local one, all processes see a line at once, and
    it is brought to the disk when a second has passed since the last time, or at the end.

    From its start until it is closed, nothing renumbers or removes records (`store.writers`). So whoever claims numbers
    makes the writer first, and then reads which ones are recorded. Raises UsageError if a merge takes too long.
    """

    def __init__(self, folder: ResultsFolder, host: str) -> None:
        self._root = folder.path
        self._adds = AddsRecords(folder.path)
        self.path: Path = folder.path / "records" / f"{host_in_names(host)}-{os.getpid()}-{time.time_ns()}.jsonl"
        self._descriptor: int | None = None
        self._size = 0
        self._is_remote = is_remote(self.path.parent)
        self._is_local = is_local(self.path.parent)
        self._synced_s = -_SYNC_EVERY_S

    def append(self, record: RepeatRecord) -> None:
        """Write one record. Raises StoreError; earlier records stay."""
        line = encode(record)
        try:
            if self._descriptor is None:
                self._descriptor = open_new(self._root, "records", self.path.name)
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            if self._is_remote:
                os.fsync(self._descriptor)
        except OSError as error:
            if self._descriptor is not None:
                with suppress(OSError):  # else the torn line stays, which readers ignore
                    os.ftruncate(self._descriptor, self._size)
            raise StoreError(
                f"the record {self.path} cannot be written: {error.strerror or error}",
                "free some space or give another folder with --results, then start the same command again:"
                " finished repeats are kept",
            ) from error
        self._size += len(line)

    def sync(self) -> None:
        """Bring the records to the server, where other hosts see them; to a local disk, once a second. Raises
        StoreError."""
        is_early = self._is_local and time.monotonic() - self._synced_s < _SYNC_EVERY_S
        if self._descriptor is None or is_early:
            return
        try:
            os.fdatasync(self._descriptor)
            self._synced_s = time.monotonic()
        except OSError as error:
            raise StoreError(
                f"the record {self.path} cannot be written: {error.strerror or error}",
                "free some space or give another folder with --results",
            ) from error

    def close(self) -> None:
        """Close the file, if it was created. Raises StoreError if its server or disk did not take all of it."""
        descriptor, self._descriptor = self._descriptor, None
        try:
            if descriptor is None:
                return
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(
                f"the record {self.path} may not be complete: {error.strerror or error}",
                "start the same command again: repeats that are missing are made again",
            ) from error
        finally:
            self._adds.end()


_LONGEST_REPEAT_S = 2 * 86400.0
"""A file that has not changed for so long has no writer any more: a program ends within a day."""


class RecordWatch:
    """Follows the files of `records/`, but for the one named `own`, from the moment it is made; read the folder after
    that, so that none is missed."""

    def __init__(self, folder: ResultsFolder, own: str = "") -> None:
        self._folder: Path = folder.path / "records"
        self._read: dict[str, int] = {}
        self._over: set[str] = {own}
        for name in self._names():
            if name in self._over:
                continue
            try:
                found = (self._folder / name).lstat()
            except OSError:
                continue
            if time.time() - found.st_mtime > _LONGEST_REPEAT_S:
                self._over.add(name)
            else:
                self._read[name] = self._whole(name, found.st_size)

    def new(self) -> list[RepeatRecord]:
        """The records added since the last call, of the other processes; some may be older. Raises
        StoreError."""
        found: list[RepeatRecord] = []
        for name in self._names():
            if name not in self._over:
                found += self._new_of(name)
        return found

    def numbers(self, experiment: str, known: set[int]) -> set[int]:
        """`known`, the recorded repeats of an experiment, with those added since the last call."""
        known |= {record.repeat for record in self.new() if record.experiment == experiment}
        return known

    def _names(self) -> list[str]:
        """Opening a folder of NFS asks the server for its content (close-to-open consistency)."""
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.suffix == ".jsonl")
        except OSError as error:
            raise StoreError(f"{self._folder} cannot be read: {error.strerror or error}") from error

    def _whole(self, name: str, size: int) -> int:
        """The size, if the file ends with a whole line, else 0: it is read again."""
        return size if size and self._bytes(name, size - 1, 1) == b"\n" else 0

    def _new_of(self, name: str) -> list[RepeatRecord]:
        start = self._read.get(name, 0)
        lines = self._bytes(name, start).split(b"\n")
        self._read[name] = start + sum(len(line) + 1 for line in lines[:-1])  # a torn line is read again
        records = []
        for line in lines[:-1]:
            try:
                records.append(decode(line))
            except ProtocolError:
                continue  # whoever reads the whole folder reports it
        return records

    def _bytes(self, name: str, start: int, size: int | None = None) -> bytes:
        """Bytes of a plain file; nothing of anything else."""
        try:
            with opened_file(self._folder, name) as stream:
                stream.seek(start)
                return stream.read() if size is None else stream.read(size)
        except OSError:
            return b""
