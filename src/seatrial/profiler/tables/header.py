"""The header of a table of the MPI profiler (`struct seatrial_header` of `profiler/native/table_file.h`), with its
samples of input, output and CPU time."""

from __future__ import annotations

import struct
from enum import IntEnum
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from seatrial.profiler.cpu import CpuUse
from seatrial.profiler.profile_io import SystemCall, SystemUse

MAGIC = 0x464F525041534553
VERSION = 4
WITHOUT_CODE = 3
"""Its extension ends before the samples of code."""
OLD_VERSION = 2
"""Without what follows `cpu_right` in the header, and without the extension."""
PAGE_B = 4096
MODULES_B = 64 * 1024
SLOTS = 4096
MOST_SLOTS = 1 << 18
MOST_PATH_FRAMES = 32
EXACT_SIZES_B = 1024
BINS_OVER_TIME = 512
LEAST_RATE, MOST_RATE = 1.0, 1e15
"""Ticks per second of any clock. Beyond them, times in seconds could be infinite."""


def bin_floor(size_bin: int) -> int:
    """The smallest number of bytes in a bin."""
    if size_bin <= EXACT_SIZES_B + 1:  # 1024 has its own bin too; the next one begins after it
        return size_bin
    step = size_bin - EXACT_SIZES_B - 1
    return (8 + step % 8) << (step // 8 + 10 - 3)


def bin_ceiling(size_bin: int) -> int:
    """The largest number of bytes in a bin."""
    return bin_floor(size_bin + 1) - 1


HEADER = struct.Struct("<QIIIiiiIIQQdQQQQqdQQ256s1024s256sq7Qq7Qq7QiIQ128sq12Qq12QQd64Q28QQIIQQQ256sQd")


class Family(IntEnum):
    """The MPI family that defines the constants and handles of the process."""

    UNKNOWN = 0
    MPICH = 1
    OPENMPI = 2
    STANDARD_ABI = 3


class ProcessState(IntEnum):
    """How far the process had got."""

    LOADED = 0
    INITIALIZED = 1
    FINALIZED = 2
    ABORTED = 3


class IoCounters(NamedTuple):
    """The kernel's counters of a process (`proc_pid_io(5)`): bytes and calls of its reads and writes, and bytes that
    storage devices moved for it. `at_s` is seconds since the epoch."""

    at_s: float
    read_B: int
    written_B: int
    read_calls: int
    write_calls: int
    device_read_B: int
    device_written_B: int
    cancelled_B: int


class SampledCpu(CpuUse):
    """CPU time between two samples of a process, and what all CPUs of its node did meanwhile."""

    node_busy_s: float | None
    node_steal_s: float | None


class CpuRight(NamedTuple):
    """The CPUs that a process may use: its affinity `mask` as CPU numbers, of those `online`, and the `quota` of its
    control groups in CPUs, None if there is none."""

    mask: tuple[int, ...]
    online: int
    quota: float | None


class DamageError(Exception):
    """A table is not what its header claims; `text` is the evidence."""

    def __init__(self, why: str, text: str = "") -> None:
        self.why = why
        self.text = text
        super().__init__(why)


def require(condition: bool, why: str, text: str = "") -> None:
    """Raise DamageError unless the condition holds."""
    if not condition:
        raise DamageError(why, text)


class Header(NamedTuple):
    """The fields of `struct seatrial_header`, in order."""

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
    unknown_length: int
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
    cpu_first: tuple[int, ...]
    cpu_last: tuple[int, ...]
    online: int
    quota: float
    mask: tuple[int, ...]
    times_system_calls: int
    system_uses: tuple[tuple[int, ...], ...]
    extension_offset: int
    rows: int
    path_frames: int
    places_bytes: int
    places_used: int
    lost_places: int
    script: bytes
    noncontiguous_bytes: int
    reading_ticks: float

    def cpu_right(self) -> CpuRight | None:
        """The CPUs that the process may use; None in older tables of processes that did not reach the end of MPI.
        Raises DamageError."""
        if not self.online:
            return None
        require(self.online <= _MOST_ONLINE, f"it claims {self.online} CPUs")
        require(isfinite(self.quota) and self.quota >= 0, f"invalid CPU quota: {self.quota:g}")
        words = ((word, bits) for word, bits in enumerate(self.mask) if bits)
        mask = tuple(64 * word + bit for word, bits in words for bit in range(64) if bits >> bit & 1)
        return CpuRight(mask, self.online, self.quota or None)

    def kernel_uses(self, rate: float, *more: tuple[int, int]) -> tuple[SystemUse, ...] | None:
        """The calls that enter the kernel; None if they were not timed. `rate`: ticks per second; `more`: calls and
        ticks of SystemCall.LOCK and what follows, which are not in the header."""
        if self.version == OLD_VERSION or not self.times_system_calls:
            return None
        return tuple(
            SystemUse(kind, calls, ticks / rate, moved)
            for kind, (calls, ticks, moved) in zip(
                SystemCall, (*self.system_uses, *((*one, 0) for one in more)), strict=True
            )
        )

    def initialized_s(self, rate: float) -> float | None:
        """Seconds from loading to the end of MPI_Init; None if that was not reached."""
        since = self.initialized_at - self.loaded_at
        return since / rate if self.initialized_at and since >= 0 else None


_UNREPORTED = (1 << 64) - 1
_MOST_ONLINE = 1 << 20


def parse_header(data: bytes) -> Header:
    """The first HEADER.size bytes of a table."""
    fields = iter(HEADER.unpack(data))

    def taken(count: int) -> tuple[Any, ...]:
        return tuple(islice(fields, count))

    known = [*taken(23), *(taken(8) for _ in range(3)), *taken(4), *(taken(13) for _ in range(2)), *taken(2)]
    known += [taken(64), next(fields), tuple(taken(3) for _ in range(9))]
    extension, rows, *later = fields
    return Header._make((*known, extension, rows or SLOTS, *later))


def text_of(field: bytes) -> str:
    """The text in a field of fixed size, up to the first zero."""
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def io_counters(fields: tuple[int, ...]) -> IoCounters | None:
    """A sample of input and output; None if it was not taken."""
    at_ns, *counters = fields
    return IoCounters(at_ns / 1e9, *counters) if at_ns else None


def cpu_use(first: tuple[int, ...], last: tuple[int, ...]) -> SampledCpu | None:
    """The growth of the counters; None if a sample is missing. A counter that shrank counts as unreported."""
    if not first[0] or not last[0]:
        return None
    require(last[0] >= first[0], "the last sample of CPU time is before the first")
    grown: list[int | None] = [
        after - before if before <= after < _UNREPORTED else None
        for before, after in zip(first[1:], last[1:], strict=True)
    ]
    cpu, delay, voluntary, involuntary, minor, major, _, throttled, throttled_periods, periods, busy, steal = grown
    most_resident_B = last[7] if last[7] != _UNREPORTED else None
    share = throttled_periods / periods if throttled_periods is not None and periods else None
    return SampledCpu(
        wall_s=(last[0] - first[0]) / 1e9,
        cpu_s=_seconds(cpu),
        delay_s=_seconds(delay),
        voluntary=voluntary,
        involuntary=involuntary,
        minor_faults=minor,
        major_faults=major,
        most_resident_B=most_resident_B,
        throttled_s=_seconds(throttled),
        throttled_share=share if share is None else min(1.0, share),
        node_busy_s=_seconds(busy),
        node_steal_s=_seconds(steal),
    )


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9
