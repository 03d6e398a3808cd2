"""The writer of records: one file per measuring process, a line per finished repeat."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from seatrial.errors import StoreError
from seatrial.model.record import RepeatRecord, encode
from seatrial.store.files import open_new
from seatrial.store.folder import ResultsFolder


class RecordWriter:
    """Appends to `records/<host>-<pid>-<start>.jsonl`; the file is created with the first record.

    A line is written completely before `append` returns, so `kill -9` cannot lose it. If the disk is full, a partial
    line is removed, so the file stays valid.
    """

    def __init__(self, folder: ResultsFolder, host: str) -> None:
        self._root = folder.path
        safe_host = re.sub(r"[^A-Za-z0-9._-]", "_", host) or "host"
        self.path: Path = folder.path / "records" / f"{safe_host}-{os.getpid()}-{time.time_ns()}.jsonl"
        self._descriptor: int | None = None
        self._size = 0

    def append(self, record: RepeatRecord) -> None:
        """Write one record. Raises StoreError; earlier records stay."""
        line = encode(record)
        try:
            if self._descriptor is None:
                self._descriptor = open_new(self._root, "records", self.path.name)
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
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

    def close(self) -> None:
        """Close the file, if it was created."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
