"""Sensors of a Redfish service: a BMC's chassis, their power supplies and processors, power distribution units.

A tree is read through a function from a URI to its object, so that a folder of recorded objects is read as a BMC is.
Schemas: DMTF DSP8010 (Power 1.7, EnvironmentMetrics 1.3, PowerSupplyMetrics, Sensor 1.6, MetricReport, Outlet). `Power`
is deprecated there in favour of EnvironmentMetrics: where both have the power of a chassis, the latter is used.

What makers report under the same name differs: the members of PowerControl are the whole and parts of it, so they are
never added; an average in place of a value; the sum of the supplies' outputs in place of what goes into them; a number
as a text; null while the BMC starts; each board a chassis of the type of a server.

A walk ends: it follows no link twice, has a limit of objects and of time, and what is most important comes first. What
it left out is stated.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.errors import ParseError
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.model.spelling import count
from seatrial.probes.power.redfish_found import (
    REST,
    ROOT,
    Answers,
    Found,
    Get,
    Json,
    Spot,
    at,
    latest,
    listed,
    own_uri,
    state_of,
)
from seatrial.probes.power.redfish_scope import (
    member_scope,
    metric_scope,
    processor_scope,
    scopes_of_chassis,
    sensor_scope,
)
from seatrial.probes.power.source import Sensor, number

LONGEST_WALK_S = 60.0
_MOST_OBJECTS = 10_000
_MOST_PAGES = 100
_REMEMBERED = 32
_LINK = "@odata.id"
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_KWH_J = 3.6e6
_OF_HPE = (
    ("CpuWatts", Scope.PACKAGE, "all processors"),
    ("DimmWatts", Scope.MEMORY, "all memory modules"),
    ("GpuWatts", Scope.DEVICE, "all GPUs"),
)
_OTHER_QUANTITY = re.compile(
    r"(?i)(?!.*(?:power|pwr|energy|watt|joule)).*"
    r"(?:temp|fan|tach|volt|curr|humid|freq|press|leak|flow|pwm|altitude|util|rpm|speed)"
)
"""Ids of sensors of something else: they need not be read to know that."""


def sensors(get: Get, now: Callable[[], float | None] = lambda: None) -> list[Sensor]:
    """The sensors of a service, the preferred one first where several measure the same. `now` is the service's own
    clock, in seconds since the epoch, None if it is unknown. Raises OSError if the service does not answer."""
    answers = Answers(get, now)
    return [answers.sensor(one) for one in found_in(get)]


def found_in(get: Get, longest_s: float = LONGEST_WALK_S) -> list[Found]:
    """What a walk through the tree finds, with what it left out as the last one. Raises OSError."""
    tree = _Tree(get, longest_s)
    found, names = [], Counter[str]()
    for one in tree.sensors():
        names[one.name] += 1
        found.append(one if names[one.name] == 1 else replace(one, name=f"{one.name}#{names[one.name]}"))
    return [*found, *tree.left_out()]


class _Tree:
    def __init__(self, get: Get, longest_s: float) -> None:
        self._ask = get
        self._end_s = time.monotonic() + longest_s
        self._recent: dict[str, Any] = {}
        self._seen: set[str] = set()
        self._n_asked, self._n_left, self._failed = 0, 0, list[str]()

    def sensors(self) -> Iterator[Found]:
        root = self._get(ROOT)
        chassis = list(self._members(root, "Chassis", must=True))
        scopes = scopes_of_chassis(chassis)
        for (uri, one), scope in zip(chassis, scopes, strict=True):
            yield from self._of_chassis(uri, one, scope)
        yield from self._of_reports(root)
        for uri, system in self._members(root, "Systems"):
            for part_uri, part in self._members(system, "Processors"):
                yield from self._of_part(part_uri, part, processor_scope(part), f"of {_name(system, uri)}")
        yield from self._of_equipment(root)
        for uri, one in chassis:
            subsystem = self._object(_link(one, "PowerSubsystem"))
            for supply_uri, supply in self._members(subsystem, "PowerSupplies"):
                yield from self._of_supply(supply_uri, supply, _name(one, uri))
        for (uri, one), scope in zip(chassis, scopes, strict=True):
            for sensor_uri, sensor in self._members(one, "Sensors", _OTHER_QUANTITY):
                yield from self._of_sensor(sensor_uri, sensor, scope, _name(one, uri), uri)

    def left_out(self) -> Iterator[Found]:
        """What was not read, as a sensor that cannot be used."""
        reasons = []
        if self._n_left:
            reasons.append(f"{count(self._n_left, 'object')} of the tree after the limit of time or number")
        if self._failed:
            reasons.append(f"{count(len(self._failed), 'object')} that could not be read ({self._failed[0]})")
        if reasons:
            why = f"was not read: {' and '.join(reasons)}"
            yield Found(REST, Scope.PART, SourceKind.GAUGE, "the rest of the tree", Spot(""), unusable=why)

    def _of_chassis(self, uri: str, chassis: Json, scope: Scope) -> Iterator[Found]:
        name = _name(chassis, uri)
        metrics_uri = _link(chassis, "EnvironmentMetrics")
        yield from self._of_metrics(metrics_uri, self._object(metrics_uri), scope, name, f"chassis {name}", uri)
        power_uri = _link(chassis, "Power")
        yield from self._of_power_control(power_uri, self._object(power_uri), scope, name, uri)

    def _of_metrics(self, uri: str, metrics: Json, scope: Scope, name: str, of: str, whole: str) -> Iterator[Found]:
        """Power and energy in EnvironmentMetrics, from the sensor that it names if there is one."""
        for key, factor in (("PowerWatts", 0.0), ("EnergyJoules", 1.0), ("EnergykWh", _KWH_J)):
            value = metrics.get(key)
            if isinstance(value, Mapping):
                sensor_uri = own_uri(value.get("DataSourceUri"))
                if sensor_uri in self._seen:
                    continue
                sensor = self._object(sensor_uri)
                spot = Spot(uri, (key, "Reading"), factor=factor or 1.0)
                if "Reading" in sensor:
                    self._seen.add(sensor_uri)
                    spot = Spot(sensor_uri, ("Reading",), ("ReadingTime",), factor or 1.0)
                label = f"{name}/{_last(sensor_uri) or key}"
                found = self._sensor(label, scope, spot, of, sensor, is_counter=factor > 0, whole=whole)
                yield replace(found, chassis=name, limit_W=_limit_W(metrics.get("PowerLimitWatts"), "SetPoint"))

    def _of_power_control(self, uri: str, power: Json, scope: Scope, name: str, whole: str) -> Iterator[Found]:
        members = []
        for position, entry in enumerate(listed(power, "PowerControl")):
            own = entry if set(entry) - {_LINK, "@odata.type"} else self._object(own_uri(entry.get(_LINK)))
            spot = Spot(uri, ("PowerControl", position)) if own is entry else Spot(own_uri(entry.get(_LINK)))
            members.append((spot, own))
        scopes = [member_scope(member, scope) for _, member in members]
        is_sure = scopes.count(scope) <= 1
        for (spot, member), found in zip(members, scopes, strict=True):
            label = f"{name}/PowerControl/{member.get('MemberId', spot.path[-1] if spot.path else 0)}"
            of = str(member.get("Name") or (f"chassis {name}" if found is scope else label))
            sensor = self._of_member(label, found, spot, member, of)
            if not spot.uri:
                sensor = replace(sensor, unusable="is a link to something that is not in this service")
            if found is scope:
                limit_W = _limit_W(member.get("PowerLimit"), "LimitInWatts")
                sensor = replace(sensor, whole=whole, supply=_supply(member, power), chassis=name, limit_W=limit_W)
                if not is_sure:
                    why = "is one of several in PowerControl that do not state what they measure"
                    sensor = replace(sensor, unusable=why)
            yield sensor
        metric: Any = power
        for key in ("Oem", "Hpe", "PowerMetric"):
            metric = metric.get(key) if isinstance(metric, Mapping) else None
        for key, part, of in _OF_HPE if isinstance(metric, Mapping) else ():
            if number(metric.get(key)):
                spot = Spot(uri, ("Oem", "Hpe", "PowerMetric", key))
                yield self._sensor(f"{name}/{key}", part, spot, of, {}, is_counter=False)

    def _of_member(self, label: str, scope: Scope, spot: Spot, member: Json, of: str) -> Found:
        """A member of PowerControl: its value, or its average if it has no other."""
        average = member.get("PowerMetrics")
        minutes = number(average.get("IntervalInMin")) if isinstance(average, Mapping) else None
        if "PowerConsumedWatts" not in member and isinstance(average, Mapping) and minutes:
            spot = replace(spot, path=(*spot.path, "PowerMetrics", "AverageConsumedWatts"))
            sensor = self._sensor(label, scope, spot, of, {}, is_counter=False)
            return replace(sensor, window_s=60 * minutes)
        spot = replace(spot, path=(*spot.path, "PowerConsumedWatts"))
        return self._sensor(label, scope, spot, of, {}, is_counter=False)

    def _of_supply(self, uri: str, supply: Json, chassis: str) -> Iterator[Found]:
        metrics_uri = _link(supply, "Metrics")
        metrics = self._object(metrics_uri)
        name = _name(supply, uri)
        is_absent = state_of(supply) == "Absent"
        for key, kind in (("InputPowerWatts", _line(supply)), ("OutputPowerWatts", Supply.DC)):
            value = metrics.get(key)
            if isinstance(value, Mapping) and not is_absent:
                sensor_uri = own_uri(value.get("DataSourceUri"))
                self._seen.add(sensor_uri)
                spot = Spot(metrics_uri, (key, "Reading"))
                of = f"{'input' if key.startswith('I') else 'output'} of {name}"
                yield replace(
                    self._sensor(f"{chassis}/{_last(uri)}/{key}", Scope.PART, spot, of, {}, is_counter=False),
                    supply=kind,
                )

    def _of_sensor(self, uri: str, sensor: Json, chassis_scope: Scope, chassis: str, whole: str) -> Iterator[Found]:
        kind = sensor.get("ReadingType")
        if uri in self._seen or kind not in ("Power", "EnergyJoules", "EnergykWh") or state_of(sensor) == "Absent":
            return
        scope = sensor_scope(sensor, uri, chassis_scope)
        spot = Spot(uri, ("Reading",), ("ReadingTime",), _KWH_J if kind == "EnergykWh" else 1.0)
        of_whole = whole if scope is chassis_scope else ""
        found = self._sensor(
            f"{chassis}/{_last(uri)}", scope, spot, _name(sensor, uri), sensor, kind != "Power", of_whole
        )
        yield replace(found, chassis=chassis)

    def _of_part(self, uri: str, part: Json, scope: Scope, of: str) -> Iterator[Found]:
        metrics_uri = _link(part, "EnvironmentMetrics")
        name = _name(part, uri)
        yield from self._of_metrics(metrics_uri, self._object(metrics_uri), scope, name, f"{name} {of}", uri)

    def _of_equipment(self, root: Json) -> Iterator[Found]:
        equipment = self._object(_link(root, "PowerEquipment"))
        for _, unit in self._members(equipment, "RackPDUs"):
            for uri, outlet in self._members(unit, "Outlets"):
                yield from self._of_outlet(uri, outlet, _name(unit, ""))
        for uri, shelf in self._members(equipment, "PowerShelves"):
            metrics_uri, name = _link(shelf, "Metrics"), _name(shelf, uri)
            metrics = self._object(metrics_uri)
            yield from self._of_metrics(metrics_uri, metrics, Scope.ENCLOSURE, name, f"power shelf {name}", uri)

    def _of_outlet(self, uri: str, outlet: Json, unit: str) -> Iterator[Found]:
        name = _name(outlet, uri)
        for key, factor in (("PowerWatts", 0.0), ("EnergykWh", _KWH_J)):
            if isinstance(outlet.get(key), Mapping):
                spot = Spot(uri, (key, "Reading"), factor=factor or 1.0)
                found = self._sensor(
                    f"{unit}/{name}/{key}", Scope.PART, spot, f"outlet {name} of {unit}", {}, is_counter=factor > 0
                )
                why = "is an outlet: which node it feeds is not stated there"
                yield replace(found, supply=Supply.AC, unusable=why, outlet=f"{unit}/{name}")

    def _of_reports(self, root: Json) -> Iterator[Found]:
        service = self._object(_link(root, "TelemetryService"))
        for uri, report in self._members(service, "MetricReports"):
            metrics = [(metric, metric_scope(metric)) for metric in latest(listed(report, "MetricValues"))]
            if not any(scope for _, scope in metrics):
                continue
            definition = self._object(_link(report, "MetricReportDefinition"))
            refresh_s = _duration_s(at(definition, ("Schedule", "RecurrenceInterval")))
            for metric, scope in metrics:
                if scope is not None:
                    spot = Spot(uri, metric=metric)
                    label = f"{_last(uri)}/{metric}"
                    found = self._sensor(label, scope, spot, f"{metric} of a telemetry report", {}, is_counter=False)
                    supply = Supply.AC if "input" in metric.lower() else Supply.UNKNOWN
                    whole = "telemetry" if scope is Scope.NODE else ""
                    yield replace(found, supply=supply, refresh_s=refresh_s, whole=whole)

    def _sensor(
        self, label: str, scope: Scope, spot: Spot, of: str, sensor: Json, is_counter: bool, whole: str = ""
    ) -> Found:
        """The sensor of a value. `sensor` is its Sensor object, {} if it has none."""
        accuracy = number(sensor.get("Accuracy"))
        note = ""
        if sensor.get("AveragingIntervalAchieved") is False:
            note = "has not averaged for its whole interval yet"
        return Found(
            f"redfish:{label}",
            scope,
            SourceKind.COUNTER if is_counter else SourceKind.GAUGE,
            of,
            spot,
            window_s=_duration_s(sensor.get("AveragingInterval")),
            refresh_s=_duration_s(sensor.get("SensingInterval")),
            accuracy=None if accuracy is None else accuracy / 100,
            quantum=1.0 if spot.factor == 1.0 else _step_J(at(self._get(spot.uri), spot.path)),
            note=note,
            whole=whole,
        )

    def _get(self, uri: str, must: bool = False) -> Json:
        """The object of a URI, {} if there is none. What fails is left out, except for what a service must have."""
        found = self._recent.pop(uri, None)
        if found is None:
            if self._n_asked >= _MOST_OBJECTS or time.monotonic() > self._end_s:
                self._n_left += 1
                return {}
            self._n_asked += 1
            try:
                found = self._ask(uri)
            except (OSError, ParseError) as error:
                if must or uri == ROOT:
                    raise
                self._failed.append(str(error))
        self._recent[uri] = found
        if len(self._recent) > _REMEMBERED:
            del self._recent[next(iter(self._recent))]
        return found if isinstance(found, Mapping) else {}

    def _object(self, uri: str, must: bool = False) -> Json:
        return self._get(uri, must) if uri else {}

    def _members(
        self, of: Json, key: str, skipped: re.Pattern[str] | None = None, must: bool = False
    ) -> Iterator[tuple[str, Json]]:
        """The members of a collection, each once, on all its pages; without those whose Id is `skipped`, and sensors
        that were seen."""
        found: dict[str, None] = {}
        pages, page = set[str](), _link(of, key)
        while page and page not in pages and len(pages) < _MOST_PAGES:
            pages.add(page)
            collection = self._object(page, must)
            found.update((own_uri(entry.get(_LINK)), None) for entry in listed(collection, "Members"))
            page = own_uri(collection.get("Members@odata.nextLink"))
        for uri in found:
            if uri in self._seen or (skipped is not None and skipped.match(_last(uri))):
                continue
            if one := self._object(uri):
                yield uri, one


def _link(of: Json, key: str) -> str:
    found = of.get(key)
    return own_uri(found.get(_LINK)) if isinstance(found, Mapping) else ""


def _last(uri: str) -> str:
    return uri.rpartition("/")[2]


def _name(of: Json, uri: str) -> str:
    return str(of.get("Id") or of.get("Name") or _last(uri))


def _line(supply: Json) -> Supply:
    """What goes into a power supply."""
    kind = str(supply.get("LineInputVoltageType") or supply.get("PowerSupplyType") or "")
    kinds = {kind, *(str(one.get("NominalVoltageType") or "") for one in listed(supply, "InputRanges"))} - {""}
    if kinds and all(one.startswith("AC") for one in kinds):
        return Supply.AC
    return Supply.DC if kinds and all(one.startswith("DC") for one in kinds) else Supply.UNKNOWN


def _supply(member: Json, power: Json) -> Supply:
    """What a member of PowerControl measures: by the sum of the supplies that it equals, else by its name."""
    watts, supplies = number(member.get("PowerConsumedWatts")), listed(power, "PowerSupplies")
    for keys, kind in ((("PowerInputWatts",), Supply.AC), (("LastPowerOutputWatts", "PowerOutputWatts"), Supply.DC)):
        values = [next((one for key in keys if (one := number(of.get(key))) is not None), None) for of in supplies]
        if watts and values and None not in values and abs(sum(value or 0.0 for value in values) - watts) <= 1:
            return kind
    return Supply.AC if "input" in str(member.get("Name") or "").lower() else Supply.UNKNOWN


def _limit_W(stated: object, key: str) -> float | None:
    """A power limit, if it is in force."""
    if not isinstance(stated, Mapping) or stated.get("ControlMode") == "Disabled":
        return None
    limit = number(stated.get(key))
    return limit if limit and limit > 0 else None


def _step_J(value: object) -> float:
    """The step of a counter of kWh, by the decimal places that it is written with."""
    decimals = str(value).partition(".")[2].rstrip("0")
    return float(_KWH_J / 10 ** len(decimals))


def _duration_s(text: object) -> float | None:
    """Seconds of an ISO 8601 duration, such as PT30S."""
    found = _ISO.fullmatch(text) if isinstance(text, str) else None
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
