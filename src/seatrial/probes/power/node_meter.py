"""The sensors of this node, read for as long as repeats run: the energy of each, and its power over time.

Between two repeats the machine is idle for as long as a steady power takes to be seen: it is that after the one and
before the other.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from seatrial.model.environment.site import PowerAccess
from seatrial.model.machine.power import PartOut, Scope, SourceKind
from seatrial.model.results.energy import Curve, PowerOverTime
from seatrial.plan.site_in_force import place_in_force, site_in_force
from seatrial.probes.power.beside import Beside, idle_s, reading
from seatrial.probes.power.elsewhere import Elsewhere, reading_on
from seatrial.probes.power.measured import measured
from seatrial.probes.power.reader import orders_for, period_s
from seatrial.probes.power.source import Reading, Sensor
from seatrial.probes.power.sources import (
    parts_out_here,
    recorded_parts_out,
    recorded_sensors,
    sensors_of_nodes,
    usable_sensors,
)
from seatrial.stats.energy import FEWEST_VALUES

LONGEST_PHASE_S = 120.0
"""A phase is not extended beyond this, whatever its sensors need."""
_WATCH_S = 3.0
_SPARE = 1.3
_MOST_POINTS = 600
_PARTS_EVERY_S = 60.0
"""A BMC is asked for the states of its fans and supplies no more often."""


class PowerMeter:
    """Sensors that are being read; `why_not`: why there are none, "" if there are."""

    def __init__(
        self,
        beside: Beside | None,
        why_not: str = "",
        parts_out: Callable[[], Sequence[PartOut]] = lambda: (),
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._beside, self.why_not, self._parts_out = beside, why_not, parts_out
        self._readers = [one for one in (beside, elsewhere) if one is not None]
        self._out, self._asked_s = tuple(parts_out()), time.monotonic()
        self._idle_since_s = time.monotonic()

    @property
    def least_phase_s(self) -> float:
        """How long a phase must be so that its energy is known: of the node if a sensor measures it, else of its
        parts."""
        sensors = self._sensors
        of_node = [one for one in sensors if one.scope is Scope.NODE] or sensors
        longest_s = max((max(period_s(one), one.window_s or 0.0) for one in of_node), default=0.0)
        return min(LONGEST_PHASE_S, _SPARE * FEWEST_VALUES * longest_s)

    @property
    def _sensors(self) -> tuple[Sensor, ...]:
        return tuple(sensor for one in self._readers for sensor in one.sensors)

    def wait_idle(self) -> None:
        """Wait until the machine was idle for long enough, since the meter was started or the last `busy_until`."""
        if self._beside is not None:
            idle_until_s = self._idle_since_s + idle_s(self._sensors)
            time.sleep(max(0.0, idle_until_s - time.monotonic()))

    def busy_until_now(self) -> None:
        """Programs have run until now."""
        self._idle_since_s = time.monotonic()

    def of_phase(self, started_s: float, start_s: float, end_s: float) -> PowerOverTime:
        """The energy from `start_s` to `end_s`, of a program that was started at `started_s` (CLOCK_MONOTONIC). What
        was read before this phase is forgotten."""
        if self._beside is None:
            return PowerOverTime()
        found = [pair for one in self._readers for pair in zip(one.sensors, one.readings(), strict=True)]
        energies = tuple(measured(sensor, readings, start_s, end_s) for sensor, readings in found)
        curves = {sensor.name: curve(sensor, readings, started_s) for sensor, readings in found}
        for one in self._readers:
            one.forget(end_s)
        before = self._out
        if time.monotonic() - self._asked_s > _PARTS_EVERY_S:
            self._out, self._asked_s = tuple(self._parts_out()), time.monotonic()
        return PowerOverTime(energies, curves, tuple(dict.fromkeys((*before, *self._out))))


def power_meter_here(cpus: Sequence[int] | None = None) -> AbstractContextManager[PowerMeter]:
    """The same for this node, with the BMC that the site file states."""
    access = site_in_force().power_at(place_in_force(), socket.gethostname().partition(".")[0])
    return power_meter(access, cpus)


@contextmanager
def power_meter(
    access: PowerAccess,
    cpus: Sequence[int] | None,
    recorded: tuple[str, str] | None = None,
    others: Sequence[tuple[str, PowerAccess]] = (),
    elsewhere: Sequence[tuple[Sequence[str], Sequence[str]]] = (),
) -> Iterator[PowerMeter]:
    """Read the usable sensors of this node until the end of the block; `recorded`: those of a tree (kind, folder);
    `others`: also those of further nodes that can be asked from here; `elsewhere`: further nodes, each with the
    command that starts a reader there.
    `cpus` are those that the reader may use (None: all). Without a usable sensor, or if the reader cannot be started,
    the meter shows nothing and says why. Raises UsageError for a password that cannot be read."""
    with _sensors(access, recorded, others) as known:
        sensors = usable_sensors(known, _WATCH_S) if known else []
    if not sensors:
        yield PowerMeter(None, "nothing usable measures power here; `seatrial power` lists what was found, and why not")
        return
    orders = orders_for(sensors, access, recorded, others)
    ask = (
        partial(parts_out_here, access, others)
        if recorded is None
        else partial(recorded_parts_out, recorded[0], Path(recorded[1]))
    )
    with ExitStack() as running:
        try:
            beside = running.enter_context(reading(orders, sensors, cpus))
            there = running.enter_context(reading_on(elsewhere)) if elsewhere else None
            meter = PowerMeter(beside, parts_out=ask, elsewhere=there)
        except OSError as error:
            meter = PowerMeter(None, f"power was not measured: {error.strerror or error}")
        yield meter


@contextmanager
def _sensors(
    access: PowerAccess, recorded: tuple[str, str] | None, others: Sequence[tuple[str, PowerAccess]]
) -> Iterator[list[Sensor]]:
    if recorded is not None:
        yield recorded_sensors(recorded[0], Path(recorded[1]))
        return
    with sensors_of_nodes(access, others) as found:
        yield found


def curve(sensor: Sensor, readings: Sequence[Reading], started_s: float) -> Curve:
    """The power over time. Of a counter, that between two changes; of many values, means of neighbours."""
    if sensor.kind is SourceKind.COUNTER:
        known: list[tuple[float, float]] = []
        for one in readings:
            if one.joules is not None and (not known or one.joules != known[-1][1]):
                known.append((one.at_s, one.joules))
        steps = [(first, second) for first, second in pairwise(known) if second[1] >= first[1] and second[0] > first[0]]
        points = [((start + end) / 2, (after - before) / (end - start)) for (start, before), (end, after) in steps]
    else:
        points = [(one.at_s, one.watts) for one in readings if one.watts is not None]
    each = -(-len(points) // _MOST_POINTS)
    groups = [points[first : first + each] for first in range(0, len(points), max(1, each))]
    return tuple(
        (
            round(sum(at for at, _ in group) / len(group) - started_s, 3),
            round(sum(watts for _, watts in group) / len(group), 3),
        )
        for group in groups
    )
