"""The energy of a phase from readings of a sensor, with an error that holds what the sensor cannot show.

A sensor gives a new value every so often, may average over a window that ends then, and is read some time later. The
value that is read at `t` is therefore about the time from `t - late_s - window_s` to `t`. A step of the power between
two values without a window between them can be anywhere there: half the interval times the step is the largest error.

Between the readings that are surely before the phase and those that are surely after it, what is late or averaged
moves no energy out, if the power outside is steady. Then the energy of the phase is that of the whole span less that
of the steady power around it.

Otherwise (the next phase follows at once) only readings that are surely inside are used. The ends of the phase have the
power that is nearest to them inside, and that of the next reading outside is in the error.

Errors are bounds of independent parts, each as likely anywhere within its bounds. Their sum is the bound of all, and
three standard deviations of it are less likely to be passed than 0.3 %: the smaller one is the error. The error of the
meter's class is a share of the energy, and is added: it is the same in all readings. Simulated in
tests/stats/test_energy.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median

from msgspec.structs import replace

from seatrial.model.frozen import Frozen

FEWEST_VALUES = 10
"""A phase with fewer values of its sensor has no energy: each end alone is uncertain by most of an interval."""
_STEADY = 4
"""So many readings show whether the power around a phase is steady."""
_STEADY_SHARE = 0.25
"""It is if it varies by less than this share of the step into the phase, or of the power if there is none."""
_DEVIATIONS = 3.0
_USUAL_SHARE = 0.7
_MAD_OF_SECOND_DIFFERENCES = 0.6745 * math.sqrt(6)
"""Their median over the standard deviation of the values, for independent normal ones."""


class Series(Frozen):
    """Values of a sensor. `at_s` are the times of the readings, strictly rising, in seconds on the clock of the phase;
    `values` are W of a gauge, or J that a counter has counted, without wraps.

    There is a new value every `refresh_s`, and a value is of up to `late_s` before its reading; a gauge averages over
    `window_s` (0: the power at one moment). `quantum` is the step of the values.
    """

    at_s: tuple[float, ...]
    values: tuple[float, ...]
    is_counter: bool
    refresh_s: float
    late_s: float = 0.0
    window_s: float = 0.0
    quantum: float = 0.0


class Energy(Frozen):
    """The energy of a phase, its mean power and its highest value of power, with their errors (half-widths)."""

    joules: float
    joules_error: float
    mean_W: float
    mean_error_W: float
    peak_W: float
    peak_error_W: float
    n_values: int
    before_W: float | None
    after_W: float | None
    """The steady power outside the phase; None if it is not known."""


def energy(series: Series, start_s: float, end_s: float, class_share: float = 0.0) -> Energy | None:
    """The energy from `start_s` to `end_s`. `class_share` is the accuracy that the meter's maker states, as a share
    of the value. None if the sensor has fewer than `FEWEST_VALUES` values in that time, or was read too seldom to see
    the ends of the phase."""
    curve = _Curve(series)
    first, last = curve.inside(start_s, end_s)
    n_values = int((end_s - start_s) / series.refresh_s) if series.is_counter else last - first + 1
    if n_values < FEWEST_VALUES:
        return None
    before, after = curve.around(start_s, end_s)
    if before is not None and after is not None:
        low, high = before.reading, after.reading
        joules = curve.between(low, high) - before.of(start_s - curve.at_s[low]) - after.of(curve.at_s[high] - end_s)
        bounds = [*curve.ends(before.power_W, after.power_W)]
        bounds += [before.unsure(start_s - curve.at_s[low]), after.unsure(curve.at_s[high] - end_s)]
    elif last - first < FEWEST_VALUES:
        return None
    else:
        low, high = first, last
        starts, ends = curve.levels_inside(first, last)
        starts, ends = curve.or_outside(starts, first - 1), curve.or_outside(ends, last + 1)
        joules = curve.between(low, high) + starts.of(curve.at_s[low] - start_s) + ends.of(end_s - curve.at_s[high])
        bounds = [*curve.ends(starts.power_W, ends.power_W), curve.shifted(starts.power_W, ends.power_W)]
        bounds += [starts.unsure(curve.at_s[low] - start_s), ends.unsure(end_s - curve.at_s[high])]
    length_s = end_s - start_s
    bounds.append(curve.rounding(length_s))
    error = _combined(bounds, curve.steps(low, high), curve.noise(low, high)) + class_share * abs(joules)
    peak = curve.highest(low, high)
    return Energy(
        joules,
        error,
        joules / length_s,
        error / length_s,
        peak,
        class_share * peak + curve.peak_error_W(peak),
        n_values,
        None if before is None else before.power_W,
        None if after is None else after.power_W,
    )


def _combined(bounds: Sequence[float], steps: Sequence[float], noise: float) -> float:
    """What varies is taken for steps or for noise, whichever is the larger error: it is the same variation."""
    all_bounds = [*bounds, *steps]
    as_steps = min(sum(all_bounds), _DEVIATIONS * math.sqrt(sum(bound**2 for bound in all_bounds) / 3))
    return max(as_steps, _DEVIATIONS * math.sqrt(sum(bound**2 for bound in bounds) / 3 + noise**2))


def refresh_interval(at_s: Sequence[float], values: Sequence[float]) -> float | None:
    """How often a sensor gives a new value, in seconds, from readings that are close together: the median time between
    changes of the value. None with fewer than three changes."""
    changed = [at for at, (old, new) in zip(at_s[1:], pairwise(values), strict=True) if old != new]
    gaps = [later - earlier for earlier, later in pairwise(changed)]
    return median(gaps) if len(gaps) >= 2 else None


def unwrapped(values: Sequence[float], modulus: float | None) -> list[float | None]:
    """The values of a counter that starts again at 0 after `modulus`, as they would be without. A step backwards of a
    counter whose modulus is unknown, or to within a tenth of where it was (no counter has counted all the rest
    meanwhile), is an error of the source: None there, and counting goes on with the next value."""
    found: list[float | None] = []
    last, total = None, 0.0
    for value in values:
        if last is None:
            total = value
        elif value >= last:
            total += value - last
        elif modulus is not None and last - value > modulus / 10:
            total += value + modulus - last
        else:
            found.append(None)
            continue
        last = value
        found.append(total)
    return found


class _Level(Frozen):
    """Power beside a reading: W, by how much it varies, and how long a single value is about, in seconds."""

    reading: int
    power_W: float
    spread_W: float
    value_s: float

    def of(self, length_s: float) -> float:
        return self.power_W * length_s

    def unsure(self, length_s: float) -> float:
        return self.spread_W * (abs(length_s) + self.value_s)


class _Curve:
    """The energy up to each reading, and the power of each interval."""

    def __init__(self, series: Series) -> None:
        self._series = series
        shift = series.late_s / 2 + (0.0 if series.is_counter else series.window_s / 2)
        self.at_s = [at - shift for at in series.at_s]
        self._gaps = [later - earlier for earlier, later in pairwise(self.at_s)]
        if series.is_counter:
            self._total = list(series.values)
            self.powers = [
                (later - earlier) / gap
                for (earlier, later), gap in zip(pairwise(series.values), self._gaps, strict=True)
            ]
        else:
            self.powers = list(series.values)
            areas = (
                (one + other) / 2 * gap for (one, other), gap in zip(pairwise(self.powers), self._gaps, strict=True)
            )
            self._total = [0.0, *accumulate(areas)]

    @property
    def _reach_s(self) -> float:
        """By how much a reading's time and the time that its value is about differ at most."""
        return self._series.late_s / 2 + self._series.window_s / 2

    def inside(self, start_s: float, end_s: float) -> tuple[int, int]:
        """The first and last reading whose values are of the phase alone."""
        first = bisect_left(self.at_s, start_s + self._reach_s)
        last = bisect_right(self.at_s, end_s - self._reach_s) - 1
        return first, last

    def around(self, start_s: float, end_s: float) -> tuple[_Level | None, _Level | None]:
        """The steady power before and after the phase."""
        low = bisect_right(self.at_s, start_s - self._reach_s) - 1
        high = bisect_left(self.at_s, end_s + self._reach_s)
        first, last = self.inside(start_s, end_s)
        within = self.powers[max(0, first - 1) : last + 1]
        if not within:
            return None, None
        step = fmean(within)
        return self._steady(low - _STEADY + 1, low, low, step), self._steady(high, high + _STEADY - 1, high, step)

    def _steady(self, low: int, high: int, reading: int, power_inside_W: float) -> _Level | None:
        if low < 0 or high >= len(self.at_s):
            return None
        found = self.level(low, high)
        allowed = _STEADY_SHARE * max(abs(power_inside_W - found.power_W), self._series.quantum)
        return None if found.spread_W > allowed else replace(found, reading=reading)

    def level(self, low: int, high: int) -> _Level:
        """The power from one reading to another. A counter that is late shows an interval with too little and the next
        with too much: only their sum is known, and the ends of it."""
        if not self._series.is_counter:
            powers = self.powers[low : high + 1]
            return _Level(low, fmean(powers), (max(powers) - min(powers)) / 2, self._reach_s)
        powers, span_s = self.powers[low:high], self.at_s[high] - self.at_s[low]
        power = self.between(low, high) / span_s
        by_lateness = self._series.late_s * power / min(self._gaps[low:high])
        spread = max(0.0, (max(powers) - min(powers)) / 2 - by_lateness) + self._series.late_s * power / span_s
        return _Level(low, power, spread, self._reach_s)

    def levels_inside(self, first: int, last: int) -> tuple[_Level, _Level]:
        """The power at either end of the phase, from the values that are about the next moments: what is not seen may
        have any power that is seen there."""
        reach = self._series.late_s + self._series.window_s
        to = max(first + 3, bisect_right(self.at_s, self.at_s[first] + reach))
        since = min(last - 3, bisect_left(self.at_s, self.at_s[last] - reach) - 1)
        return self._any_of(first, min(to, last)), self._any_of(max(since, first), last)

    def or_outside(self, level: _Level, reading: int) -> _Level:
        """The level of an end, which may as well have the power of the next reading outside, if there is one."""
        if not 0 <= reading < len(self.powers):
            return level
        return replace(level, spread_W=max(level.spread_W, abs(self.powers[reading] - level.power_W)), value_s=0.0)

    def _any_of(self, low: int, high: int) -> _Level:
        powers = self.powers[low : high if self._series.is_counter else high + 1]
        return replace(self.level(low, high), spread_W=max(powers) - min(powers))

    def shifted(self, starts_W: float, ends_W: float) -> float:
        """What a gauge that is late by an unknown time moves into or out of the phase."""
        return 0.0 if self._series.is_counter else self._series.late_s / 2 * abs(ends_W - starts_W)

    def between(self, low: int, high: int) -> float:
        """The energy from one reading to another."""
        return self._total[high] - self._total[low]

    def steps(self, low: int, high: int) -> list[float]:
        """For each interval, the largest errors of a step within it. A counter misses nothing. Of a gauge, the power
        before its window is missed; and values are late by more or less: one of them may be read twice, and the next
        one never."""
        if self._series.is_counter:
            return []
        late, window = self._series.late_s, self._series.window_s
        found = []
        for gap, (one, other) in zip(self._gaps[low:high], pairwise(self.powers[low : high + 1]), strict=True):
            half = abs(other - one) / 2
            found += [max(0.0, max(gap, self._series.refresh_s) - window) * half, late * half]
        return found

    def ends(self, before_W: float, after_W: float) -> list[float]:
        """What a counter may be behind at either end."""
        late = self._series.late_s / 2 if self._series.is_counter else 0.0
        return [late * abs(before_W), late * abs(after_W)]

    def rounding(self, length_s: float) -> float:
        """A steady power is always rounded by as much; of a counter, only the ends are."""
        return self._series.quantum / 2 * (2.0 if self._series.is_counter else length_s)

    def noise(self, low: int, high: int) -> float:
        """Standard deviation of what a gauge misses of a power that varies faster than it shows."""
        values, window = self.powers[low : high + 1], self._series.window_s
        if self._series.is_counter or len(values) < FEWEST_VALUES:
            return 0.0
        second = [abs(one - 2 * two + three) for one, two, three in zip(values, values[1:], values[2:], strict=False)]
        usual = median(second) / _MAD_OF_SECOND_DIFFERENCES  # a few steps do not show in it,
        spread = min(usual, math.sqrt(fmean(one**2 for one in second) / 6))  # and many steps less in this
        gaps = self._gaps[low:high]
        return spread * math.sqrt(sum(max(0.0, gap - window) ** 2 for gap in gaps))

    def highest(self, low: int, high: int) -> float:
        """The highest power. Of a counter, intervals that are much shorter than usual are left out: one that is read
        late is followed by one that is too short. Where it stood still, the next step is of all that time."""
        if not self._series.is_counter:
            return max(self.powers[low : high + 1])
        usual_s = median(self._gaps[low:high])
        highest, joules, length_s = 0.0, 0.0, 0.0
        for power, gap in zip(self.powers[low:high], self._gaps[low:high], strict=True):
            joules, length_s = joules + power * gap, length_s + gap
            if power > 0.0:
                if length_s >= _USUAL_SHARE * usual_s:
                    highest = max(highest, joules / length_s)
                joules, length_s = 0.0, 0.0
        return highest

    def peak_error_W(self, peak_W: float) -> float:
        """Rounding of the highest power, and of a counter what it may be late by."""
        quantum = self._series.quantum
        if not self._series.is_counter:
            return quantum / 2
        return (quantum + self._series.late_s * peak_W) / median(self._gaps)
