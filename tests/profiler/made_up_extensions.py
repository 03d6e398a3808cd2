"""Made-up extensions of tables: the bytes that `profiler/native/extension.h` describes."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.tables.extension import (
    CODE_COUNT,
    COUNTER,
    CPU_SAMPLE,
    EXTENSION_B,
    HEAD,
    IN_MPI,
    KERNEL,
    MOST_COUNTERS,
    MOST_CPU_SAMPLES,
    MOST_OPERATIONS,
    MOST_PARALLEL,
    MOST_REGIONS,
    MOST_SPOTS,
    OPENMP,
    OPERATION,
    PARALLEL,
    REGION,
    REGIONS,
    SLICES,
    SPLIT,
    SPOT,
    UNTIMED,
)


def extension(
    *,
    counters: Sequence[tuple[int, int, int, int, int]] | None = None,
    paranoid: int = 2,
    has_unit: int = 1,
    faults: tuple[int, ...] = (0,) * 7,
    regions: Sequence[tuple[int, str, int, int, int, int, int]] = (),
    openmp: tuple[int, int, int] | None = None,
    parallel: Sequence[tuple[int, ...]] = (),
    samples: Sequence[tuple[int, ...]] = (),
    used: int | None = None,
    split: tuple[int, int, int, int] = (0, 0, 0, 0),
    in_mpi: Sequence[tuple[int, int, int]] = (),
    kernel: tuple[int, int, int, int] = (0, 0, 0, 0),
    threads: tuple[int, int] = (0, 0),
    children: tuple[int, int] = (0, 0),
    loops: tuple[int, int, int] = (0, 0, 0),
    waits_for_any: tuple[int, int] = (0, 0),
    untimed: int = 0,
    operations: Sequence[tuple[int, int, int, int]] = (),
    code: tuple[int, Sequence[tuple[int, int, bytes]], Sequence[tuple[int, int, bytes]]] = (0, (), ()),
) -> bytes:
    """`counters`: kind, errno, value, enabled and running ns. `regions`: number of the parent, name, begun, ended,
    ticks, MPI ticks, CPU ns. `openmp` and `parallel` in the order of the file. None: not requested.
    `samples`: ticks, then CPU, run delay, busy and steal in ns; `used`: the number that the table claims. `split`:
    ticks in MPI, those counted, calls counted, own ticks; `in_mpi`: value, enabled and running ns of each counter.
    `kernel`: first and last system ns, calls and ticks for locks; `threads`: these for threads; `children`: first and
    last CPU ns; `loops`: number, ns and shortest; `waits_for_any`: calls and requests. `operations`: address,
    number, calls, ticks. `code`: all samples, then address, samples and code of the spots and of the returns."""
    requested = (counters is not None) + 2 * (openmp is not None)
    parts = [HEAD.pack(requested, paranoid, has_unit)]
    parts += [COUNTER.pack(*one) for one in counters or ()]
    parts.append(bytes(COUNTER.size * (MOST_COUNTERS - len(counters or ()))))
    parts.append(REGIONS.pack(*faults))
    parts += [REGION.pack(1, parent, name.encode(), *numbers) for parent, name, *numbers in regions]
    parts.append(bytes(REGION.size * (MOST_REGIONS - len(regions))))
    parts.append(OPENMP.pack(*(openmp or (0, 0, 0))))
    parts += [PARALLEL.pack(*one) for one in parallel]
    parts.append(bytes(PARALLEL.size * (MOST_PARALLEL - len(parallel))))
    parts.append(SLICES.pack(1, len(samples) if used is None else used, 0))
    parts += [CPU_SAMPLE.pack(*one) for one in samples]
    parts.append(bytes(CPU_SAMPLE.size * (MOST_CPU_SAMPLES - len(samples))))
    parts.append(SPLIT.pack(*split))
    parts += [IN_MPI.pack(*one) for one in in_mpi]
    parts.append(bytes(IN_MPI.size * (MOST_COUNTERS - len(in_mpi))))
    parts.append(KERNEL.pack(*kernel, 0, *threads, 0, *children, *loops, *waits_for_any))
    parts.append(UNTIMED.pack(untimed))
    parts += [OPERATION.pack(*one) for one in operations]
    parts.append(bytes(OPERATION.size * (MOST_OPERATIONS - len(operations))))
    all_samples, spots, returns = code
    parts.append(CODE_COUNT.pack(all_samples))
    parts += [SPOT.pack(*one) for one in spots]
    parts.append(bytes(SPOT.size * (MOST_SPOTS - len(spots))))
    parts += [SPOT.pack(*one) for one in returns]
    return b"".join(parts).ljust(EXTENSION_B, b"\0")
