"""Fans and power supplies of a Redfish service that are out, and redundancy that is lost.

Schemas: DMTF DSP8010, `Power` (PowerSupplies, Redundancy) and `Thermal` (Fans, Redundancy), or the newer
`PowerSubsystem` (PowerSupplies, PowerSupplyRedundancy) and `ThermalSubsystem` (Fans, FanRedundancy); `Status.State` and
`Status.Health` of `Resource`. An absent part is not a fault: bays may be empty. What depends on it is the
redundancy, which has its own status.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from seatrial.errors import ParseError
from seatrial.model.machine.power import PartOut
from seatrial.probes.power.redfish_found import ROOT, Get, Json, at, listed, own_uri, state_of
from seatrial.probes.power.source import number

LONGEST_WALK_S = 20.0
_MOST_OBJECTS = 500
_FAN, _SUPPLY, _REDUNDANCY = "fan", "power supply", "redundancy"
_LISTS = (
    ("Fans", _FAN),
    ("PowerSupplies", _SUPPLY),
    ("Redundancy", _REDUNDANCY),
    ("PowerSupplyRedundancy", _REDUNDANCY),
    ("FanRedundancy", _REDUNDANCY),
)
_OF_CHASSIS = (("PowerSubsystem", "Power", "PowerSupplies"), ("ThermalSubsystem", "Thermal", "Fans"))
"""The newer object, the older one with the same parts, and the list that it has."""
_OUT_STATES = frozenset({"Disabled", "UnavailableOffline", "StandbyOffline"})
_BAD_HEALTH = frozenset({"Warning", "Critical"})


def parts_in(get: Get) -> tuple[str, ...]:
    """The URIs of the objects that have the states of fans and supplies. What fails is left out."""
    end_s, asked, found = time.monotonic() + LONGEST_WALK_S, [0], dict[str, None]()

    def ask(uri: str) -> Json:
        asked[0] += 1
        if not uri or asked[0] > _MOST_OBJECTS or time.monotonic() > end_s:
            return {}
        return _object(get, uri)

    for chassis_uri in _members(ask(_link(ask(ROOT), "Chassis"))):
        chassis = ask(chassis_uri)
        for newer, older, parts in _OF_CHASSIS:
            uri = _link(chassis, newer)
            members = _members(ask(_link(ask(uri), parts)))
            if not members:  # some services have the newer object without its parts
                uri = _link(chassis, older)
            found.update(dict.fromkeys((one for one in (uri, *members) if one), None))
    return tuple(found)


def parts_out(get: Get, uris: Sequence[str], node: str = "") -> list[PartOut]:
    """Those of these objects that are out now. What cannot be read is left out."""
    return [one for uri in uris for one in _of_object(_object(get, uri), uri, node)]


def _of_object(found: Json, uri: str, node: str) -> Iterator[PartOut]:
    for key, kind in _LISTS:
        parts = listed(found, key)
        for part, name in zip(parts, _names(parts, kind, uri), strict=True):
            yield from _of_part(part, kind, name, uri, node)
    parent = uri.rpartition("/")[0].rpartition("/")[2]
    for key, kind in _LISTS[:2]:
        if parent == key:
            yield from _of_part(found, kind, str(found.get("Name") or found.get("Id") or uri), uri, node)


def _names(parts: Sequence[Json], kind: str, uri: str) -> list[str]:
    """Where several have one name, such as that of a model, with their numbers."""
    if kind == _REDUNDANCY:
        return [f"of {'fans' if 'Thermal' in uri.rpartition('/')[2] else 'power supplies'}"] * len(parts)
    names = [str(part.get("Name") or part.get("FanName") or kind) for part in parts]
    return [
        name if names.count(name) == 1 else f"{name} {part.get('MemberId', position)}"
        for position, (part, name) in enumerate(zip(parts, names, strict=True))
    ]


def _of_part(part: Json, kind: str, name: str, uri: str, node: str) -> Iterator[PartOut]:
    state, health = state_of(part), str(at(part, ("Status", "Health")) or "")
    if state == "Absent":
        return
    reasons = [f"state {state}"] if state in _OUT_STATES else []
    reasons += [f"health {health}"] if health in _BAD_HEALTH else []
    if kind == _FAN and _reading(part) == 0:
        reasons.append("reads 0")
    if reasons:
        yield PartOut(kind, name, ", ".join(reasons), uri, node)


def _reading(fan: Json) -> float | None:
    """Its speed, in rpm or percent."""
    speed = fan.get("SpeedPercent")
    given = [fan.get("Reading"), at(speed, ("SpeedRPM",)), at(speed, ("Reading",))]
    return next((one for value in given if (one := number(value)) is not None), None)


def _object(get: Get, uri: str) -> Json:
    try:
        found = get(uri)
    except (OSError, ParseError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _link(of: Json, key: str) -> str:
    found = of.get(key)
    return own_uri(found.get("@odata.id")) if isinstance(found, Mapping) else ""


def _members(collection: Json) -> list[str]:
    return [uri for entry in listed(collection, "Members") if (uri := own_uri(entry.get("@odata.id")))]
