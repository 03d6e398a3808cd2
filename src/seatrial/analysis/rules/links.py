"""Rules about links between devices."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Link, Machine
from seatrial.model.spelling import show, show_percent

_TRAINED_ENOUGH = 0.99


def link_below_capability(case: Case) -> Iterator[Finding]:
    """Fires where a link is trained below what both of its ends can do; like links make one finding."""
    groups: dict[tuple[str, float, float], list[Link]] = {}
    for link in case.machine.links:
        if link.capable_Bps and link.trained_Bps and link.trained_Bps < _TRAINED_ENOUGH * link.capable_Bps:
            groups.setdefault((link.kind, link.capable_Bps, link.trained_Bps), []).append(link)
    for (kind, capable, trained), links in groups.items():
        measured = [link.measured_Bps for link in links if link.measured_Bps]
        loss = 1 - trained / capable
        # A rate that was measured above the trained one proves that the link was asleep when it was read.
        if measured and len(measured) == len(links) and min(measured) > trained:
            continue
        names = [_far_end(case.machine, link) for link in links]
        idle = "" if measured else " Possibly it is only idle: many devices slow their link down until they work."
        yield Finding(
            rule="link-below-capability",
            severity=Severity.WARNING,
            devices=tuple(dict.fromkeys(link.b for link in links)),
            observation=f"The {kind} link of {listed(names)} is trained at {show(trained, 'B/s')}; it is capable of "
            f"{show(capable, 'B/s')}.",
            diagnosis=f"{show_percent(loss)} of the link is missing: a slot with fewer lanes, a riser, a bad contact "
            f"or a setting of the firmware.{idle}",
            remedy="Read it again under load with `sudo lspci -vv | grep -E '^[0-9a-f]|LnkCap:|LnkSta:'`; if it stays, "
            "reseat the card and compare the slot with the manual",
            evidence=f"{listed(f'{link.a} - {link.b}' for link in links)} ({links[0].source})",
            loss=loss,
        )


def _far_end(machine: Machine, link: Link) -> str:
    device = machine.device(link.b)
    return link.b if device is None or not device.name else device.name
