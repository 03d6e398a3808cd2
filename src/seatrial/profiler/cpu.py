"""CPU time of a rank and its node, over time and in slices."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Annotated, Any

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Key, Keywords, NonNegative


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
    each slice of `width_s`."""

    width_s: float
    waiting_s: float
