"""CPU time of a rank and its node over time."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from seatrial.model.frozen import Frozen


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
