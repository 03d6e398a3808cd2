"""CPU time of a rank and its node, over time and in slices."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from errno import EACCES, EPERM
from typing import Annotated, Any

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Count, Hidden, Key, Keywords, Later, NonNegative, Share, key, published


class CpuUse(Frozen):
    """CPU time of a process during `wall_s` seconds; None where the kernel did not report it.

    `delay_s` is the time that its threads, summed, were ready to run without running. `throttled_s` is the time that
    the control group with the smallest quota was throttled, `throttled_share` the share of the quota's periods in which
    it was used up. `most_resident_B` is since the start of the process.
    """

    wall_s: NonNegative
    cpu_s: NonNegative | None
    delay_s: Annotated[NonNegative | None, Key("run_delay_s"), "its threads were ready to run, but did not"]
    voluntary: Annotated[Count | None, Key("voluntary_switches")]
    involuntary: Annotated[Count | None, Key("involuntary_switches")]
    minor_faults: Count | None
    major_faults: Count | None
    most_resident_B: Annotated[Count | None, Key("most_resident_bytes")]
    throttled_share: Annotated[float | None, Keywords(minimum=0, maximum=1), "of the quota's periods"]
    throttled_s: Annotated[NonNegative | None, "of the control group with the smallest CPU quota"]

    def counted(self) -> dict[str, Any]:
        """Only what this class counts, as keywords for a class that adds to it."""
        return {name: getattr(self, name) for name in _COUNTED}


_COUNTED = CpuUse.__struct_fields__
NOT_COUNTED: dict[str, Any] = dict.fromkeys(
    ("voluntary", "involuntary", "minor_faults", "major_faults", "most_resident_B")
)
"""Keywords for a record of CPU time alone."""


class CpuSlices(Frozen):
    """Columns of equal length, in seconds: at `at_s` since the first rank of the program was loaded, the rank had used
    `cpu_s`, and its threads had been ready to run without running for `delay_s`, both since the first row. `busy_s` and
    `steal_s` are those of all CPUs of the node, nan where the kernel did not report it."""

    at_s: array[float]
    cpu_s: array[float]
    delay_s: array[float]
    busy_s: array[float]
    steal_s: array[float]

    @property
    def span_s(self) -> float:
        """The time from the first row to the last one."""
        return self.at_s[-1] - self.at_s[0] if len(self.at_s) else 0.0

    def growth(self, column: array[float], begin_s: float, end_s: float) -> float:
        """How far one of the columns grew between two times; within a slice, evenly."""
        return self._value(column, end_s) - self._value(column, begin_s)

    def _value(self, column: array[float], at_s: float) -> float:
        place = bisect_right(self.at_s, at_s)
        if place == 0 or place == len(self.at_s):
            return column[0] if place == 0 else column[-1]
        before, after = self.at_s[place - 1], self.at_s[place]
        return column[place - 1] + (column[place] - column[place - 1]) * (at_s - before) / (after - before)


class SliceDifferences(Frozen):
    """If ranks differed in their time outside MPI only, they would wait `waiting_s` together for the slowest one of
    each slice of `width_s`. For `all_inside_s` at least, all ranks were in MPI at the same time."""

    width_s: float
    waiting_s: float
    all_inside_s: float = 0.0


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
        """Instructions per cycle outside MPI; None if the part in MPI is unknown."""
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
