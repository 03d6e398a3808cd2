"""Samples in a record's line, which stay in their file until they are needed."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

import msgspec

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.results.record_shape import MOST_SAMPLES
from seatrial.model.results.sample import ColumnedSamples, Sample, SampleColumns, samples_of
from seatrial.store.files import opened_file, reason

KEY = b'":'
"""What ends a key, and is nowhere else in JSON without spaces but in a text with a quotation mark."""

_N_KEYS = len(SampleColumns.__struct_fields__)
_decoder = msgspec.json.Decoder(list[SampleColumns])
_encoder = msgspec.json.Encoder()


def decoded_groups(packed: bytes) -> list[SampleColumns]:
    """The groups in the text of a line that is known to be valid; none is empty."""
    return [group for group in _decoder.decode(packed) if group.n]


def checked_groups(groups: Sequence[SampleColumns], packed: bytes) -> tuple[Sequence[SampleColumns], int]:
    """Those of the groups in a text that are not empty, and the number of their samples. Raises ValueError if a column
    has another length than stated, or the text is not as usual."""
    total, n_keys = 0, _N_KEYS * len(groups)
    for group in groups:
        n, work, extra = group.n, group.work, group.extra
        n_keys += len(group.point) + len(work) + len(extra)
        for column in (group.i, group.elapsed_s, *work.values(), *extra.values()):
            if type(column) is not list:
                n_keys += 1
            elif len(column) != n:
                raise ValueError("the length of a column is wrong")
        total += n
    if total > MOST_SAMPLES or not _has_each_key_once(packed, n_keys):
        raise ValueError("too many samples, or a key is there twice")
    return [group for group in groups if group.n], total


def _has_each_key_once(text: bytes, n_keys: int) -> bool:
    """Whether a JSON text with so many different keys has none of them twice; False if this is not seen at once."""
    if text.count(b":") == n_keys:  # no text in it has a colon
        return True
    return text.count(KEY) == n_keys and not has_spaces(text)


def has_spaces(text: bytes) -> bool:
    """Whether there may be spaces before a colon, which hide a key from being counted."""
    return b'" ' in text or b"\t" in text or b"\r" in text


def layout_text(groups: Sequence[SampleColumns]) -> bytes:
    """Equal for groups with the same series and points, of equal types, in the same order."""
    return _encoder.encode([(group.series, group.point) for group in groups])


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
            raise changed(reader.path(self._file))
        return decoded_groups(packed)  # checked when its line was

    @property
    def position(self) -> tuple[int, int, int]:
        """Offset in the file, length and CRC-32 of their text."""
        return self._offset, self._length, self._checksum


def changed(path: Path) -> StoreError:
    """A file of records is not what it was when its lines were checked."""
    return StoreError(f"{path} changed while it was read", "start the same command again when nothing writes to it")
