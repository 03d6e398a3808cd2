"""CPU time of the ranks and of their nodes."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.profile import NodeCpu, RankCpu
from seatrial.profiler.tables.process_table import ProcessTable


def rank_cpu(table: ProcessTable) -> RankCpu | None:
    """What the kernel counted for a rank, None if it did not reach the end of MPI."""
    use, right = table.cpu_use, table.cpu_right
    if use is None or use.wall_s <= 0:
        return None
    return RankCpu(
        wall_s=use.wall_s,
        cpu_s=use.cpu_s,
        delay_s=use.delay_s,
        voluntary=use.voluntary,
        involuntary=use.involuntary,
        minor_faults=use.minor_faults,
        major_faults=use.major_faults,
        most_resident_B=use.most_resident_B,
        throttled_share=use.throttled_share,
        throttled_s=use.throttled_s,
        mask=() if right is None else right.mask,
        quota=None if right is None else right.quota,
    )


def node_cpus(tables: Sequence[ProcessTable]) -> tuple[NodeCpu, ...]:
    """The nodes whose ranks all reached the end of MPI, in order of their first rank.

    A node's counters are those of its rank that ran longest.
    """
    by_host: dict[str, list[ProcessTable]] = {}
    for table in tables:
        by_host.setdefault(table.host, []).append(table)
    found = []
    for host, own in by_host.items():
        uses = [table.cpu_use for table in own]
        rights = [table.cpu_right for table in own if table.cpu_right is not None]
        known = [use for use in uses if use is not None and use.cpu_s is not None]
        if len(known) < len(own) or not rights:
            continue
        longest = max(known, key=lambda use: use.wall_s)
        if longest.node_busy_s is None or longest.node_steal_s is None or longest.wall_s <= 0:
            continue
        found.append(
            NodeCpu(
                host=host,
                online=max(right.online for right in rights),
                wall_s=longest.wall_s,
                busy_s=longest.node_busy_s,
                steal_s=longest.node_steal_s,
                ranks_s=sum(use.cpu_s for use in known if use.cpu_s is not None),
            )
        )
    return tuple(found)
