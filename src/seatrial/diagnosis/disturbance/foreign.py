"""Other processes whose load comes and goes over the repeats of an experiment: which repeats had it, and how far apart
they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from seatrial.diagnosis.cpu import LEAST_DELAY, cpus_words, others_words
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import cpu_list, show
from seatrial.stats.bursts import recurring

LEAST_NEIGHBOUR = 0.5
"""CPUs of others from which on they take a noticeable part of the memory bandwidth, however many CPUs are idle: one
neighbour cost a triad of one thread a fifth on a node of few CPUs."""
_STEP_S = 0.2
"""Repeats in a row are one step until they last so long: the kernel counts in steps of 10 ms on each CPU."""
_LEAST_STEPS = 6
_HAD = 0.5
"""A step with this part of the load of the fullest ones had the load."""
_QUIET = 0.25
"""The other steps have at most this part of it, on average: else the load only varies."""
_MOST = 0.75
"""Load in more of the steps is there all the time."""
_FULLEST = 20
"""The fullest step is the last but one in this many: a single one says nothing."""
_APART = 4
"""Steps between bursts, at least: bursts that come more often are not distinguished from each other."""
_LEAST_BURSTS = 4
"""Three are at equal distances by chance too often."""
_MOST_IN_BURSTS = 0.5
_COVERED = 0.7
_SESSION = 5
"""A gap of more steps than this ends a session."""
_MOST_NAMED = 6

Timed = tuple[int, float, Mapping[str, Any]]
"""(number of the repeat, its start in seconds since the epoch, what it recorded)."""


def others_cpus(seen: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """(CPUs that other processes used, of so many CPUs, for so many seconds) during a repeat; None: unknown."""
    others_s, window_s, busy = seen.get("others_s"), seen.get("cpu_window_s"), seen.get("busy_s")
    if not isinstance(others_s, int | float) or not isinstance(window_s, int | float) or window_s <= 0:
        return None
    cpus = float(len(busy)) if isinstance(busy, Mapping) else 0.0
    program_s = seen.get("program_s")
    if not cpus and isinstance(program_s, int | float) and program_s > 0:
        cpus = window_s / program_s  # of many CPUs only the sum is recorded
    return (others_s / window_s * cpus, cpus, window_s / cpus) if cpus else None


class ForeignLoad(Frozen):
    """Other processes used `cpus` of `of_cpus` CPUs during `repeats`, of so many, and hardly any during the rest. They
    came `bursts` times at about the same interval of `period_s` seconds; None: at none that these repeats show."""

    repeats: tuple[int, ...]
    of: int
    cpus: float
    of_cpus: float
    bursts: int = 0
    period_s: float | None = None

    @property
    def when(self) -> str:
        """Such as "in 4 of 20 repeats (3, 8, 13, 18), 4 times about 5 s apart"."""
        return f"in {len(self.repeats)} of {self.of} repeats ({_ranges(self.repeats)}){self.how_often}"

    @property
    def how_often(self) -> str:
        """The interval, after a comma; "" without one."""
        return "" if self.period_s is None else f", {self.bursts} times about {show(self.period_s, 's')} apart"

    @property
    def said(self) -> str:
        """As a sentence without a full stop."""
        return f"{others_words(f'{self.cpus:.2g}', cpus_words(self.of_cpus))} {self.when}"


def _ranges(numbers: Sequence[int]) -> str:
    found = cpu_list(numbers).split(",")
    rest = len(found) - _MOST_NAMED
    return ", ".join(found[:_MOST_NAMED]) + (", …" if rest > 0 else "")


class _Step(Frozen):
    """Repeats in a row: from `begin_s`, how long, and the CPUs of others meanwhile."""

    begin_s: float
    length_s: float
    cpus: float
    repeats: tuple[int, ...]


def comes_and_goes(repeats: Iterable[Timed], *, of_memory: bool = False) -> ForeignLoad | None:
    """The load, if it was in some of the repeats only, in a tenth of them at least, and much there: a tenth of the CPU
    time, or half a CPU for benchmarks of memory."""
    timed = sorted(((one, found) for one in repeats if (found := others_cpus(one[2]))), key=lambda pair: pair[0][1])
    steps = _steps([(number, t0, used, length) for (number, t0, _), (used, _, length) in timed])
    if len(steps) < _LEAST_STEPS:
        return None
    of_cpus = timed[-1][1][1]
    loads = sorted(step.cpus for step in steps)
    fullest = loads[-1 - max(1, len(loads) // _FULLEST)]
    had = [step for step in steps if step.cpus >= _HAD * fullest]
    rest = [step for step in steps if step.cpus < _HAD * fullest]
    if len(had) < max(2, LEAST_DELAY * len(steps)) or len(had) > _MOST * len(steps):
        return None
    cpus = _mean(had)
    is_much = cpus >= LEAST_DELAY * of_cpus or (of_memory and cpus >= LEAST_NEIGHBOUR)
    if not is_much or _mean(rest) > _QUIET * cpus:
        return None
    numbers = tuple(number for step in had for number in step.repeats)
    bursts, period_s = _period(steps, had) or (0, None)
    return ForeignLoad(numbers, len(timed), cpus, of_cpus, bursts, period_s)


def _mean(steps: Sequence[_Step]) -> float:
    return sum(step.cpus * step.length_s for step in steps) / sum(step.length_s for step in steps)


def _steps(repeats: Iterable[tuple[int, float, float, float]]) -> list[_Step]:
    found: list[_Step] = []
    numbers: list[int] = []
    begin_s = length_s = used_s = 0.0
    for number, t0, cpus, seconds in repeats:
        if not numbers:
            begin_s = t0
        numbers.append(number)
        length_s, used_s = length_s + seconds, used_s + cpus * seconds
        if length_s >= _STEP_S:
            found.append(_Step(begin_s, length_s, used_s / length_s, tuple(numbers)))
            numbers, length_s, used_s = [], 0.0, 0.0
    return found


def _period(steps: Sequence[_Step], had: Sequence[_Step]) -> tuple[int, float] | None:
    """(bursts, seconds between them) in the longest session; None where steps are too long or too few to show it.

    Steps of a third of the period or more can repeat a pattern of several periods: fewer than four steps between
    bursts, or load in most of them, say nothing."""
    width_s = max(_STEP_S, median(later.begin_s - sooner.begin_s for sooner, later in pairwise(steps)))
    sessions = [[steps[0]]]
    for sooner, later in pairwise(steps):
        if later.begin_s - sooner.begin_s > _SESSION * width_s:
            sessions.append([])
        sessions[-1].append(later)
    session = max(sessions, key=len)
    first = session[0].begin_s
    cells = round((session[-1].begin_s - first) / width_s) + 1
    series = [0.0] * cells
    full = {step.begin_s for step in had}
    for step in session:
        if step.begin_s in full:
            series[round((step.begin_s - first) / width_s)] = 1.0
    if len(session) < _COVERED * cells or sum(series) > _MOST_IN_BURSTS * cells:
        return None
    found = recurring(series)
    if found is None or found[0] < _LEAST_BURSTS or found[1] < _APART:
        return None
    return found[0], found[1] * width_s
