"""The regions that a program names, in words and tables."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.profile import Profile
from seatrial.profiler.regions import Region
from seatrial.report.units import NO_VALUE, count, show, show_percent

REGION_RULE = (
    "Times are sums over ranks, from begin to end, regions in it included. CPU is that of the threads that begin and "
    "end the region. Waiting is MPI time beyond what calls take if no rank is late (estimated)."
)
REGION_COLUMNS = ("Count", "Of wall", "MPI", "Waiting", "CPU", "Longest")
_LEAST_IMBALANCE = 0.05


def region_name(region: Region) -> str:
    """Its name after those of the regions around it."""
    return " / ".join(region.path)


def region_cells(profile: Profile, region: Region) -> list[str]:
    """The cells of REGION_COLUMNS; MPI, waiting and CPU are shares of its time."""
    return [
        str(region.count),
        show_percent(region.wall_s / profile.wall_s) if profile.wall_s > 0 else NO_VALUE,
        *(_part(value, region) for value in (region.mpi_s, region.waiting_s, region.cpu_s)),
        longest_words(region),
    ]


def _part(value_s: float, region: Region) -> str:
    return show_percent(value_s / region.wall_s) if region.wall_s > 0 else NO_VALUE


def longest_words(region: Region) -> str:
    """Which rank is outside MPI for longest in the region; "even" if it is near the mean, "" with one rank."""
    above = region.imbalance
    if above is None:
        return ""
    if above < _LEAST_IMBALANCE:
        return "even"
    return f"rank {region.slowest.rank}: {show(region.slowest.compute_s, 's')}, {show_percent(above)} above the mean"


def region_lines(profile: Profile) -> list[str]:
    """Where the most time is lost, as sentences without a full stop; empty without regions."""
    lost = max(profile.regions, key=lambda one: one.waiting_s, default=None)
    if lost is None or profile.wall_s <= 0 or lost.waiting_s < 0.05 * profile.wall_s:
        return []
    inner = _innermost(profile.regions, lost)
    share = show_percent(inner.waiting_s / profile.wall_s)
    return [f"Ranks wait most in region {region_name(inner)}: {share} of the wall time"]


def _innermost(regions: Sequence[Region], outer: Region) -> Region:
    """The region inside it, of any depth, that has most of its waiting."""
    inside = [
        one for one in regions if one.path[: len(outer.path)] == outer.path and one.waiting_s >= 0.5 * outer.waiting_s
    ]
    return max(inside, key=lambda one: len(one.path), default=outer)


def region_faults(profile: Profile) -> list[str]:
    """What is wrong with the regions; empty if nothing is."""
    faults, unended = profile.faults, sum(one.unended for one in profile.regions)
    said = []
    if unended:
        names = sorted({region_name(one) for one in profile.regions if one.unended})
        said.append(f"{count(unended, 'region')} begun but not ended ({', '.join(names[:4])})")
    if faults.unbegun:
        said.append(f"{count(faults.unbegun, 'end')} of regions that were not begun")
    if faults.crossed:
        said.append(f"{count(faults.crossed, 'region')} ended by the end of the region around it")
    if faults.lost:
        said.append(f"{count(faults.lost, 'begin')} not recorded (at most 64 regions, 16 inside each other)")
    if faults.early:
        said.append(f"{count(faults.early, 'begin or end', 'begins or ends')} before MPI_Init or after MPI_Finalize")
    return said
