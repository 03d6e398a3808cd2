"""OpenMP in words and tables."""

from __future__ import annotations

from seatrial.profiler.openmp import ParallelPlace
from seatrial.profiler.profile import Profile
from seatrial.report.profile.place_words import site_words
from seatrial.report.units import NO_VALUE, count, show, show_percent

OPENMP_RULE = (
    "Parallel regions by the place where they begin, over all ranks. Waiting at the end is for the last thread; "
    "waiting within is at barriers, those at the end of work-sharing loops included. Lost: what equal shares of the "
    "work would save."
)
PLACE_COLUMNS = ("Count", "Threads", "Time", "Wait at end", "Wait within", "Lost")


def openmp_lines(profile: Profile) -> list[str]:
    """Sentences without a full stop; empty if OpenMP was not requested."""
    ranks = [one.openmp for one in profile.per_rank if one.openmp is not None]
    if not ranks:
        return []
    seen = [one for one in ranks if one.is_seen]
    if not seen:
        return [
            "no OpenMP runtime with OMPT was started: LLVM's and Intel's have it (`clang -fopenmp`), GCC's libgomp has "
            "not"
        ]
    parallel_s, thread_s = sum(one.parallel_s for one in seen), sum(one.thread_s for one in seen)
    waits_s = sum(one.end_wait_s + one.barrier_s for one in seen)
    wall_s = sum(one.wall_s for one in profile.per_rank if one.openmp is not None and one.openmp.is_seen)
    said = [
        f"{show_percent(parallel_s / wall_s) if wall_s > 0 else NO_VALUE} of the time of {count(len(seen), 'rank')} in "
        f"parallel regions with up to {count(max(one.threads for one in seen), 'thread')}, which wait "
        f"{show_percent(waits_s / thread_s) if thread_s > 0 else NO_VALUE} of it at barriers"
    ]
    lost = sum(one.lost for one in seen)
    if lost:
        said.append(f"{count(lost, 'parallel region')} not recorded (at most 64 places, and within MPI)")
    return said


def place_name(place: ParallelPlace) -> str:
    """Where the parallel region begins."""
    return site_words(place.site)


def place_cells(place: ParallelPlace) -> list[str]:
    """The cells of PLACE_COLUMNS; waiting is a share of the time of all its threads."""
    shares = [
        show_percent(value / place.thread_s) if place.thread_s > 0 else NO_VALUE
        for value in (place.end_wait_s, place.barrier_s)
    ]
    return [str(place.count), str(place.threads), show(place.time_s, "s"), *shares, show(place.lost_s, "s")]
