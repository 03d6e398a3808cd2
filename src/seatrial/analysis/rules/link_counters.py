"""Rules about counters of network links that grew while benchmarks ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.link_counters import LINK_COUNTERS, CounterKind

_ORDINARY = frozenset({"rx_dropped"})
"""Frames of protocols that the host does not use count as dropped, too."""


def links_had_errors(case: Case) -> Iterator[Finding]:
    """Fires if a link received damaged data, or went down, during a repeat."""
    return _of_counters(
        case,
        {CounterKind.ERROR},
        rule="link-errors",
        severity=Severity.WARNING,
        counted="the links counted errors",
        diagnosis="Data arrived damaged or the link failed, and was sent again or lost; which figures that changed is "
        "not known.",
        remedy="Look at the counters of both ends (`perfquery`, `ethtool -S`); if they go on growing, exchange the "
        "cable, then measure again",
    )


def links_were_congested(case: Case) -> Iterator[Finding]:
    """Fires if packets waited, were discarded or were sent again during a repeat: normal under full load."""
    return _of_counters(
        case,
        set(CounterKind) - {CounterKind.ERROR},
        rule="link-congestion",
        severity=Severity.INFO,
        counted="the links counted",
        diagnosis="Links that are in full use wait. Packets that were discarded or sent again cost time; other jobs on "
        "the same links can be the cause.",
        remedy="Compare with repeats on idle links before you compare figures of the network",
    )


def _of_counters(
    case: Case,
    kinds: Iterable[CounterKind],
    *,
    rule: str,
    severity: Severity,
    counted: str,
    diagnosis: str,
    remedy: str,
) -> Iterator[Finding]:
    """A finding with these words if a counter of these kinds grew."""
    grown = _grown(case, kinds)
    if grown:
        yield Finding(
            rule=rule,
            severity=severity,
            devices=_ports(grown),
            observation=f"During the repeats {counted}: {_listed(grown)}",
            diagnosis=diagnosis,
            remedy=remedy,
            evidence="counters of sysfs before and after each repeat",
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


def _ports(grown: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port for port, _ in grown))


def _listed(grown: dict[tuple[str, str], int]) -> str:
    return listed(f"{port} {name} +{by} ({LINK_COUNTERS[name].meaning})" for (port, name), by in grown.items())
