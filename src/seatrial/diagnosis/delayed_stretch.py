"""The stretch of a run in which a rank waited for a CPU, if it hardly did so at other times: another program ran beside
it for a while."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.profiler.cpu_slices import CpuSlices
    from seatrial.profiler.profile import NodeCpu, RankCpu

LEAST_S = 0.2
"""The counters of a node have steps of 10 ms."""
_LEAST_DELAY = 0.2
"""Of the stretch; and the stretch that is found is the one with most delay beyond half of this share."""
_LEAST_OF_RUN = 0.05
_MOST_OF_RUN = 0.75
"""What lasts for longer is said of the whole run."""
_MOST_OF_DELAY = 2 / 3


class Stretch(Frozen):
    """From `begin_s` to `end_s` since the first rank was started, a rank waited `delay_s` for a CPU."""

    begin_s: float
    end_s: float
    delay_s: float

    @property
    def span_s(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


def delayed_stretch(slices: CpuSlices | None) -> Stretch | None:
    """The stretch with most of a rank's waiting for a CPU; None if there was little, or all of the time.

    It maximises the waiting beyond a tenth of its length (maximum subarray: J. Bentley, "Programming pearls: algorithm
    design techniques", CACM 27(9), 1984), in one pass.
    """
    if slices is None or slices.span_s <= 0:
        return None
    at_s, delay_s = slices.at_s, slices.delay_s
    best, begin, end = 0.0, 0, 0
    gain, since = 0.0, 0
    for k in range(1, len(at_s)):
        if gain <= 0:
            gain, since = 0.0, k - 1
        gain += delay_s[k] - delay_s[k - 1] - _LEAST_DELAY / 2 * (at_s[k] - at_s[k - 1])
        if gain > best:
            best, begin, end = gain, since, k
    found = Stretch(at_s[begin], at_s[end], delay_s[end] - delay_s[begin])
    is_clear = (
        found.span_s >= LEAST_S
        and found.span_s <= _MOST_OF_RUN * slices.span_s
        and found.delay_s >= _LEAST_DELAY * found.span_s
        and found.delay_s >= _LEAST_OF_RUN * slices.span_s
        and found.delay_s >= _MOST_OF_DELAY * delay_s[-1]
    )
    return found if is_clear else None


def rank_within(cpu: RankCpu, stretch: Stretch) -> RankCpu:
    """What a rank had of its CPUs in the stretch; its part of the whole, where slices are not known. All throttling is
    taken to be in the stretch."""
    part = stretch.span_s / cpu.wall_s
    cpu_s, delay_s = (None if value is None else value * part for value in (cpu.cpu_s, cpu.delay_s))
    if cpu.slices is not None:
        cpu_s = cpu.slices.growth(cpu.slices.cpu_s, stretch.begin_s, stretch.end_s)
        delay_s = cpu.slices.growth(cpu.slices.delay_s, stretch.begin_s, stretch.end_s)
    throttled = None if cpu.throttled_share is None else min(1.0, cpu.throttled_share / part)
    return replace(cpu, wall_s=stretch.span_s, cpu_s=cpu_s, delay_s=delay_s, throttled_share=throttled)


def node_within(node: NodeCpu, slices: CpuSlices | None, ranks: Sequence[RankCpu], stretch: Stretch) -> NodeCpu | None:
    """What a node did in the stretch, by the samples of one of its ranks; `ranks` are its ranks in the stretch. None if
    not known."""
    if slices is None:
        return None
    busy_s = slices.growth(slices.busy_s, stretch.begin_s, stretch.end_s)
    steal_s = slices.growth(slices.steal_s, stretch.begin_s, stretch.end_s)
    if isnan(busy_s) or isnan(steal_s):
        return None
    ranks_s = sum(one.cpu_s or 0.0 for one in ranks)
    return replace(node, wall_s=stretch.span_s, busy_s=busy_s, steal_s=steal_s, ranks_s=ranks_s)
