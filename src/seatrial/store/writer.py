"""The writer of records: one file per measuring process, a line per finished repeat."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from seatrial.errors import StoreError
from seatrial.model.record import RepeatRecord, encode
from seatrial.store.file_system import is_local, is_remote
from seatrial.store.files import open_new
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import AddsRecords

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
        safe_host = re.sub(r"[^A-Za-z0-9._-]", "_", host) or "host"
        self.path: Path = folder.path / "records" / f"{safe_host}-{os.getpid()}-{time.time_ns()}.jsonl"
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
