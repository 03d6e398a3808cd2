"""Ranks whose thread that calls MPI waits for other threads of the rank: how long, what these used meanwhile, and how
much of the rank's CPUs was not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import Evidence, Signal
from seatrial.profiler.profile_io import SystemCall

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, RankTotals

_RAN = 0.5
"""Other threads that used so many CPUs on average while one waited may be what it waited for."""
_MOST_LOST = 0.6
"""Threads that use more of the CPUs together are not what is lost: they start one after the other, and wait for a CPU
now and then, which is not counted any more once they have ended. On a busy machine, threads that always compute used
0.65 to 0.75 of their CPUs."""
_BLOCKING = (SystemCall.SLEEP, SystemCall.POLL, SystemCall.CHILD, SystemCall.LOCK, SystemCall.THREAD)


class OwnThreads(Frozen):
    """For `waited_s` seconds a rank waited for its own threads, or for semaphores while these ran. Other threads used
    `used` CPUs meanwhile, at least, of the `cpus` that the rank has for itself."""

    waited_s: float = 0.0
    used: float = 0.0
    cpus: float = 1.0

    @property
    def computed_s(self) -> float:
        """The part of this time in which the rank computed, for the share of its CPUs that was used."""
        used = self.used / self.cpus
        return self.waited_s * (used if used < _MOST_LOST else 1.0)


def own_threads(profile: Profile, rank: RankTotals) -> OwnThreads:
    """What is known of a rank; that it waited for 0 s if it is not."""
    cpu, blocked_s = rank.cpu, rank.system_s(*_BLOCKING)
    if cpu is None or cpu.cpu_s is None or blocked_s <= 0:
        return OwnThreads()
    by_itself_s = max(0.0, cpu.wall_s - blocked_s)  # the most that the waiting thread ran
    used = max(0.0, cpu.cpu_s - by_itself_s) / blocked_s
    kinds = (SystemCall.THREAD, SystemCall.LOCK) if used >= _RAN else (SystemCall.THREAD,)
    return OwnThreads(rank.system_s(*kinds), used, _cpus(profile, rank))


def own_thread_evidence(profile: Profile, rank: RankTotals) -> tuple[Evidence, ...]:
    """The CPUs that other threads used while one waited, and whether the program is in Python; nothing if they hardly
    ran."""
    own = own_threads(profile, rank)
    if own.waited_s <= 0 or own.used < _RAN:
        return ()
    is_python = any(site.frames and site.frames[0].file.endswith(".py") for site in profile.callsites)
    return (
        Evidence(Signal.THREADS_CPUS, own.used),
        Evidence(Signal.CPUS, own.cpus),
        *([Evidence(Signal.PYTHON, 1)] if is_python else []),
    )


def _cpus(profile: Profile, rank: RankTotals) -> float:
    """The CPUs that a rank has for itself, if ranks of a node share those that several may use evenly; at least 1."""
    masks = [one.cpu.mask for one in profile.per_rank if one.host == rank.host and one.cpu is not None]
    own = () if rank.cpu is None else rank.cpu.mask
    return max(1.0, sum(1 / sum(cpu in mask for mask in masks) for cpu in own))
