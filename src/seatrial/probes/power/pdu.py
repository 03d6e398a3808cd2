"""The outlets of a power distribution unit that feed a node, by the site file: what it takes from the wall."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from seatrial.model.environment.site import PduAccess
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.redfish_found import Answers, Found
from seatrial.probes.power.source import Reading, Sensor

_MOST_NAMED = 8


def sensors(stated: PduAccess, found: Sequence[Found], answers: Answers) -> list[Sensor]:
    """The power, and the energy if it is counted, of all outlets of the node together."""
    power = _of_node(stated, [one for one in found if one.kind is SourceKind.GAUGE], answers)
    counted = [one for one in found if one.kind is SourceKind.COUNTER]
    energy = _of_node(stated, counted, answers) if counted and not power.unusable else None
    return [power] if energy is None or energy.unusable else [power, energy]


def _of_node(stated: PduAccess, found: Sequence[Found], answers: Answers) -> Sensor:
    outlets = [one for one in found if one.outlet]
    parts, why = [], ""
    for wanted in stated.outlets:
        same = [one for one in outlets if wanted in (one.outlet, one.outlet.rpartition("/")[2])]
        if len(same) == 1:
            parts.append(same[0])
        else:
            named = ", ".join(one.outlet for one in (same or outlets)[:_MOST_NAMED]) or "none"
            why = why or f"{'several outlets are' if same else 'no outlet is'} named {wanted} (it shows: {named})"
    kind = parts[0].kind if parts else SourceKind.GAUGE
    whole = Sensor(
        f"pdu:{'+'.join(stated.outlets)}{'/energy' if kind is SourceKind.COUNTER else ''}",
        Scope.NODE,
        kind,
        f"the node, at {'its outlet' if len(stated.outlets) == 1 else 'its outlets'}",
        partial(_read, [answers.sensor(one) for one in parts]),
        Supply.AC,
        unusable=why,
        is_remote=True,
    )
    if not parts:
        return whole
    slowest_s = max((one.refresh_s for one in parts if one.refresh_s), default=stated.refresh_s)
    return replace(whole, refresh_s=slowest_s, quantum=sum(one.quantum for one in parts))


def _read(parts: Sequence[Sensor]) -> Reading:
    """The sum of the parts. It is of the time from the first request to the last answer."""
    readings = [one.read() for one in parts]
    start_s = min((one.at_s - one.took_s / 2 for one in readings), default=0.0)
    end_s = max((one.at_s + one.took_s / 2 for one in readings), default=0.0)
    at_s, took_s = (start_s + end_s) / 2, end_s - start_s
    fault = next((one.fault for one in readings if one.fault), "" if readings else "reports no value")
    if fault:
        return Reading(at_s, took_s, fault=fault)
    watts, joules = (
        None if None in values else sum(one or 0.0 for one in values)
        for values in ([one.watts for one in readings], [one.joules for one in readings])
    )
    ages = [one.age_s for one in readings if one.age_s is not None]
    return Reading(at_s, took_s, watts, joules, max(ages, default=None))
