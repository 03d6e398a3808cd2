"""The causes of lost time in a profile, in the order of the rules: a CPU that was missing, ranks that others wait for,
then messages. What is waited for without a known reason is said to be not known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.profiler.diagnosis.calls import call_diagnoses
from seatrial.profiler.diagnosis.cause import (
    NO_CPU_CAUSES,
    WAITING_CAUSES,
    Cause,
    Diagnosis,
    Evidence,
    Signal,
    Sureness,
)
from seatrial.profiler.diagnosis.cpu import cpu_diagnoses
from seatrial.profiler.diagnosis.ranks import explained_by_computing, rank_diagnoses
from seatrial.profiler.merge.bound import wait_kind

if TYPE_CHECKING:
    from seatrial.profiler.call_site import CallSite
    from seatrial.profiler.profile import Profile

LEAST_SHARE = 0.05
"""Causes of less of the time are not named."""


def diagnose(profile: Profile) -> tuple[Diagnosis, ...]:
    """What takes the program's time apart from its own computing, largest share first; COMPUTATION alone if nothing
    does."""
    if not profile.calls or profile.wall_s <= 0:
        return ()
    no_cpu = cpu_diagnoses(profile)
    if not profile.trust.has_sizes:
        return (*no_cpu, _without_sizes(profile) if profile.mpi_share >= LEAST_SHARE else _computation(profile))
    found = [*no_cpu, *rank_diagnoses(profile), *call_diagnoses(profile)]
    waiting = sum(rank.waits.all_s for rank in profile.per_rank) / profile.wall_s
    explained = sum(one.share for one in found if one.cause in WAITING_CAUSES)
    if not no_cpu and waiting >= LEAST_SHARE and explained < 0.5 * waiting:
        found.append(_not_known(profile, waiting))
    named = [replace(one, site=_site(profile, one)) for one in found if one.share >= LEAST_SHARE]
    named.sort(key=lambda one: (one.cause not in NO_CPU_CAUSES, -one.share))
    return tuple(named) or (_computation(profile),)


def _site(profile: Profile, one: Diagnosis) -> CallSite | None:
    """The place with most of the time of the diagnosis's calls, by whatever path; of all calls that wait, if it names
    none."""
    if one.cause in NO_CPU_CAUSES or one.cause is Cause.STARTUP:
        return None
    time_s: dict[tuple[object, ...], float] = {}
    longest: dict[tuple[object, ...], CallSite] = {}
    for site in profile.callsites:  # the longest first
        if site.frames and (site.call == one.call if one.call else wait_kind(site.call)):
            place = (site.call, site.module, site.offset, site.frames)
            time_s[place] = time_s.get(place, 0.0) + site.time_s
            longest.setdefault(place, site)
    return longest[max(time_s, key=time_s.__getitem__)] if time_s else None


def _not_known(profile: Profile, waiting: float) -> Diagnosis:
    call = max(profile.calls, key=lambda one: one.waiting_s)
    delays = [rank.cpu.delay_share for rank in profile.per_rank if rank.cpu is not None]
    known = [delay for delay in delays if delay is not None]
    evidence = [Evidence(Signal.WAITING_EXPLAINED, explained_by_computing(profile), is_against=True)]
    evidence += [Evidence(Signal.RUN_DELAY, max(known), is_against=True)] if known else []
    return Diagnosis(Cause.NOT_KNOWN, waiting, Sureness.INFERRED, tuple(evidence), call=call.call)


def _without_sizes(profile: Profile) -> Diagnosis:
    evidence = Evidence(Signal.CALL_SHARE, profile.calls[0].time_s / profile.wall_s)
    return Diagnosis(
        Cause.NOT_KNOWN, min(1.0, profile.mpi_share), Sureness.INFERRED, (evidence,), call=profile.calls[0].call
    )


def _computation(profile: Profile) -> Diagnosis:
    return Diagnosis(Cause.COMPUTATION, max(0.0, 1.0 - profile.mpi_share), Sureness.MEASURED)
