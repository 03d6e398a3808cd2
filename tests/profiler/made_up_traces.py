"""Made-up trace files of the MPI profiler, for tests of its reader and the exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.trace.trace_file import (
    BODY_B,
    COLLECTIVE,
    COMMUNICATOR,
    HEAD,
    HEADER,
    HEADER_B,
    MAGIC,
    MESSAGES,
    RECORD_B,
    VERSION,
    Flag,
    RecordKind,
)

RATE = 1e9
"""Ticks a second: a tick is a nanosecond."""
LOADED = 1000
WORLD_ID, SELF_ID = 77, 88


@dataclass(frozen=True)
class Made:
    """One record. Times are seconds since the process was loaded."""

    kind: RecordKind
    call: str = ""
    begin_s: float = 0.0
    end_s: float = 0.0
    body: bytes = b""
    comm: int = 1
    flags: int = 0
    n: int = 0
    thread: int = 1
    waited_s: float = 0.0

    def data(self) -> bytes:
        call = function_names().index(self.call) + 1 if self.call else 0
        times = [LOADED + round(time_s * RATE) if call else 0 for time_s in (self.begin_s, self.end_s)]
        waited = round(self.waited_s * RATE)
        head = HEAD.pack(*times, waited, call, self.comm, self.kind, self.flags, self.thread, self.n)
        return head + self.body.ljust(BODY_B, b"\0")


def communicator(number: int, id_: int, rank: int, size: int) -> Made:
    return Made(RecordKind.COMMUNICATOR, body=COMMUNICATOR.pack(id_, rank, size), comm=number, flags=Flag.PART)


def send(call: str, begin_s: float, end_s: float, dest: int, tag: int, size_B: int, **more: Any) -> Made:
    kind = RecordKind.POST if call.startswith("MPI_I") else RecordKind.MESSAGES
    body = MESSAGES.pack(size_B, 0, dest, tag, 0, 0)
    return Made(kind, call, begin_s, end_s, body, flags=Flag.SENDS | more.pop("flags", 0), **more)


def receive(call: str, begin_s: float, end_s: float, source: int, tag: int, size_B: int, **more: Any) -> Made:
    kind = RecordKind.POST if call.startswith("MPI_I") else RecordKind.MESSAGES
    body = MESSAGES.pack(0, size_B, 0, 0, source, tag)
    flags = Flag.RECEIVES | more.pop("flags", Flag.COMPLETED)
    return Made(kind, call, begin_s, end_s, body, flags=flags, **more)


def done(call: str, begin_s: float, end_s: float, *places: int) -> Made:
    body = b"".join(place.to_bytes(4, "little") for place in places)
    return Made(RecordKind.DONE, call, begin_s, end_s, body, comm=0, n=len(places))


def collective(call: str, begin_s: float, end_s: float, block_B: int = 0, root: int = -1, **more: Any) -> Made:
    kind = RecordKind(more.pop("kind", RecordKind.COLLECTIVE))
    body = COLLECTIVE.pack(block_B, root, more.pop("counts", 0), more.pop("made_at", 0))
    return Made(kind, call, begin_s, end_s, body, **more)


def counts(values: Sequence[int], flags: int = 0) -> list[Made]:
    parts = [values[i : i + 4] for i in range(0, len(values), 4)]
    packed = [b"".join(value.to_bytes(8, "little") for value in part) for part in parts]
    return [
        Made(RecordKind.COUNTS, body=body, flags=flags | Flag.PART, n=len(part), comm=0)
        for part, body in zip(parts, packed, strict=True)
    ]


def trace_file(
    folder: Path,
    rank: int,
    size: int,
    records: Sequence[Made],
    *,
    ended_s: float | None = 1.0,
    late_s: float = 0.0,
    room: int | None = None,
    lost: int = 0,
    rate: float = RATE,
    magic: int = MAGIC,
    version: int = VERSION,
) -> Path:
    """A rank's file. World and self come first, as in a real one. `late_s`: how much later than others it started."""
    whole = [communicator(1, WORLD_ID, rank, size), communicator(2, SELF_ID + rank, 0, 1), *records]
    room = len(whole) if room is None else room
    ended = 0 if ended_s is None else LOADED + round(ended_s * RATE)
    loaded_at_ns = 1_700_000_000_000_000_000 + round(late_s * 1e9)
    header = HEADER.pack(
        *(magic, version, RECORD_B, rank, size, 100 + rank, 0, room, len(whole) + lost),
        *(rate, LOADED, ended, loaded_at_ns, b"node"),
    )
    path = folder / f"node-{100 + rank}.trace"
    path.write_bytes(header.ljust(HEADER_B, b"\0") + b"".join(record.data() for record in whole[:room]))
    return path
