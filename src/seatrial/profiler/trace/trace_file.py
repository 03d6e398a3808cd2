"""The trace that the MPI profiler left of one process: the reader of its file.

The form stands in `profiler/native/trace_file.h`; version and magic are checked. Records are mapped, not read: a trace
may have millions.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import ParseError

MAGIC = 0x4341525441534553
VERSION = 1
HEADER_B = 4096
HEADER = struct.Struct("<QIIiiiIQQdQQq256s")
HEAD = struct.Struct("<QQQHHBBBB")
MESSAGES = struct.Struct("<QQiiii")
COLLECTIVE = struct.Struct("<QiII")
COMMUNICATOR = struct.Struct("<Qii")
RECORD_B = 64
BODY_B = RECORD_B - HEAD.size
NUMBERS = 8
COUNTS = 4

_TOOL = "MPI trace"
_MOST_RANKS = 1 << 24


class Kind(IntEnum):
    """What a record tells."""

    NOTHING = 0
    CALL = 1
    MESSAGES = 2
    POST = 3
    DONE = 4
    COLLECTIVE = 5
    POSTED_COLLECTIVE = 6
    COUNTS = 7
    CREATION = 8
    COMMUNICATOR = 9
    TEMPLATE = 10


class Flag(IntFlag):
    """Marks of a record."""

    SENDS = 1
    RECEIVES = 2
    TOLD = 4
    PART = 8
    OF_RECEIVES = 16
    INTER = 32
    AT_ONCE = 64


class Messages(NamedTuple):
    """What a call sent and received, by ranks of the world."""

    sent_B: int
    received_B: int
    dest: int
    send_tag: int
    source: int
    receive_tag: int


class Collective(NamedTuple):
    """A collective: bytes of one rank's block, root in the communicator (-1: none), how many counts follow, and 1 + the
    place of the record it was made with (0: none)."""

    block_B: int
    root: int
    counts: int
    made_at: int


class Communicator(NamedTuple):
    """A communicator: its id in all traces, this process's rank in it, its size."""

    id: int
    rank: int
    size: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record at its place. `begin` and `end` are ticks, 0 in parts; `waited` is in ticks; `call` is a function's
    number, 0 in parts and where the call did not return; `comm` numbers the communicators of this trace from 1."""

    place: int
    begin: int
    end: int
    waited: int
    call: int
    comm: int
    kind: Kind
    flags: int
    thread: int
    n: int
    body: bytes

    @property
    def is_part(self) -> bool:
        """Whether it belongs to the head before it of the same thread."""
        return bool(self.flags & Flag.PART)

    def messages(self) -> Messages:
        """Of records that sent or received."""
        return Messages(*MESSAGES.unpack(self.body))

    def collective(self) -> Collective:
        """Of collectives and creations."""
        return Collective(*COLLECTIVE.unpack_from(self.body))

    def communicator(self) -> Communicator:
        """Of records that tell of a communicator."""
        return Communicator(*COMMUNICATOR.unpack_from(self.body))

    def numbers(self) -> tuple[int, ...]:
        """Places of requests that completed."""
        return struct.unpack_from(f"<{self.n}I", self.body)

    def counts(self) -> tuple[int, ...]:
        """Bytes, rank after rank."""
        return struct.unpack_from(f"<{self.n}Q", self.body)


class Trace:
    """The trace of one process, mapped.

    `loaded_at_s` is seconds since the epoch; `ended` (ticks) when MPI_Finalize was called, None where it was not;
    `lost` counts the records for which there was no room.
    """

    def __init__(self, path: Path) -> None:
        """Raises ParseError for a cut file, another version, or numbers that contradict themselves; OSError."""
        self.path = path
        with path.open("rb") as file:
            head = file.read(HEADER_B)
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise self._damage("it is empty") from None
        if len(head) < HEADER.size:
            raise self._damage(f"it is cut in the header: {len(head)} bytes of {HEADER.size} are there")
        fields = HEADER.unpack_from(head)
        magic, version, record_b, self.rank, self.size, self.pid, _, room, taken, rate, loaded, ended, at_ns, host = (
            fields
        )
        if magic != MAGIC:
            raise self._damage("this is no trace of the MPI profiler", f"it begins with {head[:8].hex(' ')}")
        if version != VERSION:
            raise self._damage(f"its version is {version}: this seatrial reads version {VERSION}")
        if record_b != RECORD_B:
            raise self._damage(f"its records have {record_b} bytes, {RECORD_B} are expected")
        if not 0 <= self.rank < self.size <= _MOST_RANKS:
            raise self._damage(f"it is said to be rank {self.rank} of {self.size}")
        if not (isfinite(rate) and rate > 0):
            raise self._damage(f"its clock makes {rate:g} ticks a second")
        self.kept = min(room, taken)
        self.lost = max(0, taken - room)
        if len(self._data) < HEADER_B + self.kept * RECORD_B:
            raise self._damage(f"it is cut: {len(self._data)} bytes are there, its header counts {self.kept} records")
        self.ticks_per_s: float = rate
        self.loaded: int = loaded
        self.ended: int | None = ended or None
        self.loaded_at_s: float = at_ns / 1e9
        self.host = host.split(b"\0", 1)[0].decode("utf-8", "replace")

    def record(self, place: int) -> Record:
        """The record at a place. Raises ParseError for one that is not kept, or is of no kind."""
        if not 0 <= place < self.kept:
            raise self._damage(f"a record at {place} is named, {self.kept} are there")
        at = HEADER_B + place * RECORD_B
        *fields, kind, flags, thread, n = HEAD.unpack_from(self._data, at)
        begin, end, waited, call, comm = fields
        if kind > max(Kind):
            raise self._damage(f"record {place} is of kind {kind}")
        most = {Kind.DONE: NUMBERS, Kind.COUNTS: COUNTS}.get(Kind(kind), 0)
        if n > most:
            raise self._damage(f"record {place} is said to have {n} numbers of {most}")
        if end < begin:
            raise self._damage(f"record {place} ends before it begins", f"ticks {begin} and {end}")
        body = self._data[at + HEAD.size : at + RECORD_B]
        return Record(place, begin, end, waited, call, comm, Kind(kind), flags, thread, n, body)

    def records(self) -> Iterator[Record]:
        """Those that were written, in their order."""
        for place in range(self.kept):
            record = self.record(place)
            if record.kind != Kind.NOTHING:
                yield record

    def communicators(self) -> dict[int, Communicator]:
        """By their numbers in this trace. Found without unpacking the others."""
        found: dict[int, Communicator] = {}
        kinds = self._column(_KIND_AT)
        place = kinds.find(Kind.COMMUNICATOR)
        while place >= 0:
            record = self.record(place)
            found[record.comm] = record.communicator()
            place = kinds.find(Kind.COMMUNICATOR, place + 1)
        return found

    def has_open_receives(self) -> bool:
        """Whether a receive was posted that was never seen to complete."""
        both = zip(self._column(_KIND_AT), self._column(_KIND_AT + 1), strict=True)
        return any(kind in _MESSAGES and flag & Flag.RECEIVES and not flag & Flag.TOLD for kind, flag in both)

    @property
    def length_s(self) -> float:
        """Seconds from the start of the process to MPI_Finalize, or to the end of the last call that is told."""
        end = self.ended
        if end is None:
            end = max((record.end for record in self.records()), default=self.loaded)
        return max(0, end - self.loaded) / self.ticks_per_s

    def close(self) -> None:
        """The records can no more be read."""
        self._data.close()

    def _column(self, at: int) -> bytes:
        """One byte of each record."""
        return self._data[HEADER_B + at : HEADER_B + self.kept * RECORD_B : RECORD_B]

    def _damage(self, why: str, text: str = "") -> ParseError:
        return ParseError(_TOOL, None, text, why, str(self.path))


_KIND_AT = HEAD.size - 4
_MESSAGES = (Kind.MESSAGES, Kind.POST)
