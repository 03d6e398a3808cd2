"""Made-up extensions of tables: the bytes that `profiler/native/extension.h` describes."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.tables.extension import (
    COUNTER,
    EXTENSION_B,
    HEAD,
    MOST_COUNTERS,
    MOST_PARALLEL,
    MOST_REGIONS,
    OPENMP,
    PARALLEL,
    REGION,
    REGIONS,
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
) -> bytes:
    """`counters`: kind, errno, value, enabled and running ns. `regions`: number of the parent, name, begun, ended,
    ticks, MPI ticks, CPU ns. `openmp` and `parallel` in the order of the file. None: not requested."""
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
    return b"".join(parts).ljust(EXTENSION_B, b"\0")
