"""Hardware counters of a rank, from MPI_Init to the end of MPI, of all its threads and in user mode."""

from __future__ import annotations

from collections.abc import Mapping
from errno import EACCES, EPERM
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Hidden, Key, Later, NonNegative, Share, key, published

LINE_B = 64
"""A cache line of the processors whose lines from memory are counted."""


class NodeLimits(Frozen):
    """What was measured on the machine that all ranks ran on; null: not measured.

    The highest memory bandwidth in B/s and floating-point rate in flop/s.
    """

    memory_Bps: Annotated[NonNegative | None, Key("memory_bytes_per_s")]
    flops: Annotated[NonNegative | None, Key("flops_per_s")]


class MpiCounters(Frozen):
    """The part of the counts in MPI calls of the thread that initialised MPI, of all threads meanwhile.

    They are read in some of the calls, and scaled to all of the time in MPI: `counted_share` is the part of it in which
    they were. None: not counted.
    """

    mpi_s: Annotated[NonNegative, "time in these calls"]
    counted_share: Annotated[Share, "of it in which counters were read; scaled by it"]
    cycles: NonNegative | None
    instructions: NonNegative | None
    cache_misses: NonNegative | None
    memory_lines: Annotated[NonNegative | None, "of 64 B"]
    flops: NonNegative | None

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle."""
        return _ratio(self.instructions, self.cycles)


def _ratio(of: float | None, to: float | None) -> float | None:
    return of / to if of is not None and to else None


def _by_text(of: Mapping[int, float]) -> dict[str, float]:
    return {str(key): value for key, value in of.items()}


@published("Counters")
class RankCounters(Frozen):
    """Hardware counters of a rank from MPI_Init to the end of MPI, all threads, user mode; null: not supported or not
    permitted. Scaled to the whole time where counters took turns.

    `least_share` is the smallest part of the time in which one of them counted. `cache_misses` are those of the second
    level on AMD. `memory_lines` are fills of the data cache from memory. `wall_s` is the time in which they counted.
    `in_mpi` is the part in MPI.
    """

    wall_s: Hidden[float]
    cycles: NonNegative | None
    instructions: NonNegative | None
    cache_misses: Annotated[NonNegative | None, "of the level of the kernel's generic event: the last on Intel"]
    memory_lines: Hidden[float | None]
    fp_instructions: Annotated[
        Mapping[int, float], As(dict[str, float], to=_by_text), "operations of one instruction -> such instructions"
    ]
    flops: Annotated[NonNegative | None, "floating-point operations; a fused multiply-add counts as two"]
    least_share: Annotated[Share, "of the time in which a counter counted"]
    errors: Annotated[tuple[int, ...], "errno of what could not be counted"] = ()
    paranoid: Annotated[int | None, "kernel.perf_event_paranoid"] = None
    has_unit: Hidden[bool] = True
    in_mpi: Later[Annotated[MpiCounters | None, "null: not known"]] = None

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
    @key
    def memory_B(self) -> Annotated[NonNegative | None, Key("memory_bytes"), "from memory into the data cache"]:
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
