"""The reader of the table file that the MPI profiler writes for one process.

The format is defined in `profiler/native/table_file.h`; version and magic are checked. Version 2 has neither a number
of rows (it was SLOTS) nor call sites with callers. A table may be read while its process is still running: a row is
valid once its call is not 0.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import Frame
from seatrial.profiler.profile_io import SystemUse
from seatrial.profiler.tables.extension import (
    EXTENSION_B,
    EXTENSION_WITHOUT_CODE_B,
    MOST_REGIONS,
    Extension,
    parse_extension,
)
from seatrial.profiler.tables.header import (
    BINS_OVER_TIME,
    EXACT_SIZES_B,
    HEADER,
    LEAST_RATE,
    MAGIC,
    MODULES_B,
    MOST_RATE,
    MOST_SLOTS,
    OLD_VERSION,
    PAGE_B,
    SLOTS,
    VERSION,
    WITHOUT_CODE,
    CpuRight,
    DamageError,
    Family,
    Header,
    IoCounters,
    ProcessState,
    SampledCpu,
    cpu_use,
    io_counters,
    parse_header,
    require,
    text_of,
)
from seatrial.store.files import opened_file

if TYPE_CHECKING:
    import numpy.typing as npt

PLACE = struct.Struct("<QIHH")
"""`struct seatrial_place` of `profiler/native/table_file.h`."""
PLACE_BIT = 1 << 63


class CallPlace(Frozen):
    """`addresses` are the call site and the return addresses of the calls that led to it, innermost first; `python`
    the frames of Python code that did, likewise."""

    addresses: tuple[int, ...]
    python: tuple[Frame, ...]


def parse_places(data: bytes) -> dict[int, CallPlace] | None:
    """The call sites by the number with which rows refer to them; None if a record is invalid. `data` holds whole
    records: the profiler enlarges their space once a record is complete."""
    found: dict[int, CallPlace] = {}
    at = 0
    while at < len(data):
        if len(data) - at < PLACE.size:
            return None
        key, size, addresses, frames = PLACE.unpack_from(data, at)
        texts = PLACE.size + 8 * addresses
        if not key & PLACE_BIT or size % 8 or size < texts or size > len(data) - at or not addresses:
            return None
        python = _frames(data[at + texts : at + size], frames)
        if python is None:
            return None
        found[key] = CallPlace(struct.unpack_from(f"<{addresses}Q", data, at + PLACE.size), python)
        at += size
    return found


def _frames(text: bytes, count: int) -> tuple[Frame, ...] | None:
    """`count` times "line function", 0, "file", 0."""
    words = text.split(b"\0", 2 * count)
    if len(words) <= 2 * count:
        return None
    found = []
    for head, file in zip(words[0 : 2 * count : 2], words[1 : 2 * count : 2], strict=True):
        line, _, function = head.partition(b" ")
        if not line.lstrip(b"-").isdigit() or len(line) > _MOST_DIGITS:
            return None
        found.append(Frame(function.decode("utf-8", "replace"), file.decode("utf-8", "replace"), max(0, int(line))))
    return tuple(found)


_MOST_DIGITS = 11


THREAD = struct.Struct("<IIQQ")
SLOT = [
    *(("call", "<u2"), ("comm", "u1"), ("part", "u1"), ("bin", "<u4")),
    *((name, "<u8") for name in ("site", "count", "bytes", "ticks", "least_ticks", "most_ticks", "pause_ticks")),
]
"""The fields of one row, as a numpy dtype."""
SLOT_B = 64
PEER_B = 32
SLOTS_AT = THREAD.size + 8 * BINS_OVER_TIME
PEERS_AT = SLOTS_AT + SLOT_B * SLOTS

_TOOL = "MPI profile"
_REGION_SHIFT = 56
_REGION_BITS = 0x7F  # The number of a region is in these bits of a call site; the bit above them marks such a number.
_LARGEST_BIN = EXACT_SIZES_B + (63 - 10) * 8 + 8
_KINDS_OF_COMMUNICATOR = 4
_MOST_RANKS = 1 << 24
_MOST_PLACES_B = 1 << 26
_SLACK_B = 1 << 16  # Largest padding of a thread area, which begins on a page of any size.


class TablePart(IntEnum):
    """The part of a call that a row holds."""

    WHOLE = 0
    WAITED = 1
    TRANSFERRED = 2
    OPERATED = 3


class Module(NamedTuple):
    """A mapped part of a file: addresses `begin` to `end` (not included) hold the file from `offset` on."""

    begin: int
    end: int
    offset: int
    path: str


class ThreadTable(Frozen):
    """One thread's area. `slots` (n,) has the fields of SLOT and only rows in use, of whole calls; `mpi_ticks` (512,)
    is its time in MPI since the process was loaded, in bins of `bin_ticks`. `parts` (k,) are rows with the same fields
    that split calls with a barrier before them into waiting and transfer, or hold the time of calls in operations of
    the program; it is in `slots` too. `regions`
    (n,) is the number of the region that each row of `slots` was counted in, 0: none."""

    slots: npt.NDArray[np.void]
    without_site: int
    bin_ticks: int
    mpi_ticks: npt.NDArray[np.uint64]
    parts: npt.NDArray[np.void]
    regions: npt.NDArray[np.uint8]


class ProcessTable(Frozen):
    """One process. `rank` is None before MPI_Init; `size` is that of MPI_COMM_WORLD, 0 if unknown.

    `loaded_at_s` is seconds since the epoch, `wall_s` the seconds from then to MPI_Finalize, or to the last known call;
    `own_s` the profiler's overhead for one call. `peer_ranks` (k,) ascend; `peers` (k, 4) holds the point-to-point
    traffic with each of them: messages sent, bytes sent, messages received, bytes received. Rank `size` represents
    all processes outside the world.

    `io_loaded`, `io_first` and `io_last` are the I/O counters when the process was loaded, at MPI_Init and at its
    end; None if not requested or unreadable: then `io_error` is the errno, else 0. `cpu_use` is from the end of
    MPI_Init to the end of MPI, None for a process that did not reach it; `cpu_right` is the latest known.
    `system_uses` are the calls that enter the kernel since MPI_Init, None if they were not timed. `initialized_s` is
    the time from loading to the end of MPI_Init, None if that was not reached. `stopped_s` is the time for which the
    program stopped recording, and is not part of `wall_s`; `extension` is None in tables of an earlier version.
    `places` are the call sites that are more than an address, by the number that rows have in its place;
    `lost_places` counts calls whose call site did not fit. `script` is what the interpreter `program` runs, "" if it is
    none. `noncontiguous_B` are the bytes passed for sending or writing whose datatypes have gaps.
    """

    rank: int | None
    size: int
    pid: int
    host: str
    program: str
    library: str
    job: str
    family: Family
    state: ProcessState
    ticks_per_s: float
    loaded_at_s: float
    wall_s: float
    own_s: float
    reading_s: float
    lost_calls: int
    unknown_length: int
    modules: tuple[Module, ...]
    threads: tuple[ThreadTable, ...]
    peer_ranks: npt.NDArray[np.intp]
    peers: npt.NDArray[np.uint64]
    io_loaded: IoCounters | None = None
    io_first: IoCounters | None = None
    io_last: IoCounters | None = None
    io_error: int = 0
    cpu_use: SampledCpu | None = None
    cpu_right: CpuRight | None = None
    system_uses: tuple[SystemUse, ...] | None = None
    initialized_s: float | None = None
    stopped_s: float = 0.0
    extension: Extension | None = None
    places: Mapping[int, CallPlace] = {}
    lost_places: int = 0
    script: str = ""
    noncontiguous_B: int = 0


ReadPart = Callable[[int, int], bytes]
"""(offset, length) -> bytes read from there; fewer at the end of the file."""


def parse_table(data: bytes, functions: int, name: str = "") -> ProcessTable:
    """The table in the content of a file. `functions` is the number of functions in the table of functions.

    Raises ParseError (`name` is the file's) for a truncated file, another version, or inconsistent numbers.
    """
    return _parsed(lambda offset, length: data[offset : offset + length], len(data), functions, name)


def read_table(path: Path, functions: int) -> ProcessTable:
    """The table in a file. Only the areas in use are read: the rest of the file is a hole.

    Raises ParseError like `parse_table`, OSError if the file cannot be read.
    """
    with opened_file(path.parent, path.name) as opened:
        file = opened.fileno()
        size = os.fstat(file).st_size
        return _parsed(lambda offset, length: os.pread(file, length, offset), size, functions, str(path))


def _parsed(part: ReadPart, size: int, functions: int, name: str) -> ProcessTable:
    try:
        return _Reader(part, size, functions).table()
    except DamageError as damage:
        raise ParseError(_TOOL, None, damage.text, damage.why, name) from None


def _stopped_ticks(extension: Extension | None, head: Header, end: int) -> int:
    """For how long the program stopped recording until its end; at most its whole time."""
    if extension is None or not end:
        return 0
    regions = extension.regions
    last = end - regions.stopped_at if head.loaded_at <= regions.stopped_at <= end else 0
    return min(regions.stopped_ticks + last, end - head.loaded_at)


class _Reader:
    def __init__(self, part: ReadPart, size: int, functions: int) -> None:
        self._part = part
        self._size = size
        self._functions = functions

    def table(self) -> ProcessTable:
        data = self._bytes(0, HEADER.size, "the header")
        head = parse_header(data)
        require(head.magic == MAGIC, "not a table of the MPI profiler", f"it begins with {data[:8].hex(' ')}")
        require(
            OLD_VERSION <= head.version <= VERSION,
            f"the table has version {head.version}; this seatrial reads versions {OLD_VERSION} to {VERSION}",
        )
        is_known = head.state <= max(ProcessState) and head.family <= max(Family)
        require(is_known, f"invalid state {head.state} or family {head.family}")
        rate, own = head.ticks_per_s, head.own_ticks
        require(LEAST_RATE <= rate <= MOST_RATE, f"invalid clock rate: {rate:g} ticks per second")
        require(isfinite(own) and own >= 0, f"invalid overhead of the profiler: {own:g} ticks")
        reading = head.reading_ticks
        require(isfinite(reading) and reading >= 0, f"invalid cost of reading the clock: {reading:g} ticks")
        self._check_areas(head)
        size = max(head.world_size, 0)
        areas, rows = [], []
        for number in range(head.threads):
            area, row = self._area(head.thread_offset + number * head.thread_bytes, number, size, head.rows)
            if area is not None:
                areas.append(area)
                rows.append(row)
        peers = rows[0] if len(rows) == 1 else sum(rows, np.zeros((size + 1, 4), np.uint64))
        end = max(head.finalized_at, head.last_call_at)
        partners = np.flatnonzero(peers[:, 0] | peers[:, 1] | peers[:, 2] | peers[:, 3])
        span = f"ticks {end} and {head.loaded_at}"
        extension = self._extension(head)
        require(end == 0 or end >= head.loaded_at, "the last call is before the start", span)
        stopped = _stopped_ticks(extension, head, end)
        return ProcessTable(
            rank=head.world_rank if head.world_rank >= 0 else None,
            size=size,
            pid=head.pid,
            host=text_of(head.host),
            program=text_of(head.program),
            library=text_of(head.library),
            job=text_of(head.job),
            family=Family(head.family),
            state=ProcessState(head.state),
            ticks_per_s=rate,
            loaded_at_s=head.loaded_at_ns / 1e9,
            wall_s=(end - head.loaded_at - stopped) / rate if end else 0.0,
            own_s=own / rate,
            reading_s=reading / rate,
            lost_calls=head.lost_calls,
            unknown_length=head.unknown_length,
            modules=_modules(self._bytes(PAGE_B, MODULES_B, "the module map")),
            threads=tuple(areas),
            peer_ranks=partners,
            peers=peers if len(partners) == len(peers) else peers[partners],
            io_loaded=io_counters(head.io_loaded),
            io_first=io_counters(head.io_first),
            io_last=io_counters(head.io_last),
            io_error=head.io_error,
            cpu_use=cpu_use(head.cpu_first, head.cpu_last),
            cpu_right=head.cpu_right(),
            system_uses=head.kernel_uses(
                rate, *(((0, 0), (0, 0)) if extension is None else (extension.kernel.locks, extension.kernel.threads))
            ),
            initialized_s=head.initialized_s(rate),
            stopped_s=stopped / rate,
            extension=extension,
            places=self._places(head),
            lost_places=head.lost_places,
            script=text_of(head.script),
            noncontiguous_B=head.noncontiguous_bytes,
        )

    def _extension(self, head: Header) -> Extension | None:
        at = head.extension_offset
        if head.version == OLD_VERSION or not at:
            return None
        size_B = EXTENSION_WITHOUT_CODE_B if head.version == WITHOUT_CODE else EXTENSION_B
        is_between = at >= PAGE_B + MODULES_B and at + size_B <= head.thread_offset - head.places_bytes
        require(is_between, f"its extension begins at {at}, inside other parts")
        try:
            return parse_extension(self._bytes(at, size_B, "the extension"), head.loaded_at)
        except ValueError as error:
            raise DamageError(str(error)) from None

    def _check_areas(self, head: Header) -> None:
        rank, world = head.world_rank, head.world_size
        most, area_b = head.most_threads, head.thread_bytes
        require(most > 0 and head.threads <= most, f"it claims {head.threads} threads in {most} areas")
        require(world <= _MOST_RANKS and -1 <= rank < max(world, 0), f"it claims to be rank {rank} of {world}")
        rows = head.rows
        require(SLOTS <= rows <= MOST_SLOTS and not rows & rows - 1, f"it claims {rows} rows in each area")
        least = SLOTS_AT + SLOT_B * rows + PEER_B * (max(world, 0) + 1)
        require(least <= area_b < least + _SLACK_B, f"a thread's area has {area_b} bytes; {least} are required")
        at = head.thread_offset
        places = head.places_bytes
        require(places <= _MOST_PLACES_B and head.places_used <= places, f"it claims {places} bytes of call sites")
        is_behind = at >= PAGE_B + MODULES_B + places
        require(is_behind, f"the first area begins at {at}, inside the module map or the call sites")
        whole = at + head.threads * area_b
        require(self._size >= whole, f"the file is truncated: {self._size} of {whole} bytes")

    def _places(self, head: Header) -> dict[int, CallPlace]:
        data = self._bytes(head.thread_offset - head.places_bytes, head.places_used, "the places")
        found = parse_places(data)
        require(found is not None, "invalid record among the call sites")
        return found or {}

    def _area(self, at: int, number: int, size: int, count: int) -> tuple[ThreadTable | None, npt.NDArray[np.uint64]]:
        """One thread's area, None if the thread made no call; and its peers (size + 1, 4)."""
        named = f"area {number}"
        head = self._bytes(at, SLOTS_AT, named)
        taken, used, without_site, bin_ticks = THREAD.unpack(head[: THREAD.size])
        require(taken <= 1 and used <= count, f"{named} claims {used} rows of at most {count}", f"taken {taken}")
        rows = np.frombuffer(self._bytes(at + SLOTS_AT, SLOT_B * count, named), np.dtype(SLOT))
        slots = rows[(rows["call"] != 0) & (rows["count"] != 0)]
        self._check_slots(slots, number)
        data = self._bytes(at + SLOTS_AT + SLOT_B * count, PEER_B * (size + 1), named)
        peers = np.frombuffer(data, "<u8").reshape(-1, 4)
        over_time = np.frombuffer(head, "<u8", BINS_OVER_TIME, THREAD.size)
        require(bin_ticks > 0 or not over_time.any(), f"{named} has time bins of width 0")
        if not len(slots) and not without_site:
            return None, peers
        region = (slots["site"] >> _REGION_SHIFT & _REGION_BITS).astype(np.uint8)
        slots["site"] &= np.uint64(~(_REGION_BITS << _REGION_SHIFT) & ((1 << 64) - 1))
        require(int(region.max(initial=0)) <= MOST_REGIONS, f"{named} has an invalid region")
        whole = slots["part"] == TablePart.WHOLE
        parts = slots[~whole]
        if len(parts):
            slots, region = slots[whole], region[whole]
        return ThreadTable(slots, without_site, bin_ticks, over_time, parts, region), peers

    def _check_slots(self, slots: npt.NDArray[Any], number: int) -> None:
        if not len(slots):
            return
        largest = int(slots["call"].max())
        require(largest <= self._functions, f"area {number} has function {largest} of {self._functions}")
        require(int(slots["bin"].max()) <= _LARGEST_BIN, f"area {number} has an invalid size bin")
        require(int(slots["comm"].max()) < _KINDS_OF_COMMUNICATOR, f"area {number} has an invalid kind of communicator")
        require(int(slots["part"].max()) <= max(TablePart), f"area {number} has an invalid part of a call")

    def _bytes(self, at: int, length: int, what: str) -> bytes:
        data = self._part(at, length)
        require(len(data) == length, f"the file is truncated in {what}: {len(data)} of {length} bytes")
        return data


def _modules(text: bytes) -> tuple[Module, ...]:
    """The module map, without a last line that was cut because the map was full."""
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
        raise DamageError("invalid line in the module map", line.decode("utf-8", "replace"))
    return Module(begin, end, offset, path)
