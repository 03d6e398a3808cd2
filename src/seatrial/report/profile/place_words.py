"""Parts of sentences about ranks, calls, call sites and regions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from seatrial.model.spelling import count, show, show_percent
from seatrial.profiler.cause import Caller, CallSite, Diagnosis, Signal, shown_of
from seatrial.profiler.profile import Profile
from seatrial.profiler.regions import Region

_LEAST_SHARE = 0.0005


def site_words(site: CallSite | Caller) -> str:
    """Function, file and line if known, else the file and the offset in it."""
    if site.frames:
        frame = site.frames[0]
        line = f":{frame.line}" if frame.line else ""
        where = f" {PurePosixPath(frame.file).name}{line}" if frame.file else f" in {site_module(site)}"
        return f"{frame.function}{where}"
    return f"{site_module(site)}+{site.offset:#x}" if site.module else "unknown"


def site_module(site: CallSite | Caller) -> str:
    """The name of the program or library that calls."""
    return PurePosixPath(site.module).name or site.module


def path_words(site: CallSite) -> str:
    """The libraries through which MPI is called, and the callers of the call site; "" if no path is known."""
    shown = shown_of(site.path)
    through = [site_words(one) for one in site.path[:shown]]
    callers = [site_words(one) for one in site.path[shown + 1 :]]
    parts = [f"through {', '.join(through)}"] if through else []
    parts += [f"called by {', '.join(callers)}"] if callers else []
    return "; ".join(parts)


def number_of(one: Diagnosis, signal: Signal) -> float:
    """The value of a signal, 0 if it is not part of the evidence."""
    return one.value(signal) or 0.0


def seconds_of(one: Diagnosis, signal: Signal) -> str:
    """A time of the evidence."""
    return show(number_of(one, signal), "s")


def upper(text: str) -> str:
    """A text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def rank_words(one: Diagnosis) -> str:
    """The rank of a diagnosis and its host."""
    return "a rank" if one.rank is None else f"rank {one.rank}{f' on {one.host}' if one.host else ''}"


def call_words(one: Diagnosis) -> str:
    """The MPI call of a diagnosis and its size."""
    if one.size_B is None:
        return one.call
    return f"{one.call} ({show(one.size_B, 'B', binary=one.size_B % 1024 == 0)})"


REGION_RULE = (
    "Times are sums over ranks, from begin to end, regions in it included. CPU is that of the threads that begin and "
    "end the region. Waiting is MPI time beyond what calls take if no rank is late (estimated)."
)
_LEAST_IMBALANCE = 0.05


def region_name(region: Region) -> str:
    """Its name after those of the regions around it."""
    return " / ".join(region.path)


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


def share_words(share: float) -> str:
    """A share in percent; a positive one that would round to 0 as "< 0.1 %"."""
    return show_percent(share) if share == 0 or share >= _LEAST_SHARE else f"< {show_percent(0.001)}"
