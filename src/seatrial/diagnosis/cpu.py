"""Ranks that waited for a CPU, and why: the kernel counts the time that their threads were ready to run without
running. This comes before every other cause, because it makes the other ranks wait in MPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.diagnosis.delayed_stretch import LEAST_S, Stretch, delayed_stretch, node_within, rank_within
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness

if TYPE_CHECKING:
    from seatrial.profiler.profile import NodeCpu, Profile, RankCpu, RankTotals

LEAST_DELAY = 0.1
"""Below this share of a rank's wall time, waiting for a CPU is usual on a busy system."""
_LEAST_THROTTLED = 0.1
_EXPLAINS = 0.5
"""A cause explains the waiting if it is at least so large, as a share of it."""
_IDLE = 0.5
"""A node with less of a CPU idle on average is busy."""


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
    if delay < LEAST_DELAY and throttled < _LEAST_THROTTLED:
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


def _for_a_while(
    worst: RankTotals, cpu: RankCpu, cpus: Sequence[RankCpu], node: NodeCpu | None, stretch: Stretch
) -> Diagnosis:
    """By what was counted in the stretch alone."""
    within, own = [rank_within(one, stretch) for one in cpus], rank_within(cpu, stretch)
    delay = own.delay_share or 0.0
    throttled = 0.0
    if (cpu.throttled_s or 0.0) >= _EXPLAINS * stretch.delay_s:
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
    if throttled >= _LEAST_THROTTLED and worst.quota is not None:
        return Cause.CPU_QUOTA, [Evidence(Signal.QUOTA, worst.quota), Evidence(Signal.THROTTLED, throttled), on_node]
    together = {cpu for one in cpus for cpu in one.mask}
    same = [one for one in cpus if one.mask and one.mask == worst.mask]
    if len(same) > len(worst.mask) > 0 and len(worst.mask) < len(together):
        return Cause.SAME_CPUS, [Evidence(Signal.RANKS_ON_NODE, len(same)), Evidence(Signal.CPUS, len(worst.mask))]
    if together and (ranks > len(together) or _have_threads_for_more(cpus, len(together), node)):
        is_all = node is not None and len(together) >= node.online
        cause = Cause.MORE_RANKS_THAN_CPUS if is_all or node is None else Cause.SAME_CPUS
        busy = Evidence(Signal.BUSY_THREADS, sum(_used_and_waited(cpus)))
        return cause, [on_node, Evidence(Signal.CPUS, len(together)), busy]
    if node is None:
        return Cause.NO_CPU, [on_node]
    steal, others = node.steal_s / node.wall_s, node.other_cpus
    used = [
        Evidence(Signal.STEAL_SHARE, steal),
        Evidence(Signal.OTHERS_CPUS, others),
        Evidence(Signal.CPUS, node.online),
    ]
    if steal / node.online >= _EXPLAINS * delay and steal >= others:
        return Cause.STEAL, used
    # Where CPUs are idle, other processes may run on these instead of on those of the ranks.
    if others >= _EXPLAINS * delay and node.idle_cpus < _IDLE:
        return Cause.OTHER_PROCESSES, used
    return Cause.NO_CPU, [on_node, *used]


def _have_threads_for_more(cpus: Sequence[RankCpu], together: int, node: NodeCpu | None) -> bool:
    """Whether the threads of these ranks alone could use more than the CPUs that they may use together. Not if other
    processes used more than they: each thread then waits for a CPU, and would not if it were alone."""
    used, waited = _used_and_waited(cpus)
    return used + waited > together + _EXPLAINS and (node is None or node.other_cpus <= used)


def _used_and_waited(cpus: Sequence[RankCpu]) -> tuple[float, float]:
    """The CPUs that these ranks used, and how many threads waited for one, on average."""
    longest_s = max(one.wall_s for one in cpus)
    return sum(one.cpu_s or 0.0 for one in cpus) / longest_s, sum(one.delay_s or 0.0 for one in cpus) / longest_s
