"""Rules about counters of network links that grew while benchmarks ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, note, rule, warning
from seatrial.analysis.rules.words import listed
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind

_ORDINARY = frozenset({"rx_dropped"})
"""Frames of protocols that the host does not use count as dropped, too."""
_EVIDENCE = "counters of sysfs before and after each repeat"


@rule(Subject.LINK_COUNTERS)
def links_had_errors(case: Case) -> Iterator[Finding]:
    """Fires if a link received damaged data, or went down, during a repeat."""
    if grown := _grown(case, {CounterKind.ERROR}):
        yield warning(
            "link-errors",
            devices=(port for port, _ in grown),
            observation=f"During the repeats the links counted errors: {_listed(grown)}",
            diagnosis="Data arrived damaged or the link failed, and was sent again or lost; which figures that changed "
            "is not known.",
            remedy="Look at the counters of both ends (`perfquery`, `ethtool -S`); if they go on growing, exchange the "
            "cable, then measure again",
            evidence=_EVIDENCE,
        )


@rule(Subject.LINK_COUNTERS)
def links_were_congested(case: Case) -> Iterator[Finding]:
    """Fires if packets waited, were discarded or were sent again during a repeat: normal under full load."""
    if grown := _grown(case, set(CounterKind) - {CounterKind.ERROR}):
        yield note(
            "link-congestion",
            devices=(port for port, _ in grown),
            observation=f"During the repeats the links counted: {_listed(grown)}",
            diagnosis="Links that are in full use wait. Packets that were discarded or sent again cost time; other "
            "jobs on the same links can be the cause.",
            remedy="Compare with repeats on idle links before you compare figures of the network",
            evidence=_EVIDENCE,
        )


def _grown(case: Case, kinds: Iterable[CounterKind]) -> dict[tuple[str, str], int]:
    """(port, counter) -> how much it grew in all repeats together."""
    wanted = {name for name, counter in LINK_COUNTERS.items() if counter.kind in kinds} - _ORDINARY
    grown: dict[tuple[str, str], int] = {}
    for seen in case.seen.values():
        for entry in seen.get("links", ()):
            if entry["counter"] in wanted and entry["grew_by"]:
                port = f"{entry['port']} of {entry['host']}" if "host" in entry else entry["port"]
                place = (port, entry["counter"])
                grown[place] = grown.get(place, 0) + entry["grew_by"]
    return grown


def _listed(grown: dict[tuple[str, str], int]) -> str:
    return listed(f"{port} {name} +{by} ({LINK_COUNTERS[name].meaning})" for (port, name), by in grown.items())
