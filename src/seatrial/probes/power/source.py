"""What a source of power offers: its sensors, each with a function that reads it, and when a value is none."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import PowerSource, Scope, SourceKind, Supply
from seatrial.model.spelling import show

if TYPE_CHECKING:
    from seatrial.probes.power.files import SensorFile

STALE_AFTER = 2.5
"""A value that is older than so many of its refresh intervals is stale."""
LARGEST_STEP_J = 3.6e4
"""A counter with larger steps shows no run of usual length either."""
_MOST_OF_NODE = 1.1
"""A part that is read at another moment than its node can be above it by so much."""
LONGEST_WINDOW_S = 60.0
"""A value that is an average of a longer time shows no run of usual length."""


Values = Mapping[str, Any]
"""What a `Reading` has besides its time."""


class Reading(Frozen):
    """What a sensor reads. `at_s` is the middle of the request, on CLOCK_MONOTONIC, `took_s` its length; `age_s` is by
    the sensor's own time. `fault`: why it has no value."""

    at_s: float
    took_s: float = 0.0
    watts: float | None = None
    joules: float | None = None
    age_s: float | None = None
    fault: str = ""


class Sensor(Frozen):
    """A sensor, and the function that reads it. `modulus_J` is what its counter counts to before it starts again;
    `quantum` the step of its values in W or J. `unusable`: why it is not used, whatever it reads; `note`: what
    qualifies it. Sensors with the same `whole` measure the same thing, and the first usable one of them is used.
    `is_remote`: each reading is a request to a BMC. `limit_W`: the largest power that it may draw.
    `node`: which it is of; "": this one. `file`: the one that `read` reads, if it is one."""

    name: str
    scope: Scope
    kind: SourceKind
    of: str
    read: Callable[[], Reading]
    supply: Supply = Supply.UNKNOWN
    window_s: float | None = None
    refresh_s: float | None = None
    accuracy: float | None = None
    modulus_J: float | None = None
    quantum: float = 0.0
    unusable: str = ""
    note: str = ""
    whole: str = ""
    is_remote: bool = False
    limit_W: float | None = None
    node: str = ""
    file: SensorFile | None = None


class Timed:
    """When a request was made."""

    def __init__(self) -> None:
        self.start_s = time.monotonic()
        self.end_s = self.start_s

    def reading(self, **values: float | str | None) -> Reading:
        """The reading with these values."""
        return Reading((self.start_s + self.end_s) / 2, self.end_s - self.start_s, **values)  # type: ignore[arg-type]


@contextmanager
def timed() -> Iterator[Timed]:
    """Times a request."""
    found = Timed()
    try:
        yield found
    finally:
        found.end_s = time.monotonic()


def number(value: object) -> float | None:
    """A finite number, also where a source writes it as a text; None for all else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def states(sensors: Sequence[Sensor], readings: Sequence[Reading]) -> list[PowerSource]:
    """The sensors with what they read, and whether they are used. Of several that measure the same, the first usable
    one is: the others are compared with it."""
    found = [_state(sensor, reading) for sensor, reading in zip(sensors, readings, strict=True)]
    used: dict[str, PowerSource] = {}
    for position, (sensor, state) in enumerate(zip(sensors, found, strict=True)):
        if not sensor.whole or not state.usable:
            continue
        key = f"{sensor.whole} {sensor.kind}"
        if key in used:
            found[position] = replace(state, usable=False, why=_same_as(state, used[key]))
        else:
            used[key] = state
    return [_within_node(state, found) for state in found]


def _within_node(state: PowerSource, found: Sequence[PowerSource]) -> PowerSource:
    """A part that reports more than all nodes beside it is wrong, or they are."""
    nodes = [one.watts for one in found if one.usable and one.scope is Scope.NODE and one.watts is not None]
    is_within = state.scope in (Scope.NODE, Scope.ENCLOSURE) or state.watts is None or not nodes
    if is_within or not state.usable or (state.watts or 0.0) <= _MOST_OF_NODE * sum(nodes):
        return state
    return replace(state, usable=False, why=f"reports more than the whole node ({show(sum(nodes), 'W')})")


def _state(sensor: Sensor, reading: Reading) -> PowerSource:
    fault = sensor.unusable or reading.fault or _fault(sensor, reading)
    return PowerSource(
        sensor.name,
        sensor.scope,
        sensor.kind,
        sensor.supply,
        sensor.of,
        reading.watts,
        reading.joules,
        sensor.window_s,
        reading.age_s,
        sensor.refresh_s,
        sensor.accuracy,
        not fault,
        fault or sensor.note or _used_as(sensor),
    )


def _used_as(sensor: Sensor) -> str:
    return {
        Scope.NODE: "measures the whole node",
        Scope.ENCLOSURE: "measures an enclosure of nodes, never one node",
    }.get(sensor.scope, "measures a part of the node")


def _fault(sensor: Sensor, reading: Reading) -> str:
    """Why a value is none, "" if it is one."""
    if sensor.kind is SourceKind.COUNTER:
        if reading.joules is None:
            return "reports no value"
        if reading.joules < 0:
            return f"reports {show(reading.joules, 'J')}: an energy is not negative"
        if sensor.quantum > LARGEST_STEP_J:
            return f"counts in steps of {show(sensor.quantum, 'J')}: shorter runs do not show in it"
    elif reading.watts is None:
        return "reports no value"
    elif reading.watts == 0 and sensor.scope in (Scope.NODE, Scope.ENCLOSURE):
        return "reports 0 W, which is how many sensors report that they do not know"
    elif reading.watts < 0:
        return f"reports {show(reading.watts, 'W')}: a power is not negative"
    if sensor.window_s is not None and sensor.window_s > LONGEST_WINDOW_S:
        return f"is an average of {show(sensor.window_s, 's')}: shorter runs do not show in it"
    if reading.age_s is not None and sensor.refresh_s is not None:
        oldest_s = STALE_AFTER * max(sensor.refresh_s, 1.0)
        if reading.age_s > oldest_s:
            return f"is {show(reading.age_s, 's')} old, though it changes every {show(sensor.refresh_s, 's')}: stale"
    return ""


def _same_as(state: PowerSource, used: PowerSource) -> str:
    text = f"measures the same as {used.name}, which is used"
    if state.watts and used.watts and abs(state.watts / used.watts - 1) > 0.02:
        return f"{text}, and reports {100 * (state.watts / used.watts - 1):+.0f} %"
    return text
