"""The reader of the trace file that the MPI profiler writes for one process.

The format is defined in `profiler/native/trace_file.h`; version and magic are checked. The file is memory-mapped: a
trace may have millions of records.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from enum import IntEnum, IntFlag
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from seatrial.errors import ParseError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.profiler.tables.header import LEAST_RATE, MOST_RATE, text_of
from seatrial.store.files import opened_file

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


class RecordKind(IntEnum):
    """The kind of a record."""

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
    """Flags of a record. COMPLETED: the source, tag and size of the receive are those of the message received."""

    SENDS = 1
    RECEIVES = 2
    COMPLETED = 4
    PART = 8
    OF_RECEIVES = 16
    INTER = 32
    AT_ONCE = 64


class TraceMessages(NamedTuple):
    """The message that a call sent and the one that it received; peers are ranks of the world."""

    sent_B: int
    received_B: int
    dest: int
    send_tag: int
    source: int
    receive_tag: int


class Collective(NamedTuple):
    """A collective: bytes of one rank's block, root in the communicator (-1: none), the number of counts that follow,
    and 1 + the index of the record of its persistent request (0: none)."""

    block_B: int
    root: int
    counts: int
    made_at: int


class Communicator(NamedTuple):
    """A communicator: its id (the same in all traces), the rank of this process in it, and its size."""

    id: int
    rank: int
    size: int


class Record(Frozen):
    """One record; `place` is its index. `begin` and `end` are ticks, 0 in parts; `waited` is in ticks; `call` is the
    number of the function, 0 in parts and if the call did not return; `comm` numbers the communicators of this trace
    from 1."""

    place: int
    begin: int
    end: int
    waited: int
    call: int
    comm: int
    kind: RecordKind
    flags: int
    thread: int
    n: int
    body: bytes

    @property
    def is_part(self) -> bool:
        """Whether it continues the preceding head record of the same thread."""
        return bool(self.flags & Flag.PART)

    def messages(self) -> TraceMessages:
        """The body of a record that sent or received."""
        return TraceMessages(*MESSAGES.unpack(self.body))

    def collective(self) -> Collective:
        """The body of a collective or a communicator's creation."""
        return Collective(*COLLECTIVE.unpack_from(self.body))

    def communicator(self) -> Communicator:
        """The body of a communicator's record."""
        return Communicator(*COMMUNICATOR.unpack_from(self.body))

    def numbers(self) -> tuple[int, ...]:
        """Indices of the records whose requests completed."""
        return struct.unpack_from(f"<{self.n}I", self.body)

    def counts(self) -> tuple[int, ...]:
        """Bytes by rank."""
        return struct.unpack_from(f"<{self.n}Q", self.body)


class Trace:
    """The trace of one process, memory-mapped.

    `loaded_at_s` is seconds since the epoch; `ended` is the time of MPI_Finalize in ticks, None if it was not called;
    `lost` counts the records dropped because the trace was full.
    """

    def __init__(self, path: Path) -> None:
        """Raises ParseError for a truncated file, another version, or inconsistent numbers; OSError."""
        self.path = path
        with opened_file(path.parent, path.name) as file:
            head = file.read(HEADER_B)
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise self.damage("the file is empty") from None
        if len(head) < HEADER.size:
            raise self.damage(f"the file is truncated in the header: {len(head)} of {HEADER.size} bytes")
        fields = HEADER.unpack_from(head)
        magic, version, record_b, self.rank, self.size, self.pid, _, room, taken, rate, loaded, ended, at_ns, host = (
            fields
        )
        if magic != MAGIC:
            raise self.damage("not a trace of the MPI profiler", f"it begins with {head[:8].hex(' ')}")
        if version != VERSION:
            raise self.damage(f"the trace has version {version}; this seatrial reads version {VERSION}")
        if record_b != RECORD_B:
            raise self.damage(f"its records have {record_b} bytes; expected {RECORD_B}")
        if not 0 <= self.rank < self.size <= _MOST_RANKS:
            raise self.damage(f"it claims to be rank {self.rank} of {self.size}")
        if not LEAST_RATE <= rate <= MOST_RATE:
            raise self.damage(f"invalid clock rate: {rate:g} ticks per second")
        self.kept = min(room, taken)
        self.lost = max(0, taken - room)
        if len(self._data) < HEADER_B + self.kept * RECORD_B:
            raise self.damage(f"the file is truncated: {len(self._data)} bytes, the header states {self.kept} records")
        self.ticks_per_s: float = rate
        self.loaded: int = loaded
        self.ended: int | None = ended or None
        self.loaded_at_s: float = at_ns / 1e9
        self.host = text_of(host)

    def record(self, place: int) -> Record:
        """The record at an index. Raises ParseError if it is not in the trace, or invalid."""
        if not 0 <= place < self.kept:
            raise self.damage(f"no record {place}: the trace has {self.kept}")
        at = HEADER_B + place * RECORD_B
        *fields, kind, flags, thread, n = HEAD.unpack_from(self._data, at)
        begin, end, waited, call, comm = fields
        if kind > max(RecordKind):
            raise self.damage(f"record {place} has the unknown kind {kind}")
        most = {RecordKind.DONE: NUMBERS, RecordKind.COUNTS: COUNTS}.get(RecordKind(kind), 0)
        if n > most:
            raise self.damage(f"record {place} claims {n} numbers of at most {most}")
        if end < begin:
            raise self.damage(f"record {place} ends before it begins", f"ticks {begin} and {end}")
        body = self._data[at + HEAD.size : at + RECORD_B]
        return Record(place, begin, end, waited, call, comm, RecordKind(kind), flags, thread, n, body)

    def records(self) -> Iterator[Record]:
        """All records that were written, in order."""
        for place in range(self.kept):
            record = self.record(place)
            if record.kind != RecordKind.NOTHING:
                yield record

    def communicators(self) -> dict[int, Communicator]:
        """The communicators by their numbers in this trace. Other records are not unpacked."""
        found: dict[int, Communicator] = {}
        kinds = self._column(_KIND_AT)
        place = kinds.find(RecordKind.COMMUNICATOR)
        while place >= 0:
            record = self.record(place)
            found[record.comm] = record.communicator()
            place = kinds.find(RecordKind.COMMUNICATOR, place + 1)
        return found

    def has_open_receives(self) -> bool:
        """Whether a receive was posted and did not complete."""
        both = zip(self._column(_KIND_AT), self._column(_KIND_AT + 1), strict=True)
        return any(kind in _MESSAGES and flag & Flag.RECEIVES and not flag & Flag.COMPLETED for kind, flag in both)

    @property
    def length_s(self) -> float:
        """Seconds from the start of the process to MPI_Finalize, or to the end of the last recorded call."""
        end = self.ended
        if end is None:
            end = max((record.end for record in self.records()), default=self.loaded)
        return max(0, end - self.loaded) / self.ticks_per_s

    def close(self) -> None:
        """Unmap the file; records can no longer be read."""
        self._data.close()

    def _column(self, at: int) -> bytes:
        """One byte of each record."""
        return self._data[HEADER_B + at : HEADER_B + self.kept * RECORD_B : RECORD_B]

    def damage(self, why: str, text: str = "") -> ParseError:
        """The error of this trace."""
        return ParseError(_TOOL, None, text, why, str(self.path))


_KIND_AT = HEAD.size - 4
_MESSAGES = (RecordKind.MESSAGES, RecordKind.POST)


def trace_worlds(paths: Sequence[Path]) -> list[list[Path]]:
    """The traces of one command, program by program, longest total time of the ranks first.

    Traces contain no job id: a process joins the most recently started world of its size that does not have its rank
    yet. Raises ParseError for a damaged trace; OSError.
    """
    found: list[tuple[int, dict[int, Path], list[float]]] = []
    begun = []
    for path in paths:
        trace = Trace(path)
        begun.append((trace.loaded_at_s, trace.rank, trace.size, trace.length_s, path))
        trace.close()
    for _, rank, size, length_s, path in sorted(begun):
        joined = next((one for one in reversed(found) if one[0] == size and rank not in one[1]), None)
        if joined is None:
            joined = (size, {}, [])
            found.append(joined)
        joined[1][rank] = path
        joined[2].append(length_s)
    return [list(world.values()) for _, world, _ in sorted(found, key=lambda one: -sum(one[2]))]


class TraceWorld:
    """The traces of all ranks of a world, by rank; as a context manager it closes them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises ParseError for a damaged trace; UsageError unless they are the traces of one world, each rank once."""
        self._open = ExitStack()
        try:
            self.traces = tuple(sorted([self._opened(path) for path in paths], key=lambda trace: trace.rank))
            self._check()
        except BaseException:
            self._open.close()
            raise
        self.size = len(self.traces)
        self.began_s = min(trace.loaded_at_s for trace in self.traces)
        self.communicators: tuple[dict[int, Communicator], ...] = tuple(trace.communicators() for trace in self.traces)
        self._members: dict[int, dict[int, int]] = {}
        self._sizes: dict[int, int] = {}
        for trace, known in zip(self.traces, self.communicators, strict=True):
            for communicator in known.values():
                self._members.setdefault(communicator.id, {})[communicator.rank] = trace.rank
                self._sizes[communicator.id] = communicator.size

    def __enter__(self) -> TraceWorld:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def members(self, communicator_id: int) -> tuple[int, ...] | None:
        """The communicator's members as ranks of the world, in order; None if a member's trace does not have it."""
        found = self._members.get(communicator_id, {})
        size = self._sizes.get(communicator_id, 0)
        if sorted(found) != list(range(size)):
            return None
        return tuple(found[rank] for rank in range(size))

    @property
    def lost(self) -> int:
        """Records dropped on all ranks because a trace was full."""
        return sum(trace.lost for trace in self.traces)

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Ranks that did not reach MPI_Finalize."""
        return tuple(trace.rank for trace in self.traces if trace.ended is None)

    @property
    def is_whole(self) -> bool:
        """Whether the traces of all ranks are complete: then every received message was also sent."""
        return not self.lost and not self.unfinished and not any(trace.has_open_receives() for trace in self.traces)

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the first rank to the MPI_Finalize of the last, or to the last record of a rank
        that did not reach it."""
        return max(trace.loaded_at_s + trace.length_s for trace in self.traces) - self.began_s

    def _opened(self, path: Path) -> Trace:
        trace = Trace(path)
        self._open.callback(trace.close)
        return trace

    def _check(self) -> None:
        if not self.traces:
            raise UsageError("no trace found", "profile with `--trace`, and give the folder of the tables")
        size = self.traces[0].size
        ranks = [trace.rank for trace in self.traces]
        if any(trace.size != size for trace in self.traces) or len(set(ranks)) != len(ranks):
            raise UsageError(
                f"these are traces of more than one program: ranks {ranks[:8]} of worlds of "
                f"{sorted({trace.size for trace in self.traces})} ranks",
                "export the traces of one program at a time",
            )
        missing = sorted(set(range(size)) - set(ranks))
        if missing:
            raise UsageError(
                f"{len(missing)} of {size} ranks left no trace: {', '.join(map(str, missing[:8]))}",
                "a replay needs the traces of all ranks",
            )
