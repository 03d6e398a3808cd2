"""The heads of records: what decides which repeats are still missing.

A folder may have hundreds of thousands of records, of which a run needs few in full. The line of a head has a right
checksum and the fields below; the rest of it is checked when the record is read in full. Lines of another form than
`encode` writes are decoded by `seatrial.model.results.record.decode`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal

import msgspec

from seatrial.errors import ProtocolError, StoreError
from seatrial.model.results.record import RepeatRecord, crc_tail, decode
from seatrial.model.results.sample import Outcome
from seatrial.store.files import opened_folder
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_lines import OutcomeFields, SharedOutcomes
from seatrial.store.stored_samples import PartReader, RecordFile

_TAIL = len(crc_tail(b""))
_USUAL = b'{"v":1,"experiment":"'
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class SeenHead(msgspec.Struct, gc=False):
    """The part of `seen` that a run uses; named as there."""

    block: str | None = None
    study: str | None = None
    budget_s: float | None = None
    outside_s: float | None = None
    job_repeat: str | None = None

    def get(self, name: str) -> Any:
        """What was observed under this name; None for any other."""
        return getattr(self, name, None)


class _Line(OutcomeFields, gc=False):
    """The fields of a line that are decoded."""

    v: Literal[1]
    experiment: str
    repeat: _Count
    t0: float
    wall_s: float
    seen: SeenHead


class RecordHead:
    """A record without its samples and most of what was observed. Fields and units as in `RepeatRecord`."""

    __slots__ = ("_file", "_length", "_offset", "experiment", "outcome", "repeat", "seen", "t0", "wall_s")

    def __init__(
        self, line: _Line | RepeatRecord, seen: SeenHead, outcome: Outcome, file: RecordFile, offset: int, length: int
    ) -> None:
        self.experiment = line.experiment
        self.repeat = line.repeat
        self.t0 = line.t0
        self.wall_s = line.wall_s
        self.outcome = outcome
        self.seen = seen
        self._file = file
        self._offset = offset
        self._length = length

    def full(self) -> RepeatRecord:
        """The whole record. Raises ProtocolError if the rest of its line is not as it should be or has changed,
        StoreError if the file cannot be read."""
        reader = self._file.reader
        record = decode(reader.part(self._file, self._offset, self._length))
        if (record.experiment, record.repeat) != (self.experiment, self.repeat):
            raise ProtocolError(f"{reader.path(self._file)} changed while it was read")
        return record


class _Reader:
    """Reads the heads of some experiments from the files of a folder."""

    def __init__(self, folder: ResultsFolder, experiments: Collection[str]) -> None:
        self.found: dict[str, dict[int, RecordHead]] = {key: {} for key in experiments}
        self._folder = folder
        self._reader = PartReader(folder.path)
        self._decoder = msgspec.json.Decoder(_Line)
        self._outcomes = SharedOutcomes()

    def read(self, name: str) -> None:
        """Add the heads in a file. Raises StoreError."""
        file, found = RecordFile(name, self._reader), self.found
        for offset, line in self._folder.record_lines(name):
            if line is None or not self._may_be_wanted(line):
                continue
            try:
                head = self._head(line, file, offset)
            except ProtocolError:
                continue
            own = found.get(head.experiment)
            if own is not None and head.repeat not in own:
                own[head.repeat] = head

    def _head(self, line: bytes, file: RecordFile, offset: int) -> RecordHead:
        """Raises ProtocolError if the line is not a record."""
        if line[-_TAIL:] != crc_tail(memoryview(line)[:-_TAIL]):
            raise ProtocolError("the checksum of a record is wrong")
        try:
            found = self._decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            record = decode(line)
            seen = SeenHead(**{name: record.seen.get(name) for name in SeenHead.__struct_fields__})
            return RecordHead(record, seen, record.outcome, file, offset, len(line))
        return RecordHead(found, found.seen, self._outcomes.of(found), file, offset, len(line))

    def _may_be_wanted(self, line: bytes) -> bool:
        """False if the line, written as usual, names another experiment."""
        if not line.startswith(_USUAL):
            return True
        return line[len(_USUAL) : line.find(b'"', len(_USUAL))].decode("ascii", "replace") in self.found


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without searches for cycles, which visit all that was read so far and find none: a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_heads(folder: ResultsFolder, experiments: Collection[str]) -> dict[str, list[RecordHead]]:
    """The heads of the records of these experiments in order of repeat, the first one of each repeat. Damaged lines and
    files are left out: reading the whole folder reports them."""
    reader = _Reader(folder, experiments)
    with _no_collections(), suppress(StoreError):
        for name in folder.record_files():
            with suppress(StoreError):
                reader.read(name)
    return {key: [own[repeat] for repeat in sorted(own)] for key, own in reader.found.items()}


_HOSTS = (b'"host":"', b'"hosts":["')
_MEASURED: dict[tuple[str, str], tuple[int, frozenset[str]]] = {}
"""Folder and file -> its size when it was read, and its experiments: a screen asks again for each of thousands of
nodes, each of which has written its own files."""


def measured_on_nodes(folder: ResultsFolder) -> frozenset[str]:
    """The experiments of which a record names a node: they were started. Only files that have grown since this process
    asked last are read. Damaged lines and files are left out."""
    found: set[str] = set()
    path = str(folder.path.absolute())
    with suppress(StoreError, OSError), opened_folder(folder.path, "records") as above:
        for name in folder.record_files():
            with suppress(StoreError, OSError):
                size = os.stat(name, dir_fd=above, follow_symlinks=False).st_size
                known = _MEASURED.get((path, name))
                if known is None or known[0] != size:
                    known = _MEASURED[path, name] = (size, _with_hosts(folder, name))
                found |= known[1]
    return frozenset(found)


def _with_hosts(folder: ResultsFolder, name: str) -> frozenset[str]:
    """Raises StoreError."""
    found: set[str] = set()
    for _, line in folder.record_lines(name):
        if line is None or not line.startswith(_USUAL) or not any(word in line for word in _HOSTS):
            continue
        if line[-_TAIL:] == crc_tail(memoryview(line)[:-_TAIL]):
            found.add(line[len(_USUAL) : line.find(b'"', len(_USUAL))].decode("ascii", "replace"))
    return frozenset(found)
