"""Sensors of a Redfish service: a BMC's chassis, their power supplies and processors, power distribution units.

A tree is read through a function from a URI to its object, so that a folder of recorded objects is read as a BMC is.
Schemas: DMTF DSP8010 (Power 1.7, EnvironmentMetrics 1.3, PowerSupplyMetrics, Sensor 1.6, MetricReport, Outlet). `Power`
is deprecated there in favour of EnvironmentMetrics: where both have the power of a chassis, the latter is used.

What makers report under the same name differs: the members of PowerControl are the whole and parts of it, so they are
never added; an average in place of a value; the sum of the supplies' outputs in place of what goes into them; a number
as a text; null while the BMC starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.source import Reading, Sensor, number, timed

Json = Mapping[str, Any]
Get = Callable[[str], Any]
"""The object of a URI, None if there is none; raises OSError if the service does not answer."""

ROOT = "/redfish/v1"
_MOST_MEMBERS = 200
_LINK = "@odata.id"
_NODES = frozenset({"", "rackmount", "sled", "blade", "standalone", "cartridge", "node"})
"""Types of chassis that are a node."""
_ENCLOSURES = frozenset({"enclosure", "rack", "sidecar", "row", "pod", "zone", "shelf", "multinodechassis"})
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_WORDS = (
    (Scope.DEVICE, ("gpu", "accelerator", "fpga", "dpu")),
    (Scope.PACKAGE, ("cpu", "processor")),
    (Scope.MEMORY, ("memory", "dimm", "dram")),
    (Scope.PART, ("fan", "supply", "psu", "storage", "drive", "disk", "pcie", "i/o", "cooling", "board", "network")),
)
_WHOLE_CONTEXTS = frozenset({"", "chassis", "system", "systemboard", "intake", "powersupply"})
_KWH_J = 3.6e6
_OF_HPE = (
    ("CpuWatts", Scope.PACKAGE, "all processors"),
    ("DimmWatts", Scope.MEMORY, "all memory modules"),
    ("GpuWatts", Scope.DEVICE, "all GPUs"),
)
_IN_REPORTS = (
    (
        re.compile(r"(?i)(?:system|chassis|total|node)?(?:input)?power(?:consumption|consumed|reading)?(?:watts)?"),
        Scope.NODE,
    ),
    (re.compile(r"(?i)(?:total)?(?:cpu|processor)power(?:consumption)?(?:watts)?"), Scope.PACKAGE),
    (re.compile(r"(?i)(?:total)?(?:memory|dram|dimm)power(?:consumption)?(?:watts)?"), Scope.MEMORY),
    (re.compile(r"(?i)(?:total)?(?:gpu|accelerator)power(?:consumption)?(?:watts)?"), Scope.DEVICE),
    (re.compile(r"(?i)(?:total)?(?:fan|storage|pcie|fpga|nic)power(?:consumption)?(?:watts)?"), Scope.PART),
)
"""Names of metrics in telemetry reports, and what they measure."""


class _Spot(Frozen):
    """Where a value is: the path within the object of a URI. `sensor_time`: the path of the time that it is of."""

    uri: str
    path: tuple[str | int, ...]
    time_path: tuple[str | int, ...] = ()
    factor: float = 1.0


def sensors(get: Get, now: Callable[[], float | None] = lambda: None) -> list[Sensor]:
    """The sensors of a service, the preferred one first where several measure the same. `now` is the service's own
    clock, in seconds since the epoch, None if it is unknown. Raises OSError if the service does not answer."""
    return list(_Tree(get, now).sensors())


class _Tree:
    def __init__(self, get: Get, now: Callable[[], float | None]) -> None:
        self._fresh, self._now = get, now
        self._known: dict[str, Any] = {}
        self._seen: set[str] = set()

    def sensors(self) -> Iterator[Sensor]:
        root = self._get(ROOT)
        chassis = [(uri, one) for uri, one in self._members(root, "Chassis")]
        several = sum(_scope_of_chassis(one) is Scope.NODE for _, one in chassis) > 1
        for uri, one in chassis:
            yield from self._of_chassis(uri, one, is_alone=not several)
        for uri, system in self._members(root, "Systems"):
            for part_uri, part in self._members(system, "Processors"):
                yield from self._of_part(part_uri, part, _processor_scope(part), f"of {_name(system, uri)}")
        yield from self._of_reports(root)
        equipment = self._object(_link(root, "PowerEquipment"))
        for _, unit in self._members(equipment, "RackPDUs"):
            for outlet_uri, outlet in self._members(unit, "Outlets"):
                yield from self._of_outlet(outlet_uri, outlet, _name(unit, ""))

    def _of_chassis(self, uri: str, chassis: Json, *, is_alone: bool) -> Iterator[Sensor]:
        scope, name = _scope_of_chassis(chassis), _name(chassis, uri)
        metrics_uri = _link(chassis, "EnvironmentMetrics")
        yield from self._of_metrics(metrics_uri, self._object(metrics_uri), scope, name, f"chassis {name}", uri)
        power_uri = _link(chassis, "Power")
        power = self._object(power_uri)
        yield from self._of_power_control(power_uri, power, scope, name, uri, is_alone=is_alone)
        subsystem = self._object(_link(chassis, "PowerSubsystem"))
        for supply_uri, supply in self._members(subsystem, "PowerSupplies"):
            yield from self._of_supply(supply_uri, supply, name)
        for sensor_uri, sensor in self._members(chassis, "Sensors"):
            yield from self._of_sensor(sensor_uri, sensor, scope, name)

    def _of_metrics(self, uri: str, metrics: Json, scope: Scope, name: str, of: str, whole: str) -> Iterator[Sensor]:
        """Power and energy in EnvironmentMetrics, from the sensor that it names if there is one."""
        for key, factor in (("PowerWatts", 0.0), ("EnergyJoules", 1.0), ("EnergykWh", _KWH_J)):
            value = metrics.get(key)
            if isinstance(value, Mapping):
                sensor_uri = _own(value.get("DataSourceUri"))
                sensor = self._object(sensor_uri)
                spot = _Spot(uri, (key, "Reading"), factor=factor or 1.0)
                if "Reading" in sensor:
                    self._seen.add(sensor_uri)
                    spot = _Spot(sensor_uri, ("Reading",), ("ReadingTime",), factor or 1.0)
                label = f"{name}/{_last(sensor_uri) or key}"
                yield self._sensor(label, scope, spot, of, sensor, is_counter=factor > 0, whole=whole)

    def _of_power_control(
        self, uri: str, power: Json, scope: Scope, name: str, whole: str, *, is_alone: bool
    ) -> Iterator[Sensor]:
        members = []
        for position, entry in enumerate(_list(power, "PowerControl")):
            own = entry if set(entry) - {_LINK, "@odata.type"} else self._object(_own(entry.get(_LINK)))
            spot = _Spot(uri, ("PowerControl", position)) if own is entry else _Spot(_own(entry.get(_LINK)), ())
            members.append((spot, own))
        scopes = [_scope_of_member(member, scope) for _, member in members]
        is_sure = scopes.count(scope) <= 1
        for (spot, member), found in zip(members, scopes, strict=True):
            label = f"{name}/PowerControl/{member.get('MemberId', spot.path[-1] if spot.path else 0)}"
            of = str(member.get("Name") or (f"chassis {name}" if found is scope else label))
            sensor = self._of_member(label, found, spot, member, of)
            if found is scope:
                sensor = replace(sensor, whole=whole, supply=_supply(member, power))
                if not is_sure:
                    why = "is one of several in PowerControl that do not state what they measure"
                    sensor = replace(sensor, unusable=why)
            yield sensor
        metric: Any = power
        for key in ("Oem", "Hpe", "PowerMetric"):
            metric = metric.get(key) if isinstance(metric, Mapping) else None
        for key, part, of in _OF_HPE if isinstance(metric, Mapping) else ():
            if number(metric.get(key)):
                spot = _Spot(uri, ("Oem", "Hpe", "PowerMetric", key))
                yield self._sensor(f"{name}/{key}", part, spot, of, {}, is_counter=False)

    def _of_member(self, label: str, scope: Scope, spot: _Spot, member: Json, of: str) -> Sensor:
        """A member of PowerControl: its value, or its average if it has no other."""
        average = member.get("PowerMetrics")
        minutes = number(average.get("IntervalInMin")) if isinstance(average, Mapping) else None
        if "PowerConsumedWatts" not in member and isinstance(average, Mapping) and minutes:
            spot = replace(spot, path=(*spot.path, "PowerMetrics", "AverageConsumedWatts"))
            sensor = self._sensor(label, scope, spot, of, {}, is_counter=False)
            return replace(sensor, window_s=60 * minutes)
        spot = replace(spot, path=(*spot.path, "PowerConsumedWatts"))
        return self._sensor(label, scope, spot, of, {}, is_counter=False)

    def _of_supply(self, uri: str, supply: Json, chassis: str) -> Iterator[Sensor]:
        metrics_uri = _link(supply, "Metrics")
        metrics = self._object(metrics_uri)
        name = _name(supply, uri)
        is_absent = _state(supply) == "Absent"
        for key, kind in (("InputPowerWatts", _line(supply)), ("OutputPowerWatts", Supply.DC)):
            value = metrics.get(key)
            if isinstance(value, Mapping) and not is_absent:
                sensor_uri = _own(value.get("DataSourceUri"))
                self._seen.add(sensor_uri)
                spot = _Spot(metrics_uri, (key, "Reading"))
                of = f"{'input' if key.startswith('I') else 'output'} of {name}"
                yield replace(
                    self._sensor(f"{chassis}/{_last(uri)}/{key}", Scope.PART, spot, of, {}, is_counter=False),
                    supply=kind,
                )

    def _of_sensor(self, uri: str, sensor: Json, chassis_scope: Scope, chassis: str) -> Iterator[Sensor]:
        kind = sensor.get("ReadingType")
        if uri in self._seen or kind not in ("Power", "EnergyJoules", "EnergykWh") or _state(sensor) == "Absent":
            return
        factor = {"EnergykWh": _KWH_J}.get(str(kind), 1.0)
        name = _name(sensor, uri)
        context = str(sensor.get("PhysicalContext") or "").lower()
        scope = chassis_scope if context == "chassis" else _scope_of_words(f"{context} {name}") or Scope.PART
        spot = _Spot(uri, ("Reading",), ("ReadingTime",), factor)
        whole = f"sensors of {chassis}" if scope is chassis_scope else ""
        yield self._sensor(f"{chassis}/{_last(uri)}", scope, spot, name, sensor, kind != "Power", whole)

    def _of_part(self, uri: str, part: Json, scope: Scope, of: str) -> Iterator[Sensor]:
        metrics_uri = _link(part, "EnvironmentMetrics")
        name = _name(part, uri)
        yield from self._of_metrics(metrics_uri, self._object(metrics_uri), scope, name, f"{name} {of}", uri)

    def _of_outlet(self, uri: str, outlet: Json, unit: str) -> Iterator[Sensor]:
        name = _name(outlet, uri)
        for key, factor in (("PowerWatts", 0.0), ("EnergykWh", _KWH_J)):
            if isinstance(outlet.get(key), Mapping):
                spot = _Spot(uri, (key, "Reading"), factor=factor or 1.0)
                sensor = self._sensor(
                    f"{unit}/{name}/{key}", Scope.PART, spot, f"outlet {name} of {unit}", {}, is_counter=factor > 0
                )
                why = "is an outlet: which node it feeds is not stated there"
                yield replace(sensor, supply=Supply.AC, unusable=why)

    def _of_reports(self, root: Json) -> Iterator[Sensor]:
        service = self._object(_link(root, "TelemetryService"))
        for uri, report in self._members(service, "MetricReports"):
            last: dict[str, tuple[str, int]] = {}
            for position, value in enumerate(_list(report, "MetricValues")):
                stamp, metric = str(value.get("Timestamp") or ""), str(value.get("MetricId") or "")
                if metric not in last or stamp >= last[metric][0]:
                    last[metric] = (stamp, position)
            for metric, (_, position) in last.items():
                scope = next((scope for names, scope in _IN_REPORTS if names.fullmatch(metric)), None)
                if scope is not None:
                    path = ("MetricValues", position)
                    spot = _Spot(uri, (*path, "MetricValue"), (*path, "Timestamp"))
                    label = f"{_last(uri)}/{metric}"
                    sensor = self._sensor(label, scope, spot, f"{metric} of a telemetry report", {}, is_counter=False)
                    supply = Supply.AC if "input" in metric.lower() else Supply.UNKNOWN
                    yield replace(sensor, supply=supply, whole="telemetry" if scope is Scope.NODE else "")

    def _sensor(
        self, label: str, scope: Scope, spot: _Spot, of: str, sensor: Json, is_counter: bool, whole: str = ""
    ) -> Sensor:
        """The sensor of a value. `sensor` is its Sensor object, {} if it has none."""
        accuracy = number(sensor.get("Accuracy"))
        note = ""
        if sensor.get("AveragingIntervalAchieved") is False:
            note = "has not averaged for its whole interval yet"
        return Sensor(
            f"redfish:{label}",
            scope,
            SourceKind.COUNTER if is_counter else SourceKind.GAUGE,
            of,
            lambda: self._read(spot, is_counter=is_counter),
            window_s=_duration_s(sensor.get("AveragingInterval")),
            refresh_s=_duration_s(sensor.get("SensingInterval")),
            accuracy=None if accuracy is None else accuracy / 100,
            quantum=1.0 if spot.factor == 1.0 else _step_J(_at(self._get(spot.uri), spot.path)),
            note=note,
            whole=whole,
        )

    def _read(self, spot: _Spot, *, is_counter: bool) -> Reading:
        try:
            with timed() as request:
                found = self._fresh(spot.uri)
        except OSError as error:
            return request.reading(fault=f"does not answer: {error}")
        value = number(_at(found, spot.path))
        stamp, now = _time_s(_at(found, spot.time_path)) if spot.time_path else None, self._now()
        age_s = None if stamp is None or now is None else max(0.0, now - stamp)
        if value is None:
            return request.reading(fault="reports no value", age_s=age_s)
        return request.reading(**{"joules" if is_counter else "watts": value * spot.factor}, age_s=age_s)

    def _get(self, uri: str) -> Json:
        if uri not in self._known:
            self._known[uri] = self._fresh(uri)
        found = self._known[uri]
        return found if isinstance(found, Mapping) else {}

    def _object(self, uri: str) -> Json:
        return self._get(uri) if uri else {}

    def _members(self, of: Json, key: str) -> Iterator[tuple[str, Json]]:
        for entry in _list(self._object(_link(of, key)), "Members"):
            uri = _own(entry.get(_LINK))
            found = self._object(uri)
            if found:
                yield uri, found


def _list(of: Json, key: str) -> Sequence[Json]:
    """The objects of a list, at most `_MOST_MEMBERS`."""
    found = of.get(key)
    return [one for one in found[:_MOST_MEMBERS] if isinstance(one, Mapping)] if isinstance(found, list) else []


def _own(uri: object) -> str:
    """A URI of this service without its fragment; "" if it is none, or another service's."""
    path = uri.partition("#")[0].rstrip("/") if isinstance(uri, str) else ""
    return path if path.startswith(f"{ROOT}/") and "/../" not in f"{path}/" else ""


def _link(of: Json, key: str) -> str:
    found = of.get(key)
    return _own(found.get(_LINK)) if isinstance(found, Mapping) else ""


def _last(uri: str) -> str:
    return uri.rpartition("/")[2]


def _name(of: Json, uri: str) -> str:
    return str(of.get("Id") or of.get("Name") or _last(uri))


def _state(of: Json) -> str:
    status = of.get("Status")
    return str(status.get("State", "")) if isinstance(status, Mapping) else ""


def _at(found: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        if isinstance(found, Mapping):
            found = found.get(str(key))
        elif isinstance(found, list) and isinstance(key, int) and key < len(found):
            found = found[key]
        else:
            return None
    return found


def _scope_of_words(text: str) -> Scope | None:
    return next((scope for scope, words in _WORDS if any(word in text.lower() for word in words)), None)


def _scope_of_chassis(chassis: Json) -> Scope:
    kind = str(chassis.get("ChassisType") or "").lower()
    if kind in _ENCLOSURES:
        return Scope.ENCLOSURE
    return Scope.NODE if kind in _NODES else _scope_of_words(_name(chassis, "")) or Scope.PART


def _scope_of_member(member: Json, whole: Scope) -> Scope:
    context, name = str(member.get("PhysicalContext") or ""), str(member.get("Name") or "")
    if context.lower() in _WHOLE_CONTEXTS:
        found = _scope_of_words(name) if not context else None
        return whole if found is None else found
    return _scope_of_words(context) or Scope.PART


def _processor_scope(processor: Json) -> Scope:
    return Scope.PACKAGE if processor.get("ProcessorType") in (None, "CPU") else Scope.DEVICE


def _line(supply: Json) -> Supply:
    """What goes into a power supply."""
    kind = str(supply.get("LineInputVoltageType") or supply.get("PowerSupplyType") or "")
    kinds = {kind, *(str(one.get("NominalVoltageType") or "") for one in _list(supply, "InputRanges"))} - {""}
    if kinds and all(one.startswith("AC") for one in kinds):
        return Supply.AC
    return Supply.DC if kinds and all(one.startswith("DC") for one in kinds) else Supply.UNKNOWN


def _supply(member: Json, power: Json) -> Supply:
    """What a member of PowerControl measures: by the sum of the supplies that it equals, else by its name."""
    watts, supplies = number(member.get("PowerConsumedWatts")), _list(power, "PowerSupplies")
    for keys, kind in ((("PowerInputWatts",), Supply.AC), (("LastPowerOutputWatts", "PowerOutputWatts"), Supply.DC)):
        values = [next((one for key in keys if (one := number(of.get(key))) is not None), None) for of in supplies]
        if watts and values and None not in values and abs(sum(value or 0.0 for value in values) - watts) <= 1:
            return kind
    return Supply.AC if "input" in str(member.get("Name") or "").lower() else Supply.UNKNOWN


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


def _time_s(text: object) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError, OSError):
        return None
