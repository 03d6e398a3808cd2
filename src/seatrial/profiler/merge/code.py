"""What samples of code say of a rank: loops of the program that only wait, and the system calls that it comes back
from."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from seatrial.profiler.cause import Caller, Resolve
from seatrial.profiler.merge.sites import located
from seatrial.profiler.profile import RankCode
from seatrial.profiler.tables.extension import CodeRow
from seatrial.profiler.tables.process_table import ProcessTable
from seatrial.profiler.waiting_code import Spot, system_call_before, waiting_loops

PERIOD_S = 5.27e-3
"""CPU time between two samples; `native/code_samples.h`."""
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\.so.*")


def rank_code(table: ProcessTable, resolve: Resolve) -> RankCode | None:
    """None without samples. Loops count in the file of the program and in libraries of OpenMP: a library of MPI waits
    in loops, too, but in MPI."""
    code = None if table.extension is None else table.extension.code
    if code is None or not code.samples:
        return None
    own = [one for row in code.spots if _is_own((one := _spot(row, table)).module, table)]
    loops = waiting_loops(own)
    calls: dict[str, int] = {}
    for row in code.returns:
        if name := system_call_before(row.code):
            calls[name] = calls.get(name, 0) + row.samples
    loop = None
    if loops:
        frames = resolve(loops[0].module, [loops[0].offset + 1])  # resolves what is before a return address
        loop = Caller(loops[0].module, loops[0].offset, frames.get(loops[0].offset + 1, ()))
    waits = sum(one.samples for one in loops)
    return RankCode(code.samples, waits, PERIOD_S * waits, loop, calls)


def _spot(row: CodeRow, table: ProcessTable) -> Spot:
    place = located(row.address, table, sorted(table.modules, key=lambda one: one.begin))
    return Spot(place.module, place.offset if place.module else row.address, row.samples, row.code)


def _is_own(module: str, table: ProcessTable) -> bool:
    return bool(module) and (module == table.program or _OPENMP.fullmatch(PurePosixPath(module).name) is not None)
