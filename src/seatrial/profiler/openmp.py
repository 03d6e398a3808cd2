"""OpenMP in an MPI program: parallel regions, and how long threads wait in them. Times are in seconds."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.call_site import CallSite


class RankOpenMp(Frozen):
    """One rank. `is_seen`: an OpenMP runtime reported to the profiler. `parallel_s` is the time in parallel regions
    that are not nested; `thread_s` that of all their threads until the last one is done, `end_wait_s` of it waiting at
    the end of a region for the last thread, `barrier_s` waiting at barriers within."""

    is_seen: bool
    threads: int = 0
    parallel_s: float = 0.0
    thread_s: float = 0.0
    end_wait_s: float = 0.0
    barrier_s: float = 0.0
    lost: int = 0


class ParallelPlace(Frozen):
    """The parallel regions that begin at one place, over all ranks. `time_s` is that of the threads that began them,
    the others as in RankOpenMp; `lost_s` is the time that equal shares of the work would save. `site` has the place."""

    site: CallSite
    threads: int
    count: int
    time_s: float
    thread_s: float
    end_wait_s: float
    barrier_s: float
    lost_s: float

    @property
    def waiting_share(self) -> float:
        """The part of its threads' time in which they wait."""
        return (self.end_wait_s + self.barrier_s) / self.thread_s if self.thread_s > 0 else 0.0

    def at(self, site: CallSite) -> ParallelPlace:
        """The same with its place resolved."""
        return replace(self, site=site)
