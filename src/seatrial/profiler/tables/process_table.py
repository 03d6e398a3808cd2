"""What the MPI profiler left of one process: the reader of its table file.

The form stands in `profiler/native/table_file.h`; version and magic are checked. A table is read as it is, also while
its process is still running: a row counts once its call is not 0.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seatrial.errors import ParseError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAGIC = 0x464F525041534553
VERSION = 1
PAGE_B = 4096
MODULES_B = 64 * 1024
SLOTS = 4096
EXACT_SIZES_B = 1024
BINS_OVER_TIME = 512

HEADER = struct.Struct("<QIIIiiiIIQQdQQQQqdQQ256s1024s256sq7Qq7Qq7QiIQ128s")
THREAD = struct.Struct("<IIQQ")
SLOT = [
    ("call", "<u2"),
    ("comm", "u1"),
    ("part", "u1"),
    ("bin", "<u4"),
    ("site", "<u8"),
    ("count", "<u8"),
    ("bytes", "<u8"),
    ("ticks", "<u8"),
    ("least_ticks", "<u8"),
    ("most_ticks", "<u8"),
    ("unused", "<u8"),
]
"""Of numpy: the fields of one row."""
SLOT_B = 64
PEER_B = 32
SLOTS_AT = THREAD.size + 8 * BINS_OVER_TIME
PEERS_AT = SLOTS_AT + SLOT_B * SLOTS

_TOOL = "MPI profile"
_LARGEST_BIN = EXACT_SIZES_B + (63 - 10) * 8 + 8
_KINDS_OF_COMMUNICATOR = 4
_MOST_RANKS = 1 << 24
_SLACK_B = 1 << 16
"""A thread area may be padded so far, to begin on a page of any size."""


class Family(IntEnum):
    """Whose constants and handles the library of the process goes by."""

    UNKNOWN = 0
    MPICH = 1
    OPENMPI = 2
    STANDARD_ABI = 3


class State(IntEnum):
    """How far the process came."""

    LOADED = 0
    INITIALIZED = 1
    FINALIZED = 2
    ABORTED = 3


class Part(IntEnum):
    """What of a call a row holds."""

    WHOLE = 0
    WAITED = 1
    TRANSFERRED = 2


class Module(NamedTuple):
    """A mapped part of a file: addresses `begin` to `end` (not included) hold the file from `offset` on."""

    begin: int
    end: int
    offset: int
    path: str


class IoCounters(NamedTuple):
    """What the kernel counts of a process (`proc_pid_io(5)`): bytes and calls that it asked for, whatever served them,
    and bytes that storage devices moved for it. `at_s` is seconds since the epoch."""

    at_s: float
    read_B: int
    written_B: int
    read_calls: int
    write_calls: int
    device_read_B: int
    device_written_B: int
    cancelled_B: int


@dataclass(frozen=True, slots=True)
class ThreadTable:
    """One thread's area. `slots` (n,) has the fields of SLOT and only rows in use, of whole calls; `mpi_ticks` (512,)
    is its time in MPI since the process was loaded, in bins of `bin_ticks`. `parts` (k,) are rows of the same fields,
    which tell what of calls with a barrier before them was waiting and what transfer: their time is in `slots` too."""

    slots: npt.NDArray[np.void]
    without_site: int
    bin_ticks: int
    mpi_ticks: npt.NDArray[np.uint64]
    parts: npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """One process. `rank` is None before MPI was begun; `size` is that of MPI_COMM_WORLD, 0 where it is not known.

    `loaded_at_s` is seconds since the epoch, `wall_s` what passed from then to MPI_Finalize, or to the last call known;
    `own_s` what the profiler takes for one call. `peer_ranks` (k,) ascend; `peers` (k, 4) holds point to point with
    each of them: messages sent, bytes sent, messages received, bytes received. Rank `size` stands for all outside the
    world.

    `io_loaded`, `io_first` and `io_last` are what it had read and written when it was loaded, when MPI was begun and
    when it ended; None where that was not asked for, or could not be read: `io_error` is then the number of the error,
    else 0.
    """

    rank: int | None
    size: int
    pid: int
    host: str
    program: str
    library: str
    job: str
    family: Family
    state: State
    ticks_per_s: float
    loaded_at_s: float
    wall_s: float
    own_s: float
    lost_calls: int
    untold: int
    modules: tuple[Module, ...]
    threads: tuple[ThreadTable, ...]
    peer_ranks: npt.NDArray[np.intp]
    peers: npt.NDArray[np.uint64]
    io_loaded: IoCounters | None = None
    io_first: IoCounters | None = None
    io_last: IoCounters | None = None
    io_error: int = 0


ReadPart = Callable[[int, int], bytes]
"""(offset, length) -> so many bytes from there; fewer where the file ends."""


def parse_table(data: bytes, functions: int, name: str = "") -> ProcessTable:
    """The table in the whole content of a file. `functions` is how many the table of functions has.

    Raises ParseError (`name` is the file's) for a cut or torn file, another version, or numbers that contradict
    themselves.
    """
    return _parsed(lambda offset, length: data[offset : offset + length], len(data), functions, name)


def read_table(path: Path, functions: int) -> ProcessTable:
    """The table in a file. Only what threads took is read: the rest of the file is a hole.

    Raises ParseError as `parse_table`, OSError where the file cannot be read.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(file).st_size
        return _parsed(lambda offset, length: os.pread(file, length, offset), size, functions, str(path))
    finally:
        os.close(file)


def bin_floor(size_bin: int) -> int:
    """The least number of bytes that falls into a bin."""
    if size_bin <= EXACT_SIZES_B + 1:  # 1024 itself has a bin of its own, so that the next one begins after it
        return size_bin
    step = size_bin - EXACT_SIZES_B - 1
    return (8 + step % 8) << (step // 8 + 10 - 3)


def bin_ceiling(size_bin: int) -> int:
    """The largest number of bytes that falls into a bin."""
    return bin_floor(size_bin + 1) - 1


def _parsed(part: ReadPart, size: int, functions: int, name: str) -> ProcessTable:
    try:
        return _Reader(part, size, functions).table()
    except _DamageError as damage:
        raise ParseError(_TOOL, None, damage.text, damage.why, name) from None


class _DamageError(Exception):
    def __init__(self, why: str, text: str = "") -> None:
        self.why = why
        self.text = text
        super().__init__(why)


def _need(is_so: bool, why: str, text: str = "") -> None:
    if not is_so:
        raise _DamageError(why, text)


class _Header(NamedTuple):
    """The fields of `struct seatrial_header`, in its order."""

    magic: int
    version: int
    state: int
    family: int
    world_rank: int
    world_size: int
    pid: int
    most_threads: int
    threads: int
    thread_bytes: int
    thread_offset: int
    ticks_per_s: float
    loaded_at: int
    initialized_at: int
    finalized_at: int
    last_call_at: int
    loaded_at_ns: int
    own_ticks: float
    lost_calls: int
    untold: int
    host: bytes
    program: bytes
    library: bytes
    io_loaded: tuple[int, ...]
    io_first: tuple[int, ...]
    io_last: tuple[int, ...]
    io_error: int
    is_collected: int
    pid_namespace: int
    job: bytes


_IO_FIELDS = 8
_IO_AT = 23
_IO_END = _IO_AT + 3 * _IO_FIELDS


def _header(data: bytes) -> _Header:
    fields = HEADER.unpack(data)
    taken = [fields[at : at + _IO_FIELDS] for at in range(_IO_AT, _IO_END, _IO_FIELDS)]
    return _Header._make((*fields[:_IO_AT], *taken, *fields[_IO_END:]))


def _io(fields: tuple[int, ...]) -> IoCounters | None:
    at_ns, *counters = fields
    return IoCounters(at_ns / 1e9, *counters) if at_ns else None


class _Reader:
    def __init__(self, part: ReadPart, size: int, functions: int) -> None:
        self._part = part
        self._size = size
        self._functions = functions

    def table(self) -> ProcessTable:
        import numpy as np  # only what reads a profile needs it

        data = self._bytes(0, HEADER.size, "the header")
        head = _header(data)
        _need(head.magic == MAGIC, "this is no table of the MPI profiler", f"it begins with {data[:8].hex(' ')}")
        _need(head.version == VERSION, f"its version is {head.version}: this seatrial reads version {VERSION}")
        is_known = head.state <= max(State) and head.family <= max(Family)
        _need(is_known, f"state {head.state} or family {head.family} do not exist")
        rate, own = head.ticks_per_s, head.own_ticks
        _need(isfinite(rate) and rate > 0, f"its clock makes {rate:g} ticks a second")
        _need(isfinite(own) and own >= 0, f"the profiler's own cost is {own:g} ticks")
        self._check_areas(head)
        size = max(head.world_size, 0)
        areas, rows = [], []
        for number in range(head.threads):
            area, row = self._area(head.thread_offset + number * head.thread_bytes, number, size)
            if area is not None:
                areas.append(area)
                rows.append(row)
        peers = rows[0] if len(rows) == 1 else sum(rows, np.zeros((size + 1, 4), np.uint64))
        end = max(head.finalized_at, head.last_call_at)
        spoken_to = np.flatnonzero(peers[:, 0] | peers[:, 1] | peers[:, 2] | peers[:, 3])
        span = f"ticks {end} and {head.loaded_at}"
        _need(end == 0 or end >= head.loaded_at, "its last call lies before its start", span)
        return ProcessTable(
            rank=head.world_rank if head.world_rank >= 0 else None,
            size=size,
            pid=head.pid,
            host=_text(head.host),
            program=_text(head.program),
            library=_text(head.library),
            job=_text(head.job),
            family=Family(head.family),
            state=State(head.state),
            ticks_per_s=rate,
            loaded_at_s=head.loaded_at_ns / 1e9,
            wall_s=(end - head.loaded_at) / rate if end else 0.0,
            own_s=own / rate,
            lost_calls=head.lost_calls,
            untold=head.untold,
            modules=_modules(self._bytes(PAGE_B, MODULES_B, "the module map")),
            threads=tuple(areas),
            peer_ranks=spoken_to,
            peers=peers if len(spoken_to) == len(peers) else peers[spoken_to],
            io_loaded=_io(head.io_loaded),
            io_first=_io(head.io_first),
            io_last=_io(head.io_last),
            io_error=head.io_error,
        )

    def _check_areas(self, head: _Header) -> None:
        rank, world = head.world_rank, head.world_size
        most, area_b = head.most_threads, head.thread_bytes
        _need(most > 0 and head.threads <= most, f"{head.threads} threads are said to be in {most} areas")
        _need(world <= _MOST_RANKS and -1 <= rank < max(world, 0), f"it is said to be rank {rank} of {world}")
        least = PEERS_AT + PEER_B * (max(world, 0) + 1)
        _need(least <= area_b < least + _SLACK_B, f"a thread's area has {area_b} bytes, {least} are needed")
        at = head.thread_offset
        _need(at >= PAGE_B + MODULES_B, f"the first area begins at {at}, inside the module map")
        whole = at + head.threads * area_b
        _need(self._size >= whole, f"it is cut: {self._size} bytes of {whole} are there")

    def _area(self, at: int, number: int, size: int) -> tuple[ThreadTable | None, npt.NDArray[np.uint64]]:
        """One thread's area, None where the thread made no call; and its row of peers (size + 1, 4)."""
        import numpy as np

        named = f"area {number}"
        head = self._bytes(at, SLOTS_AT, named)
        taken, used, without_site, bin_ticks = THREAD.unpack(head[: THREAD.size])
        _need(taken <= 1 and used <= SLOTS, f"{named} is said to have {used} rows of {SLOTS}", f"taken {taken}")
        rows = np.frombuffer(self._bytes(at + SLOTS_AT, SLOT_B * SLOTS, named), np.dtype(SLOT))
        slots = rows[(rows["call"] != 0) & (rows["count"] != 0)]
        self._check_slots(slots, number)
        peers = np.frombuffer(self._bytes(at + PEERS_AT, PEER_B * (size + 1), named), "<u8").reshape(-1, 4)
        over_time = np.frombuffer(head, "<u8", BINS_OVER_TIME, THREAD.size)
        _need(bin_ticks > 0 or not over_time.any(), f"the bins over time of {named} have no width")
        if not len(slots) and not without_site:
            return None, peers
        whole = slots["part"] == Part.WHOLE
        parts = slots[~whole]
        return ThreadTable(slots[whole] if len(parts) else slots, without_site, bin_ticks, over_time, parts), peers

    def _check_slots(self, slots: npt.NDArray[Any], number: int) -> None:
        if not len(slots):
            return
        largest = int(slots["call"].max())
        _need(largest <= self._functions, f"area {number} names function {largest} of {self._functions}")
        _need(int(slots["bin"].max()) <= _LARGEST_BIN, f"area {number} names a bin of sizes that does not exist")
        _need(int(slots["comm"].max()) < _KINDS_OF_COMMUNICATOR, f"area {number} names no kind of communicator")
        _need(int(slots["part"].max()) <= max(Part), f"area {number} names no part of a call")

    def _bytes(self, at: int, length: int, what: str) -> bytes:
        data = self._part(at, length)
        _need(len(data) == length, f"it is cut in {what}: {len(data)} bytes of {length} are there")
        return data


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def _modules(text: bytes) -> tuple[Module, ...]:
    """The module map; a last line that was cut for want of room is left out."""
    lines = text.split(b"\0", 1)[0].split(b"\n")
    return tuple(_module(line) for line in lines[:-1] if line)


def _module(line: bytes) -> Module:
    fields: Sequence[bytes] = line.split(b" ", 3)
    try:
        begin, end, offset = int(fields[0], 16), int(fields[1], 16), int(fields[2], 16)
        path = fields[3].decode("utf-8", "surrogateescape")
    except (ValueError, IndexError):
        begin = end = 0
    if begin >= end:
        raise _DamageError("a line of its module map is not understood", line.decode("utf-8", "replace"))
    return Module(begin, end, offset, path)
