"""How much of a processor the ranks of a trace had, and their computation without the time that they waited for one.

A trace has the time between calls. Where other processes take CPUs, that includes waiting for a CPU, which is no part
of the program: on another machine it would not be there. The kernel counts for each rank, from MPI_Init to the end of
MPI, its CPU time P, the time R in which its threads were ready to run without running, and so the time B = wall - P - R
in which it was blocked (input, output, sleep). With C seconds outside MPI, B of them blocked, the computation is

    (B + (C - B) P / (P + R)) / C

of the traced time: as if the rank waited for a CPU as often outside MPI as inside. Where R is not known, it is the
traced time.
"""

from __future__ import annotations

from statistics import fmean

from seatrial.diagnosis.cpu import LEAST_DELAY
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import show_percent
from seatrial.profiler.profile import Profile, RankTotals


class RankLoad(Frozen):
    """CPU time, run delay and wall time of a rank in seconds, and the part of its traced computation that is its own
    (0 to 1). All None, and 1, where the kernel did not report them."""

    wall_s: float | None = None
    cpu_s: float | None = None
    delay_s: float | None = None
    own_share: float = 1.0

    @property
    def delay_share(self) -> float | None:
        """The part of the wall time in which it waited for a CPU, at most 1."""
        if self.delay_s is None or not self.wall_s:
            return None
        return min(1.0, self.delay_s / self.wall_s)


class TraceLoad(Frozen):
    """The load of each rank, in order."""

    ranks: tuple[RankLoad, ...] = ()

    @property
    def cpu_share(self) -> float | None:
        """CPU seconds over wall seconds, the mean over ranks; None if unknown for a rank."""
        shares = [None if one.cpu_s is None or not one.wall_s else one.cpu_s / one.wall_s for one in self.ranks]
        known = [share for share in shares if share is not None]
        return fmean(known) if known and len(known) == len(shares) else None

    @property
    def delay_share(self) -> float | None:
        """The largest share of a rank's time without a CPU; None if unknown for a rank."""
        known = [share for one in self.ranks if (share := one.delay_share) is not None]
        return max(known) if known and len(known) == len(self.ranks) else None

    @property
    def is_disturbed(self) -> bool:
        """Whether a rank waited for a CPU for more than a tenth of its time."""
        return (self.delay_share or 0.0) > LEAST_DELAY


def trace_load(profile: Profile, ranks: int) -> TraceLoad:
    """The load of a world of this many ranks; empty if the profile is of another one, or misses a rank."""
    if profile.ranks != ranks or [one.rank for one in profile.per_rank] != list(range(ranks)):
        return TraceLoad()
    return TraceLoad(tuple(_load(one) for one in profile.per_rank))


def _load(rank: RankTotals) -> RankLoad:
    cpu = rank.cpu
    if cpu is None or cpu.cpu_s is None or cpu.delay_s is None or cpu.wall_s <= 0:
        return RankLoad()
    ready_s = cpu.cpu_s + cpu.delay_s
    had = cpu.cpu_s / ready_s if ready_s > 0 else 1.0
    blocked_s = min(rank.compute_s, max(0.0, cpu.wall_s - ready_s))
    own_s = blocked_s + (rank.compute_s - blocked_s) * had
    return RankLoad(cpu.wall_s, cpu.cpu_s, cpu.delay_s, own_s / rank.compute_s if rank.compute_s > 0 else 1.0)


def load_lines(load: TraceLoad) -> list[str]:
    """The share of a processor that the ranks had, for people; a warning if they waited for one."""
    if load.cpu_share is None or load.delay_share is None:
        return ["the share of a processor that the ranks had is unknown: computation is the time between calls"]
    lines = [
        f"each rank had {load.cpu_share:.2f} of a processor; without a CPU while ready to run: at most "
        f"{show_percent(load.delay_share)} of a rank's time. Computation is CPU and blocked time, without that"
    ]
    if load.is_disturbed:
        lines.append(
            "warning: ranks waited for a CPU for more than 10 % of the time. That is estimated and left out "
            "of their computation; trace on a quiet machine to be sure"
        )
    return lines


def header_line(load: TraceLoad, rank: int) -> str:
    """The comment at the start of a rank's trace, a whole line."""
    one = load.ranks[rank] if rank < len(load.ranks) else RankLoad()
    if one.cpu_s is None or one.delay_s is None or one.wall_s is None:
        return "# seatrial: CPU time of this rank unknown; computation is the time between calls\n"
    disturbed = "; WARNING: waited for a CPU for more than 10 % of the time" if load.is_disturbed else ""
    return (
        f"# seatrial: CPU time {one.cpu_s:.6f} s of {one.wall_s:.6f} s, ready to run without a CPU "
        f"{one.delay_s:.6f} s; computation is {one.own_share:.4f} of the time between calls{disturbed}\n"
    )
