"""What a process's table holds beside its MPI calls: hardware counters, regions that the program names, OpenMP, and CPU
time over time.

The format is defined in `profiler/native/extension.h`. A table may come from anywhere: every number is checked or
bounded here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from seatrial.model.frozen import Frozen

EXTENSION_B = 6 * 4096
EXTENSION_WITHOUT_CODE_B = 4 * 4096
"""Up to version 3."""
MOST_COUNTERS = 16
MOST_REGIONS = 64
MOST_PARALLEL = 64
MOST_CPU_SAMPLES = 64
MOST_OPERATIONS = 11
MOST_SPOTS, MOST_RETURNS = 24, 12

HEAD = struct.Struct("<IiQ")
COUNTER = struct.Struct("<IiQQQ")
REGIONS = struct.Struct("<7Q")
REGION = struct.Struct("<II64s5Q")
OPENMP = struct.Struct("<3Q")
PARALLEL = struct.Struct("<10Q")
REGIONS_AT = HEAD.size + MOST_COUNTERS * COUNTER.size
OPENMP_AT = REGIONS_AT + REGIONS.size + MOST_REGIONS * REGION.size
SLICES = struct.Struct("<3Q")
CPU_SAMPLE = struct.Struct("<5Q")
SLICES_AT = OPENMP_AT + OPENMP.size + MOST_PARALLEL * PARALLEL.size
SPLIT = struct.Struct("<4Q")
IN_MPI = struct.Struct("<3Q")
KERNEL = struct.Struct("<15Q")
SPLIT_AT = SLICES_AT + SLICES.size + MOST_CPU_SAMPLES * CPU_SAMPLE.size
UNTIMED = struct.Struct("<Q")
OPERATION = struct.Struct("<4Q")
KERNEL_AT = SPLIT_AT + SPLIT.size + MOST_COUNTERS * IN_MPI.size
UNTIMED_AT = KERNEL_AT + KERNEL.size
CODE_COUNT = struct.Struct("<Q")
SPOT = struct.Struct("<QQ128s")
CODE_AT = UNTIMED_AT + UNTIMED.size + MOST_OPERATIONS * OPERATION.size

_COUNTERS_REQUESTED, _OPENMP_REQUESTED = 1, 2
_UNKNOWN_LEVEL = -(1 << 31)
_UNREPORTED = (1 << 64) - 1


class CpuCounterKind(IntEnum):
    """What a hardware counter counts, in user mode; FP_n: instructions of n floating-point operations each."""

    CYCLES = 1
    INSTRUCTIONS = 2
    CACHE_MISSES = 3
    LINES_FROM_MEMORY = 4
    FP_1 = 5
    FP_2 = 6
    FP_4 = 7
    FP_8 = 8
    FP_16 = 9
    FP_ALL = 10


class Counter(NamedTuple):
    """One counter from MPI_Init to the end of MPI, all threads. It counted for `running_ns` of `enabled_ns`: if there
    are more events than counters, they take turns. `error` is the errno if it could not be opened or read."""

    kind: CpuCounterKind
    error: int
    value: int
    enabled_ns: int
    running_ns: int


class Counters(Frozen):
    """The counters of a process. `paranoid` is kernel.perf_event_paranoid, None if unknown; `has_unit`: whether the
    kernel knows a unit with hardware counters."""

    paranoid: int | None
    has_unit: bool
    list: tuple[Counter, ...]
    split: CounterSplit


class InMpi(NamedTuple):
    """What one counter counted in MPI calls; times as in Counter."""

    value: int
    enabled_ns: int
    running_ns: int


class CounterSplit(NamedTuple):
    """The MPI calls of the thread that initialised MPI: `ticks` of all, `counted_ticks` and `counted_calls` of those in
    which the counters were read; `own_ticks` were spent on reading. `in_mpi` is in the order of the counters."""

    ticks: int
    counted_ticks: int
    counted_calls: int
    own_ticks: int
    in_mpi: tuple[InMpi, ...]


class CpuSample(NamedTuple):
    """CPU time of a process so far, and of its node, in ns; None where the kernel did not report it. `at` is in ticks
    since the process was loaded."""

    at: int
    cpu_ns: int | None
    delay_ns: int | None
    busy_ns: int | None
    steal_ns: int | None


class CpuSamples(Frozen):
    """In order of time. `own_ticks` were spent on taking them."""

    own_ticks: int
    list: tuple[CpuSample, ...]


class KernelUse(NamedTuple):
    """`system_ns` is the CPU time in the kernel from MPI_Init to the end of MPI, `children_ns` that of its children and
    theirs, None if unknown. `locks` and `threads` are calls and ticks outside MPI: waiting for locks of
    files and semaphores, and for threads of the process. A short loop, the same on all ranks, was run `loops` times and
    took `loop_ns` of CPU time, and at least `least_loop_ns`. MPI_Waitany and MPI_Testany were given `any_requests` in
    `any_calls`."""

    system_ns: int | None
    locks: tuple[int, int]
    threads: tuple[int, int] = (0, 0)
    children_ns: int | None = None
    loops: int = 0
    loop_ns: int = 0
    least_loop_ns: int = 0
    any_calls: int = 0
    any_requests: int = 0


class RegionRow(NamedTuple):
    """One region: `parent` is the position of the enclosing one in the table, None: none. Times are sums over threads;
    `ticks` is from begin to end without the time that recording was stopped, `mpi_ticks` the part of it in MPI,
    `cpu_ns` the CPU time of the calling threads."""

    parent: int | None
    name: str
    begun: int
    ended: int
    ticks: int
    mpi_ticks: int
    cpu_ns: int


class Regions(Frozen):
    """The regions of a process: number k of a row is `rows[k - 1]`. `lost`: begun without a row; `unbegun`: ended, but
    not begun; `crossed`: ended by an enclosing region; `early`: before MPI_Init or after MPI_Finalize. `stopped_ticks`:
    not recorded because of MPI_Pcontrol(0); `stopped_at`: since then, until the end; 0: recording at the end."""

    lost: int
    unbegun: int
    crossed: int
    early: int
    stops: int
    stopped_ticks: int
    stopped_at: int
    rows: tuple[RegionRow, ...]


class ParallelRow(Frozen):
    """The parallel regions begun at one call site (`site` is a return address). `ticks` is the time of the thread that
    began them. `arrived` threads reached their ends: after `busy_ticks` together; `longest_ticks` sums the time of the
    last one, `last_ticks` that times the number of threads. `barriers` and `barrier_ticks`: within them, over
    threads."""

    site: int
    count: int
    most_threads: int
    ticks: int
    arrived: int
    busy_ticks: int
    longest_ticks: int
    last_ticks: int
    barriers: int
    barrier_ticks: int


class OpenMp(Frozen):
    """OpenMP in a process. `runtimes` reported to the profiler; `lost`: parallel regions without a row, or outside MPI;
    `outer_ticks`: the time in regions that are not nested."""

    runtimes: int
    lost: int
    outer_ticks: int
    rows: tuple[ParallelRow, ...]


class OperationRow(NamedTuple):
    """A function that the program gave to MPI_Op_create, at the address `function`: `made` operations, for which MPI
    called it `calls` times in `ticks`. The address 0: all functions that have no row, together."""

    function: int
    made: int
    calls: int
    ticks: int


class Operations(Frozen):
    """The reduction operations of a program; of `untimed` ones neither calls nor time are known."""

    untimed: int
    rows: tuple[OperationRow, ...]


class CodeRow(NamedTuple):
    """An address, how often the thread that initialised MPI was seen there, and the code around it."""

    address: int
    samples: int
    code: bytes


class OwnCode(Frozen):
    """Where the thread that initialised MPI executed in user code: all samples, the places with most of them (at
    least so many, each), and those behind system calls."""

    samples: int
    spots: tuple[CodeRow, ...] = ()
    returns: tuple[CodeRow, ...] = ()


class Extension(Frozen):
    """None where it was not requested."""

    counters: Counters | None
    regions: Regions
    openmp: OpenMp | None
    samples: CpuSamples
    kernel: KernelUse
    operations: Operations
    code: OwnCode = OwnCode(0)


def parse_extension(data: bytes, loaded_at: int) -> Extension:
    """The extension in these bytes, EXTENSION_B or without samples of code; the process was loaded at `loaded_at`
    ticks. Raises ValueError with the reason for inconsistent ones."""
    requested, paranoid, has_unit = HEAD.unpack_from(data)
    return Extension(
        counters=_counters(data, paranoid, bool(has_unit)) if requested & _COUNTERS_REQUESTED else None,
        regions=_regions(data),
        openmp=_openmp(data) if requested & _OPENMP_REQUESTED else None,
        samples=_samples(data, loaded_at),
        kernel=_kernel(data),
        operations=_operations(data),
        code=_code(data) if len(data) >= EXTENSION_B else OwnCode(0),
    )


def _code(data: bytes) -> OwnCode:
    (samples,) = CODE_COUNT.unpack_from(data, CODE_AT)
    rows = [CodeRow(*one) for one in _rows(SPOT, data, CODE_AT + CODE_COUNT.size, MOST_SPOTS + MOST_RETURNS)]
    if sum(one.samples for one in rows) > samples:
        raise ValueError(f"places of code were seen more often than its {samples} samples")
    spots, returns = rows[:MOST_SPOTS], rows[MOST_SPOTS:]
    return OwnCode(samples, tuple(one for one in spots if one.samples), tuple(one for one in returns if one.samples))


def _operations(data: bytes) -> Operations:
    (untimed,) = UNTIMED.unpack_from(data, UNTIMED_AT)
    rows = [OperationRow(*one) for one in _rows(OPERATION, data, UNTIMED_AT + UNTIMED.size, MOST_OPERATIONS)]
    return Operations(untimed, tuple(one for one in rows if one.made or one.calls))


def _kernel(data: bytes) -> KernelUse:
    first, last, *rest = KERNEL.unpack_from(data, KERNEL_AT)
    locks, threads, (children_first, children_last, *numbers) = rest[:2], rest[3:5], rest[6:]
    loops, loop_ns, least_ns = numbers[:3]
    if loops * least_ns > loop_ns:
        raise ValueError(f"{loops} loops of at least {least_ns} ns took {loop_ns} ns")
    is_known = last >= first > 0
    return KernelUse(
        last - first if is_known else None,
        (locks[0], locks[1]),
        (threads[0], threads[1]),
        max(0, children_last - children_first) if is_known else None,
        *numbers,
    )


def _counters(data: bytes, paranoid: int, has_unit: bool) -> Counters:
    found = []
    for kind, *numbers in _rows(COUNTER, data, HEAD.size, MOST_COUNTERS):
        if kind == 0:
            break
        if kind > max(CpuCounterKind):
            raise ValueError(f"unknown kind of counter: {kind}")
        counter = Counter(CpuCounterKind(kind), *numbers)
        if counter.running_ns > counter.enabled_ns:
            raise ValueError(f"a counter ran for {counter.running_ns} of {counter.enabled_ns} ns")
        found.append(counter)
    split = _split(data, len(found))
    return Counters(None if paranoid == _UNKNOWN_LEVEL else paranoid, has_unit, tuple(found), split)


def _split(data: bytes, counters: int) -> CounterSplit:
    ticks, counted, calls, own = SPLIT.unpack_from(data, SPLIT_AT)
    if counted > ticks:
        raise ValueError(f"counters were read in {counted} of {ticks} ticks in MPI")
    in_mpi = tuple(InMpi(*one) for one in _rows(IN_MPI, data, SPLIT_AT + SPLIT.size, counters))
    if wrong := next((one for one in in_mpi if one.running_ns > one.enabled_ns), None):
        raise ValueError(f"a counter ran for {wrong.running_ns} of {wrong.enabled_ns} ns in MPI")
    return CounterSplit(ticks, counted, calls, own, in_mpi)


def _samples(data: bytes, loaded_at: int) -> CpuSamples:
    """Without those that are not later than the one before: a process that was killed while it dropped some has them
    twice."""
    _, used, own = SLICES.unpack_from(data, SLICES_AT)
    if used > MOST_CPU_SAMPLES:
        raise ValueError(f"it claims {used} samples of CPU time")
    found: list[CpuSample] = []
    last = loaded_at
    for at, *values in _rows(CPU_SAMPLE, data, SLICES_AT + SLICES.size, used):
        if at > last:
            found.append(CpuSample(at - loaded_at, *(None if value == _UNREPORTED else value for value in values)))
            last = at
    return CpuSamples(own, tuple(found))


def _regions(data: bytes) -> Regions:
    lost, unbegun, crossed, early, stops, stopped, stopped_at = REGIONS.unpack_from(data, REGIONS_AT)
    rows: list[RegionRow] = []
    for is_there, parent, name, begun, ended, *ticks in _rows(REGION, data, REGIONS_AT + REGIONS.size, MOST_REGIONS):
        if not is_there:
            break
        if parent > len(rows):
            raise ValueError(f"region {len(rows) + 1} is in region {parent}, which comes later")
        if ended > begun:
            raise ValueError(f"region {len(rows) + 1} was begun {begun} times and ended {ended} times")
        text = name.split(b"\0", 1)[0].decode("utf-8", "replace")
        rows.append(RegionRow(parent - 1 if parent else None, text, begun, ended, *ticks))
    return Regions(lost, unbegun, crossed, early, stops, stopped, stopped_at, tuple(rows))


def _openmp(data: bytes) -> OpenMp:
    runtimes, lost, outer = OPENMP.unpack_from(data, OPENMP_AT)
    rows = []
    for fields in _rows(PARALLEL, data, OPENMP_AT + OPENMP.size, MOST_PARALLEL):
        row = ParallelRow(*fields)
        if not row.site:
            break
        if row.count:
            rows.append(row)
    return OpenMp(runtimes, lost, outer, tuple(rows))


def _rows(of: struct.Struct, data: bytes, at: int, count: int) -> Iterator[tuple[Any, ...]]:
    return of.iter_unpack(data[at : at + count * of.size])
