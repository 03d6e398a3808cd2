"""Threads that were ready to run, but had no CPU, and why: one decision, with its constants, for profiles, repeats and
comparisons. It comes before every other cause, because such ranks make the others wait in MPI."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.stats.bursts import recurring

if TYPE_CHECKING:
    from seatrial.profiler.cpu import CpuSlices
    from seatrial.profiler.profile import NodeCpu, Profile, RankCpu, RankTotals

LEAST_DELAY = 0.1
"""Below this share of the time, waiting for a CPU is usual on a busy system."""
_LEAST_THROTTLED = 0.1
"""Of the periods of a quota."""
EXPLAINS = 0.5
"""A cause explains waiting if it is at least so large, as a share of it."""
_IDLE = 0.5
"""CPUs with less than this idle on average, together, are busy."""


class CpuSignals(Frozen):
    """What was seen while threads were ready to run without a CPU: means over one span of time, in threads or CPUs.

    `ran` and `waited` are threads that had a CPU and that waited for one, `cpus` the CPUs that they may use (0: not
    known). Of the `watched` CPUs, `others` were used by other processes, `idle` by nobody, and `steal` was taken by the
    hypervisor; None: not known.
    """

    ran: float
    waited: float
    cpus: int
    watched: int = 0
    others: float | None = None
    idle: float | None = None
    steal: float = 0.0

    @property
    def wanted(self) -> float:
        """Threads that ran or were ready to run."""
        return self.ran + self.waited

    @property
    def crowd(self) -> float:
        """The threads that waited for each other: of n that are always ready to run on c CPUs, n - c wait with nobody
        else there; what they wait longer is for others."""
        return min(self.waited, max(0.0, self.wanted - self.cpus)) if self.cpus else 0.0

    def taken_by(self, waited: float) -> Cause:
        """Who had the CPUs that so many threads waited for, apart from their own kind."""
        if self.others is None or self.idle is None:
            return Cause.NO_CPU
        if self.watched and self.steal / self.watched >= EXPLAINS * waited and self.steal >= self.others:
            return Cause.STEAL
        # Where CPUs are idle, other processes may run on these instead of on those of the threads.
        return Cause.OTHER_PROCESSES if self.others >= EXPLAINS * waited and is_busy(self.idle) else Cause.NO_CPU


def is_busy(idle: float) -> bool:
    """Whether CPUs are busy, of which so many were idle on average: others then took some that were needed."""
    return idle < _IDLE


def is_used_up(throttled: float) -> bool:
    """Whether a quota held threads back: it was used up in this share of its periods."""
    return throttled >= _LEAST_THROTTLED


LEAST_S = 0.2
"""The counters of a node have steps of 10 ms."""
_LEAST_DELAY = 0.2
"""Of the stretch; and the stretch that is found is the one with most delay beyond half of this share."""
_LEAST_OF_RUN = 0.05
_MOST_OF_RUN = 0.75
"""What lasts for longer is said of the whole run."""
_MOST_OF_DELAY = 2 / 3


class CpuWait(Frozen):
    """From `begin_s` to `end_s` since the first rank was started, a rank waited `delay_s` for a CPU."""

    begin_s: float
    end_s: float
    delay_s: float

    @property
    def span_s(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


def delayed_stretch(slices: CpuSlices | None) -> CpuWait | None:
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
    found = CpuWait(at_s[begin], at_s[end], delay_s[end] - delay_s[begin])
    is_clear = (
        found.span_s >= LEAST_S
        and found.span_s <= _MOST_OF_RUN * slices.span_s
        and found.delay_s >= _LEAST_DELAY * found.span_s
        and found.delay_s >= _LEAST_OF_RUN * slices.span_s
        and found.delay_s >= _MOST_OF_DELAY * delay_s[-1]
    )
    return found if is_clear else None


class Recurring(Frozen):
    """A rank waited for a CPU `bursts` times, `period_s` seconds apart."""

    bursts: int
    period_s: float


_IN_BURST = 0.25
"""Of a bin: less waiting is not a burst."""
_LEAST_PERIOD_S = 1.0
"""What comes more often is the usual load of a busy machine."""


def recurring_delay(ranks: Sequence[CpuSlices | None]) -> Recurring | None:
    """Waiting for a CPU, of these ranks together, that comes again and again at about the same interval, such as a
    neighbour that runs for a second in five; None if it does not, or too little of the time."""
    known = [one for one in ranks if one is not None and len(one.at_s) > 1]
    if not known:
        return None
    first = max(known, key=lambda one: one.span_s)
    width_s = max(first.span_s / (len(first.at_s) - 1), LEAST_S)
    if sum(one.delay_s[-1] for one in known) < _LEAST_OF_RUN * first.span_s:
        return None
    begins = [first.at_s[0] + k * width_s for k in range(int(first.span_s / width_s))]
    delays = [sum(one.growth(one.delay_s, begin, begin + width_s) for one in known) for begin in begins]
    bursts = [delay if delay >= _IN_BURST * width_s else 0.0 for delay in delays]
    found = recurring(bursts)
    if found is None or found[1] * width_s < _LEAST_PERIOD_S or sum(bursts) < EXPLAINS * sum(delays):
        return None
    return Recurring(found[0], found[1] * width_s)


def rank_within(cpu: RankCpu, stretch: CpuWait) -> RankCpu:
    """What a rank had of its CPUs in the stretch; its part of the whole, where slices are not known. All throttling is
    taken to be in the stretch."""
    part = stretch.span_s / cpu.wall_s
    cpu_s, delay_s = (None if value is None else value * part for value in (cpu.cpu_s, cpu.delay_s))
    if cpu.slices is not None:
        cpu_s = cpu.slices.growth(cpu.slices.cpu_s, stretch.begin_s, stretch.end_s)
        delay_s = cpu.slices.growth(cpu.slices.delay_s, stretch.begin_s, stretch.end_s)
    throttled = None if cpu.throttled_share is None else min(1.0, cpu.throttled_share / part)
    return replace(cpu, wall_s=stretch.span_s, cpu_s=cpu_s, delay_s=delay_s, throttled_share=throttled)


def node_within(node: NodeCpu, slices: CpuSlices | None, ranks: Sequence[RankCpu], stretch: CpuWait) -> NodeCpu | None:
    """What a node did in the stretch, by the samples of one of its ranks; `ranks` are its ranks in the stretch. None if
    not known."""
    if slices is None:
        return None
    busy_s = slices.growth(slices.busy_s, stretch.begin_s, stretch.end_s)
    steal_s = slices.growth(slices.steal_s, stretch.begin_s, stretch.end_s)
    if isnan(busy_s) or isnan(steal_s):
        return None
    ranks_s = sum(one.cpu_s or 0.0 for one in ranks)
    children_s = node.children_s * min(1.0, stretch.span_s / node.wall_s)
    return replace(node, wall_s=stretch.span_s, busy_s=busy_s, steal_s=steal_s, ranks_s=ranks_s, children_s=children_s)


def cpu_diagnoses(profile: Profile) -> list[Diagnosis]:
    """At most one cause for each node, that of its rank that waited longest."""
    by_host: dict[str, list[RankTotals]] = {}
    for rank in profile.per_rank:
        by_host.setdefault(rank.host, []).append(rank)
    nodes = {node.host: node for node in profile.nodes}
    found = (_of_node(ranks, nodes.get(host)) for host, ranks in by_host.items())
    return [one for one in found if one is not None]


def _of_node(ranks: Sequence[RankTotals], node: NodeCpu | None) -> Diagnosis | None:
    known = [(rank, rank.cpu) for rank in ranks if rank.cpu is not None and rank.cpu.wall_s >= LEAST_S]
    if not known:
        return None
    worst, cpu = max(known, key=lambda one: one[1].delay_share or 0.0)
    stretch = delayed_stretch(cpu.slices)
    if stretch is not None:
        return _for_a_while(worst, cpu, [one for _, one in known], node, stretch)
    delay = cpu.delay_share or 0.0
    throttled = max(one.throttled_share or 0.0 for _, one in known)
    again = None if is_used_up(throttled) else recurring_delay([one.slices for _, one in known])
    if again is not None:
        return _again_and_again(worst, cpu, [one for _, one in known], node, again)
    if delay < LEAST_DELAY and not is_used_up(throttled):
        return None
    if delay < LEAST_DELAY:
        delay = min(1.0, max((one.throttled_s or 0.0) / one.wall_s for _, one in known))
        if delay < LEAST_DELAY:
            return None
    evidence = [Evidence(Signal.RUN_DELAY, delay)]
    if cpu.cpu_s is not None:
        evidence.append(Evidence(Signal.CPU_TIME, cpu.cpu_s / cpu.wall_s))
    cause, more = _why([one for _, one in known], len(ranks), cpu, delay, throttled, node)
    return Diagnosis(cause, delay, Sureness.MEASURED, (*evidence, *more), rank=worst.rank, host=worst.host)


def _again_and_again(
    worst: RankTotals, cpu: RankCpu, cpus: Sequence[RankCpu], node: NodeCpu | None, again: Recurring
) -> Diagnosis:
    delay = cpu.delay_share or 0.0
    cause, more = _why(cpus, len(cpus), cpu, delay, 0.0, node)
    evidence = (
        Evidence(Signal.RUN_DELAY, delay),
        Evidence(Signal.BURSTS, again.bursts),
        Evidence(Signal.PERIOD, again.period_s),
        *([] if cpu.cpu_s is None else [Evidence(Signal.CPU_TIME, cpu.cpu_s / cpu.wall_s)]),
    )
    return Diagnosis(cause, delay, Sureness.MEASURED, (*evidence, *more), rank=worst.rank, host=worst.host)


def _for_a_while(
    worst: RankTotals, cpu: RankCpu, cpus: Sequence[RankCpu], node: NodeCpu | None, stretch: CpuWait
) -> Diagnosis:
    """By what was counted in the stretch alone."""
    within, own = [rank_within(one, stretch) for one in cpus], rank_within(cpu, stretch)
    delay = own.delay_share or 0.0
    throttled = 0.0
    if (cpu.throttled_s or 0.0) >= EXPLAINS * stretch.delay_s:
        throttled = max(one.throttled_share or 0.0 for one in within)
    beside = None if node is None else node_within(node, cpu.slices, within, stretch)
    cause, more = _why(within, len(cpus), own, delay, throttled, beside)
    evidence = [
        Evidence(Signal.RUN_DELAY, delay),
        Evidence(Signal.FROM, stretch.begin_s),
        Evidence(Signal.UNTIL, stretch.end_s),
        *([] if own.cpu_s is None else [Evidence(Signal.CPU_TIME, own.cpu_s / own.wall_s)]),
    ]
    share = min(1.0, stretch.delay_s / cpu.wall_s)
    return Diagnosis(cause, share, Sureness.MEASURED, (*evidence, *more), rank=worst.rank, host=worst.host)


def _why(
    cpus: Sequence[RankCpu], ranks: int, worst: RankCpu, delay: float, throttled: float, node: NodeCpu | None
) -> tuple[Cause, list[Evidence]]:
    on_node = Evidence(Signal.RANKS_ON_NODE, ranks)
    if is_used_up(throttled) and worst.quota is not None:
        return Cause.CPU_QUOTA, [Evidence(Signal.QUOTA, worst.quota), Evidence(Signal.THROTTLED, throttled), on_node]
    together = {cpu for one in cpus for cpu in one.mask}
    same = [one for one in cpus if one.mask and one.mask == worst.mask]
    if len(same) > len(worst.mask) > 0 and len(worst.mask) < len(together):
        return Cause.SAME_CPUS, [Evidence(Signal.RANKS_ON_NODE, len(same)), Evidence(Signal.CPUS, len(worst.mask))]
    seen = _seen(cpus, len(together), node)
    # Not if other processes used more than these ranks: each thread then waits, and would not if it were alone.
    is_crowd = seen.crowd > EXPLAINS and (seen.others is None or seen.others <= seen.ran)
    if together and (ranks > len(together) or is_crowd):
        is_all = node is not None and len(together) >= node.online
        cause = Cause.MORE_RANKS_THAN_CPUS if is_all or node is None else Cause.SAME_CPUS
        busy = Evidence(Signal.BUSY_THREADS, seen.wanted)
        return cause, [on_node, Evidence(Signal.CPUS, len(together)), busy]
    if node is None:
        return Cause.NO_CPU, [on_node]
    used = [
        Evidence(Signal.STEAL_SHARE, seen.steal),
        Evidence(Signal.OTHERS_CPUS, node.other_cpus),
        Evidence(Signal.CPUS, node.online),
    ]
    cause = seen.taken_by(delay)
    is_own = node.children_cpus >= EXPLAINS * delay and node.children_cpus >= node.other_cpus
    if is_own and cause is not Cause.STEAL:
        return Cause.CHILD_PROCESSES, [
            Evidence(Signal.CHILDREN_CPUS, node.children_cpus),
            Evidence(Signal.CPUS, node.online),
        ]
    return cause, [on_node, *used] if cause is Cause.NO_CPU else used


def _seen(cpus: Sequence[RankCpu], together: int, node: NodeCpu | None) -> CpuSignals:
    """Of these ranks, and of their node."""
    longest_s = max(one.wall_s for one in cpus)
    ran = sum(one.cpu_s or 0.0 for one in cpus) / longest_s
    waited = sum(one.delay_s or 0.0 for one in cpus) / longest_s
    if node is None:
        return CpuSignals(ran, waited, together)
    steal = node.steal_s / node.wall_s
    return CpuSignals(ran, waited, together, node.online, node.other_cpus, node.idle_cpus, steal)


NOT_KNOWN = "the cause is unknown"
RANKS_WAIT = "Times in MPI include waiting for such ranks"


def cpus_words(value: float) -> str:
    """A number of CPUs."""
    return "1 CPU" if value == 1 else f"{value:.3g} CPUs"


def ready_words(who: str, share: str, *, are_several: bool = False) -> str:
    """Who was ready to run without a CPU, and for which share: "60 % of its time"."""
    return f"{who} {'were' if are_several else 'was'} ready to run, but had no CPU, for {share}"


def quota_words(cpus: float, periods: str) -> str:
    """That a quota was used up in a share of its periods."""
    return f"a CPU quota of {cpus_words(cpus)} was used up in {periods} of its periods"


def steal_words(taken: str) -> str:
    """That the hypervisor took CPU time: "60 % of the CPU time"."""
    return f"the hypervisor gave {taken} to other guests (steal)"


def others_words(used: str, of: str = "") -> str:
    """That other processes used CPUs, of those that are named."""
    return f"other processes used {used}{f' of {of}' if of else ''}"


def raise_quota(cpus: float, instead: str) -> str:
    """What to do about a quota."""
    now = f"cpu.max of its control group; now {cpus_words(cpus)}"
    return f"Raise the CPU quota of the job or container ({now}), or {instead}"


def use_own_host(do: str) -> str:
    """What to do about steal."""
    return f"{do} on a host whose CPUs are not shared with other virtual machines"


def stop_others(host: str = "") -> str:
    """What to do about other processes."""
    return f"Stop the other processes{f' on {host}' if host else ''} (`top` shows them)"
