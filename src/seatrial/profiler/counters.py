"""Hardware counters of a rank, from MPI_Init to the end of MPI, of all its threads and in user mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from errno import EACCES, EPERM

LINE_B = 64
"""A cache line of the processors whose lines from memory are counted."""


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """The highest memory bandwidth in B/s and floating-point rate in flop/s measured on the machine that all ranks ran
    on; None: not measured."""

    memory_Bps: float | None
    flops: float | None


@dataclass(frozen=True, slots=True)
class RankCounters:
    """Numbers are scaled to the whole time where counters took turns; `least_share` is the smallest part of the time in
    which one of them counted. None: not supported on this machine, or not permitted.

    `cache_misses` are those of the level that the kernel's generic event counts: the last on Intel, the second on AMD.
    `memory_lines` are fills of the data cache from memory. `fp_instructions`: operations of one instruction -> such
    instructions. `flops` counts floating-point operations, a fused multiply-add as two. `wall_s` is the time in which
    they counted. `errors` are the errnos of what could not be counted; `paranoid` is kernel.perf_event_paranoid.
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

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle."""
        return self.instructions / self.cycles if self.instructions is not None and self.cycles else None

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
