"""Hardware counters of a rank, from MPI_Init to the end of MPI, of all its threads and in user mode."""

from __future__ import annotations

from collections.abc import Mapping
from errno import EACCES, EPERM

from seatrial.model.frozen import Frozen

LINE_B = 64
"""A cache line of the processors whose lines from memory are counted."""


class NodeLimits(Frozen):
    """The highest memory bandwidth in B/s and floating-point rate in flop/s measured on the machine that all ranks ran
    on; None: not measured."""

    memory_Bps: float | None
    flops: float | None


class MpiCounters(Frozen):
    """What counters counted while the thread that initialised MPI was in MPI calls, all threads of the rank meanwhile.

    They are read in some of the calls, and scaled to all of the time in MPI: `counted_share` is the part of it in which
    they were. None: not counted.
    """

    mpi_s: float
    counted_share: float
    cycles: float | None
    instructions: float | None
    cache_misses: float | None
    memory_lines: float | None
    flops: float | None

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle."""
        return _ratio(self.instructions, self.cycles)


def _ratio(of: float | None, to: float | None) -> float | None:
    return of / to if of is not None and to else None


class RankCounters(Frozen):
    """Numbers are scaled to the whole time where counters took turns; `least_share` is the smallest part of the time in
    which one of them counted. None: not supported on this machine, or not permitted.

    `cache_misses` are those of the level that the kernel's generic event counts: the last on Intel, the second on AMD.
    `memory_lines` are fills of the data cache from memory. `fp_instructions`: operations of one instruction -> such
    instructions. `flops` counts floating-point operations, a fused multiply-add as two. `wall_s` is the time in which
    they counted. `in_mpi` is the part in MPI, None if it is not known. `errors` are the errnos of what could not be
    counted; `paranoid` is kernel.perf_event_paranoid.
    """

    wall_s: float
    cycles: float | None
    instructions: float | None
    cache_misses: float | None
    memory_lines: float | None
    fp_instructions: Mapping[int, float]
    flops: float | None
    least_share: float
    errors: tuple[int, ...] = ()
    paranoid: int | None = None
    has_unit: bool = True
    in_mpi: MpiCounters | None = None

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle."""
        return _ratio(self.instructions, self.cycles)

    @property
    def ipc_outside(self) -> float | None:
        """Instructions per cycle outside MPI; None if the part in MPI is not known."""
        if self.in_mpi is None:
            return None
        return _ratio(_rest(self.instructions, self.in_mpi.instructions), _rest(self.cycles, self.in_mpi.cycles))

    @property
    def memory_B(self) -> float | None:
        """Bytes that came from memory into the data cache; None where that is not counted."""
        return None if self.memory_lines is None else self.memory_lines * LINE_B

    @property
    def is_any(self) -> bool:
        """Whether anything was counted."""
        return self.cycles is not None or self.instructions is not None or self.flops is not None

    @property
    def is_forbidden(self) -> bool:
        """Whether a setting of the system forbids it."""
        return any(error in (EACCES, EPERM) for error in self.errors)


def _rest(whole: float | None, part: float | None) -> float | None:
    return None if whole is None or part is None else max(0.0, whole - part)
