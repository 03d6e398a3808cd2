"""Memory, page faults and context switches of the ranks, in words."""

from __future__ import annotations

from statistics import median

from seatrial.profiler.profile import Profile
from seatrial.report.units import show

_TIMES = 2.0
_LEAST_MORE_B = 256 << 20


def memory_lines(profile: Profile) -> list[str]:
    """How much memory the ranks had at most, and a rank that had far more; empty if the kernel did not report it."""
    known = {
        one.rank: one.cpu.most_resident_B
        for one in profile.per_rank
        if one.cpu is not None and one.cpu.most_resident_B is not None
    }
    if not known:
        return []
    middle, rank = median(known.values()), max(known, key=lambda one: known[one])
    most = known[rank]
    text = f"up to {show(most, 'B', binary=True)} of memory in a rank"
    if len(known) > 2 and most >= _TIMES * middle and most - middle >= _LEAST_MORE_B:
        text = f"rank {rank} had up to {show(most, 'B', binary=True)} of memory, the median of all ranks is "
        text += show(middle, "B", binary=True)
    faults = sum(one.cpu.major_faults or 0 for one in profile.per_rank if one.cpu is not None)
    return [text, *([f"{faults} pages were read from files or swap (major page faults)"] if faults else [])]
