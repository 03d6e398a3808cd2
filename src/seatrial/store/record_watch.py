"""The records that processes add to a results folder while this one runs, each read once."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from seatrial.errors import ProtocolError, StoreError
from seatrial.model.results.record import RepeatRecord, decode
from seatrial.store.folder import ResultsFolder

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
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(self._folder / name, flags), "rb") as stream:
                found = os.fstat(stream.fileno())
                if not stat.S_ISREG(found.st_mode) or found.st_size <= start:
                    return b""
                stream.seek(start)
                return stream.read(found.st_size - start if size is None else size)
        except OSError:
            return b""
