"""A node with a planted curve of power, as a sensor shows it: of now and then, averaged, counted, stale or stuck."""

from __future__ import annotations

import numpy as np

from seatrial.model.machine.power import Scope, SourceKind
from seatrial.probes.power.source import Reading, Sensor

_STEPS = 4000
"""Of the phase."""


class Planted:
    """Power of a phase: "step", "ramp" or "steps"; idle before and after. Times are on a virtual clock, from 0."""

    def __init__(
        self, kind: str, start_s: float, end_s: float, after_s: float, idle_W: float = 200.0, load_W: float = 500.0
    ) -> None:
        self.start_s, self.end_s, self.last_s = start_s, end_s, end_s + after_s
        step_s = (end_s - start_s) / _STEPS
        self._at_s = np.arange(0.0, self.last_s + 1, step_s)
        within = (self._at_s - start_s) / (end_s - start_s)
        power = {
            "step": np.full(within.shape, load_W),
            "ramp": idle_W + (load_W - idle_W) * within,
            "steps": np.where((within * 5) % 1 < 0.5, load_W, (idle_W + load_W) / 2),
        }[kind]
        self._power = np.where((within >= 0) & (within < 1), power, idle_W)
        self._total = np.concatenate([[0.0], np.cumsum(self._power)[:-1] * step_s])

    def joules(self, at_s: float) -> float:
        """The energy up to then."""
        return float(np.interp(at_s, self._at_s, self._total))

    @property
    def energy_J(self) -> float:
        return self.joules(self.end_s) - self.joules(self.start_s)

    def watts(self, at_s: float, window_s: float) -> float:
        """The power, averaged over the time before."""
        if not window_s:
            return float(np.interp(at_s, self._at_s, self._power))
        return (self.joules(at_s) - self.joules(at_s - window_s)) / window_s


class Shown:
    """What a sensor shows of it: a new value every `refresh_s`, the first at `phase_s`; a counter of whole J with a
    modulus. From `still_s` on, no new value comes: with its own time (stale), or without (stuck)."""

    def __init__(
        self,
        planted: Planted,
        refresh_s: float,
        window_s: float = 0.0,
        phase_s: float = 0.0,
        modulus_J: float | None = None,
        still_s: float | None = None,
        has_time: bool = False,
    ) -> None:
        self.planted, self.refresh_s, self.window_s, self.phase_s = planted, refresh_s, window_s, phase_s
        self.modulus_J, self.still_s, self.has_time = modulus_J, still_s, has_time

    def update_s(self, at_s: float) -> float:
        """When the value that is read then was made."""
        last = min(at_s, at_s if self.still_s is None else self.still_s)
        return (last - self.phase_s) // self.refresh_s * self.refresh_s + self.phase_s

    def value(self, at_s: float) -> float:
        """What is read then."""
        update_s = self.update_s(at_s)
        if self.modulus_J is not None:
            return float(int(self.planted.joules(update_s) + 990.0) % int(self.modulus_J))
        return float(round(self.planted.watts(update_s, self.window_s)))

    def sensor(self) -> Sensor:
        kind = SourceKind.GAUGE if self.modulus_J is None else SourceKind.COUNTER
        return Sensor(
            "planted",
            Scope.NODE,
            kind,
            "node",
            lambda: Reading(0.0),
            window_s=self.window_s,
            refresh_s=self.refresh_s,
            modulus_J=self.modulus_J,
            quantum=1.0,
        )

    def readings(self, period_s: float, chance: np.random.Generator) -> list[Reading]:
        """As the reader gets them, each of them a little late."""
        found = []
        first_s = chance.random() * period_s + self.window_s + self.refresh_s
        for due_s in np.arange(first_s, self.planted.last_s, period_s):
            at_s = due_s + 0.1 * period_s * chance.random()
            value = self.value(at_s)
            age_s = float(round(at_s - self.update_s(at_s))) if self.has_time else None
            is_counter = self.modulus_J is not None
            found.append(Reading(float(at_s), 0.0, None if is_counter else value, value if is_counter else None, age_s))
        return found
