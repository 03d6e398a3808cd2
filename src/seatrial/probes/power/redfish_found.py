"""What was found in a Redfish service: where each value is, and how it is read.

It is kept between starts (redfish_kept.py), so that a start costs a request for each sensor and not for each object of
the tree. It holds no password, and no address of the service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.source import Reading, Sensor, number

Json = Mapping[str, Any]
Get = Callable[[str], Any]
"""The object of a URI, None if there is none; raises OSError if the service does not answer."""
Path = tuple[str | int, ...]
ROOT = "/redfish/v1"

_OFF = frozenset({"Absent", "Disabled", "UnavailableOffline", "StandbyOffline"})
_MOST_ANSWERS = 64
REST = "redfish:rest"
"""The name of what stands for all that was left out."""


class Spot(Frozen):
    """Where a value is: the path within the object of a URI. `time_path`: that of the time that it is of. `metric`: it
    is the last value of this metric in a telemetry report."""

    uri: str
    path: Path = ()
    time_path: Path = ()
    factor: float = 1.0
    metric: str = ""


class Found(Frozen):
    """A sensor of a service: the fields of `Sensor`, and where its value is in place of what reads it. `chassis` is the
    Id of the one that it is of, `outlet` PDU/OUTLET."""

    name: str
    scope: Scope
    kind: SourceKind
    of: str
    spot: Spot
    chassis: str = ""
    outlet: str = ""
    supply: Supply = Supply.UNKNOWN
    window_s: float | None = None
    refresh_s: float | None = None
    accuracy: float | None = None
    quantum: float = 0.0
    unusable: str = ""
    note: str = ""
    whole: str = ""
    limit_W: float | None = None


class Answers:
    """The objects of a service. Those that were asked for less than `same_s` ago are not asked for again: several
    sensors are in one object."""

    def __init__(
        self, get: Get, now: Callable[[], float | None] = lambda: None, same_s: float = 0.0, is_remote: bool = False
    ) -> None:
        self._get, self._now, self._same_s, self._is_remote = get, now, same_s, is_remote
        self._last: dict[str, tuple[float, float, Any]] = {}
        self.is_gone = False
        """Whether an object did not exist: the service is not as it was found."""

    def sensor(self, found: Found) -> Sensor:
        """The sensor, which is read here."""
        return Sensor(
            found.name,
            found.scope,
            found.kind,
            found.of,
            partial(self._read, found),
            found.supply,
            found.window_s,
            found.refresh_s,
            found.accuracy,
            quantum=found.quantum,
            unusable=found.unusable,
            note=found.note,
            whole=found.whole,
            is_remote=self._is_remote,
            limit_W=found.limit_W,
        )

    def _ask(self, uri: str) -> tuple[float, float, Any]:
        """When an answer was asked for and came, and what it is. Raises OSError."""
        known = self._last.get(uri)
        if known is not None and time.monotonic() - known[1] < self._same_s:
            return known
        start_s = time.monotonic()
        answer = self._get(uri)
        found = (start_s, time.monotonic(), answer)
        if self._same_s:
            self._last.pop(uri, None)
            self._last[uri] = found
            if len(self._last) > _MOST_ANSWERS:
                del self._last[next(iter(self._last))]
        return found

    def _read(self, sensor: Found) -> Reading:
        spot, start_s = sensor.spot, time.monotonic()
        if not spot.uri:
            return Reading(start_s, fault=sensor.unusable)
        try:
            start_s, end_s, answer = self._ask(spot.uri)
        except OSError as error:
            return Reading(start_s, time.monotonic() - start_s, fault=f"does not answer: {error}")
        at_s, took_s = (start_s + end_s) / 2, end_s - start_s
        if answer is None:
            self.is_gone = True
            return Reading(at_s, took_s, fault=f"{spot.uri} does not exist")
        state = state_of(answer)
        if state in _OFF:
            return Reading(at_s, took_s, fault=f"is off (state {state})")
        stamp, value = _value(spot, answer)
        now = self._now()
        age_s = None if stamp is None or now is None else max(0.0, now - stamp)
        if value is None:
            return Reading(at_s, took_s, age_s=age_s, fault="reports no value")
        value *= spot.factor
        is_counter = sensor.kind is SourceKind.COUNTER
        return Reading(at_s, took_s, None if is_counter else value, value if is_counter else None, age_s)


def _value(spot: Spot, answer: Any) -> tuple[float | None, float | None]:
    """The time of a value, in seconds since the epoch, and the value; each None if it is not stated."""
    if spot.metric:
        metric = latest(listed(answer, "MetricValues")).get(spot.metric, {})
        return _time_s(metric.get("Timestamp")), number(metric.get("MetricValue"))
    stamp = _time_s(at(answer, spot.time_path)) if spot.time_path else None
    return stamp, number(at(answer, spot.path))


def latest(values: Sequence[Json]) -> dict[str, Json]:
    """The last value of each metric in a telemetry report."""
    found: dict[str, Json] = {}
    for value in values:
        name, stamp = str(value.get("MetricId") or ""), str(value.get("Timestamp") or "")
        if name not in found or stamp >= str(found[name].get("Timestamp") or ""):
            found[name] = value
    return found


def listed(of: Any, key: str) -> Sequence[Json]:
    """The objects of a list."""
    found = of.get(key) if isinstance(of, Mapping) else None
    return list(_objects(found)) if isinstance(found, list) else []


def _objects(found: Sequence[Any]) -> Iterator[Json]:
    return (one for one in found if isinstance(one, Mapping))


def at(found: Any, path: Path) -> Any:
    """What is at a path within an object; None if nothing is."""
    for key in path:
        if isinstance(found, Mapping):
            found = found.get(str(key))
        elif isinstance(found, list) and isinstance(key, int) and key < len(found):
            found = found[key]
        else:
            return None
    return found


def state_of(found: Any) -> str:
    """The state in an object's status; "" if it states none."""
    return str(at(found, ("Status", "State")) or "")


def _time_s(text: object) -> float | None:
    """Seconds since the epoch; None for another text, or a time without its offset."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if found is None or found.tzinfo is None else found.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def own_uri(uri: object) -> str:
    """A URI of this service without its fragment; "" if it is none, or another service's."""
    path = uri.partition("#")[0].rstrip("/") if isinstance(uri, str) else ""
    return path if path.startswith(f"{ROOT}/") and "/../" not in f"{path}/" else ""
