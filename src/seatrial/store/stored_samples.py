"""Samples that stay in their file until they are needed: most analysis needs those of one repeat at a time."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.sample import Sample
from seatrial.model.sample_columns import ColumnedSamples, SampleColumns, samples_of
from seatrial.store.files import opened_file, reason
from seatrial.store.sample_groups import decoded_groups

_BLOCK = 1 << 16
"""Bytes read at once if a part follows the one before."""


class PartReader:
    """Reads parts of the record files of one folder; the last file stays open, since most parts follow one another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: RecordFile | None = None
        self._descriptor = -1
        self._start = 0
        self._block = b""

    def part(self, file: RecordFile, offset: int, length: int) -> bytes:
        """These bytes of the file; fewer if it became shorter. Raises StoreError."""
        at = offset - self._start
        if file is not self._file or at < 0 or at + length > len(self._block):
            try:
                self._read(file, offset, length)
            except OSError as error:
                raise StoreError(f"{self.path(file)} cannot be read: {reason(error)}") from error
            at = 0
        return self._block[at : at + length]

    def path(self, file: RecordFile) -> Path:
        """Where the file is, for messages."""
        return self._folder / "records" / file.name

    def _read(self, file: RecordFile, offset: int, length: int) -> None:
        follows = file is self._file and 0 <= offset - self._start - len(self._block) < _BLOCK
        if file is not self._file:
            self.close()
            with opened_file(self._folder, "records", file.name) as stream:
                self._descriptor = fcntl.fcntl(stream.fileno(), fcntl.F_DUPFD_CLOEXEC, 0)
            self._file = file
        self._block = os.pread(self._descriptor, max(length, _BLOCK) if follows else length, offset)
        self._start = offset

    def close(self) -> None:
        """Close the file; the next part opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._file, self._descriptor, self._start, self._block = None, -1, 0, b""

    def __del__(self) -> None:
        self.close()


class RecordFile(Frozen, eq=False):
    """A file of records, with the reader that all files of its folder share."""

    name: str
    reader: PartReader


class StoredSamples(ColumnedSamples):
    """The samples of one repeat, decoded from the file each time they are used."""

    __slots__ = ("_checksum", "_file", "_length", "_n", "_offset")

    def __init__(self, file: RecordFile, offset: int, length: int, checksum: int, n: int) -> None:
        self._file = file
        self._offset = offset
        self._length = length
        self._checksum = checksum
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._read())

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        return self._read()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredSamples) and (self._checksum, self._length) != (other._checksum, other._length):
            return False  # one writer writes equal samples as equal text
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # not hashable, as lists are not

    def _read(self) -> list[Sample]:
        return [sample for group in self.columns() for sample in samples_of(group)]

    def columns(self) -> Sequence[SampleColumns]:
        """The samples by column. Raises StoreError if the file is not what it was when its lines were checked."""
        reader = self._file.reader
        packed = reader.part(self._file, self._offset, self._length)
        if zlib.crc32(packed) != self._checksum:
            raise StoreError(
                f"{reader.path(self._file)} changed while it was read",
                "start the same command again when nothing writes to it",
            )
        return decoded_groups(packed)  # checked when its line was
