"""The energy of a command or a phase, by one sensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Later, Text
from seatrial.model.machine.power import PartOut, Scope, SourceKind, Supply


class MeasuredEnergy(Frozen):
    """The energy, in J, and power, in W, of a phase by one sensor; `reason` states why there is none.

    Each error is a half-width. It holds what the sensor cannot show (how often it changes, its averaging, its steps),
    and its accuracy if the maker states one.
    """

    source: Text
    scope: Scope
    supply: Supply
    energy: float | None
    energy_error: float | None
    mean_power: float | None
    mean_power_error: float | None
    peak_power: Annotated[float | None, "the highest value that was read"]
    peak_power_error: float | None
    idle_before: Annotated[float | None, "the steady power before; null: it was not steady, or not read"]
    idle_after: float | None
    energy_over_idle: Annotated[float | None, "less the idle power before and after, for the same time"]
    elapsed_s: float
    values: Annotated[int, "new values of the sensor in the phase"]
    refresh_s: float | None
    window_s: float | None
    accuracy: float | None
    reason: Annotated[str, "why there is no energy, or what its error does not hold"]
    of: Later[Annotated[str, "what it measures, in the words of the source"]] = ""
    kind: Later[SourceKind] = SourceKind.GAUGE
    node: Later[Annotated[str, 'which it is of; "": the one that the readings were made on']] = ""
    limit: Later[Annotated[float | None, "the power limit of what it measures, in W; null: unknown"]] = None

    @property
    def part(self) -> tuple[str, str]:
        """The node and what is measured in it: sensors of the same part measure the same, and so do all of a node."""
        return self.node, "" if self.scope is Scope.NODE else self.of or self.source


Curve = tuple[tuple[float, float], ...]
"""(seconds, W)."""


class PowerOverTime(Frozen):
    """What each sensor shows of a phase, and its power over time, in seconds from the start of the program."""

    energies: tuple[MeasuredEnergy, ...] = ()
    curves: Annotated[Mapping[str, Curve], "sensor -> (seconds, W)"] = field(default_factory=dict)
    parts_out: Later[Annotated[tuple[PartOut, ...], "fans and supplies that were out, as BMCs report"]] = ()


class MpiEnergy(Frozen):
    """The energy of a node in MPI and outside of it, in J, by one sensor, for all of its ranks; `reason` states why
    there is none. Each error is a half-width."""

    source: Text
    in_mpi: float | None
    in_mpi_error: float | None
    outside: float | None
    outside_error: float | None
    slice_s: Annotated[float | None, "the shortest time that the readings show; null: not known"]
    reason: str = ""


class PhaseEnergy(Frozen):
    """The energy of something that has run, by an external meter."""

    what: Annotated[Text, "benchmark, experiment and repeat; or command"]
    energy: MeasuredEnergy


class CommandEnergy(Frozen):
    """The energy of a command by each usable sensor, those of the node first."""

    command: Annotated[tuple[str, ...], "without secrets"]
    exit_status: Annotated[int, "as in a shell"]
    elapsed_s: float
    energies: tuple[MeasuredEnergy, ...]
    parts_out: Later[Annotated[tuple[PartOut, ...], "fans and supplies that were out, as the BMC reports"]] = ()
