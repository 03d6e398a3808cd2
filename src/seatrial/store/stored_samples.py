"""Samples that stay in their file until they are needed: most analysis needs those of one repeat at a time."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import msgspec

from seatrial.errors import ProtocolError, StoreError
from seatrial.model.sample import Sample, unpack

_BLOCK = 1 << 16
"""Bytes read at once if a part follows the one before."""


class PartReader:
    """Reads parts of the files of one folder; the last file stays open, since most parts follow one another."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._descriptor = -1
        self._start = 0
        self._block = b""

    def part(self, path: Path, offset: int, length: int) -> bytes:
        """These bytes of the file; fewer if it became shorter. Raises StoreError."""
        at = offset - self._start
        if path is not self._path or at < 0 or at + length > len(self._block):
            try:
                self._read(path, offset, length)
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
            at = 0
        return self._block[at : at + length]

    def _read(self, path: Path, offset: int, length: int) -> None:
        follows = path is self._path and 0 <= offset - self._start - len(self._block) < _BLOCK
        if path is not self._path:
            self.close()
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._path = path
        self._block = os.pread(self._descriptor, max(length, _BLOCK) if follows else length, offset)
        self._start = offset

    def close(self) -> None:
        """Close the file; the next part opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._path, self._descriptor, self._start, self._block = None, -1, 0, b""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file of records, with the reader that all files of its folder share."""

    path: Path
    reader: PartReader


class StoredSamples(Sequence[Sample]):
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
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _read(self) -> list[Sample]:
        """Raises StoreError if the file is not what it was when its lines were checked."""
        packed = self._file.reader.part(self._file.path, self._offset, self._length)
        if zlib.crc32(packed) != self._checksum:
            raise StoreError(
                f"{self._file.path} changed while it was read", "start the same command again when nothing writes to it"
            )
        try:
            return unpack(msgspec.json.decode(packed))
        except (msgspec.MsgspecError, ProtocolError) as error:
            raise StoreError(f"{self._file.path} changed while it was read ({error})") from error
