"""The places in the program that a diagnosis names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.profiler.call_site import CallSite
    from seatrial.profiler.profile import Profile

_CLEARLY = 2 / 3

Wanted = Callable[[str], bool]
"""Whether a function is one of those to look at, by its name."""


def longest_site(profile: Profile, wanted: Wanted) -> CallSite | None:
    """The place with most of the time of these functions, by whatever path; None if no line or symbol is known."""
    ranked = _ranked(profile, wanted, lambda site: site.time_s)
    return ranked[0][1] if ranked else None


def only_site(profile: Profile, wanted: Wanted) -> CallSite | None:
    """The place of nearly all calls of these functions; None if they are called from several."""
    ranked = _ranked(profile, wanted, lambda site: site.count)
    total = sum(value for value, _ in ranked)
    return ranked[0][1] if ranked and ranked[0][0] >= _CLEARLY * total else None


def _ranked(profile: Profile, wanted: Wanted, value: Callable[[CallSite], float]) -> list[tuple[float, CallSite]]:
    """Places by the sum of a value, the largest first; with the path that takes longest."""
    sums: dict[tuple[object, ...], float] = {}
    longest: dict[tuple[object, ...], CallSite] = {}
    for site in profile.callsites:  # the longest first
        if site.frames and wanted(site.call):
            place = (site.call, site.module, site.offset, site.frames)
            sums[place] = sums.get(place, 0.0) + value(site)
            longest.setdefault(place, site)
    return sorted(((total, longest[place]) for place, total in sums.items()), key=lambda one: -one[0])
