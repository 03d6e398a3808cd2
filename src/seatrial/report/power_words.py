"""Energy and power as words and tables: with their errors, and by the aspects of the method of the EE HPC working group
("Energy Efficient High Performance Computing Power Measurement Methodology", version 2.0): the time that was measured,
the fraction of the machine, its subsystems, and where and how exactly the meter measures."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.machine.power import Scope, Supply
from seatrial.model.results.energy import MeasuredEnergy, MpiEnergy
from seatrial.model.spelling import NO_VALUE, show, show_percent
from seatrial.model.units import Unit
from seatrial.report.blocks import Cell, Cells, Column, Table, headings, right

_SECOND = 1.0
"""The method asks for a value per second at least."""


def with_error(value: float | None, error: float | None, unit: Unit) -> str:
    """A value with its error as a share: "450 W ± 4.4 %"."""
    share = abs(error / value) if value and error is not None else None
    return f"{show(value, unit)} ± {show_percent(share)}"


def energy_words(one: MeasuredEnergy) -> str:
    """The energy of a phase by one sensor, as a sentence."""
    if one.energy is None:
        return f"{one.source}: no energy; {one.reason}."
    mean = with_error(one.mean_power, one.mean_power_error, "W")
    return f"{one.source}: {with_error(one.energy, one.energy_error, 'J')}, {mean} on average."


def mpi_energy_words(one: MpiEnergy) -> str:
    """The energy in MPI and outside of it by one sensor, as a sentence."""
    if one.in_mpi is None or one.outside is None:
        return f"{one.source}: the energy in MPI is not known; {one.reason}."
    inside, outside = with_error(one.in_mpi, one.in_mpi_error, "J"), with_error(one.outside, one.outside_error, "J")
    return f"{one.source}: {inside} in MPI, {outside} outside of it."


def energy_table(title: str, energies: Sequence[MeasuredEnergy]) -> Table:
    """A row for each sensor."""
    columns: list[str | Column] = [*headings("Sensor", "Scope", "Supply")]
    columns += right("Energy", "Mean power", "Highest", "Idle before", "Idle after", "Over idle", "Values", "Every")
    columns += headings("Not in the error, or why there is none")
    rows: list[Cells] = []
    for one in energies:
        numbers = [
            Cell(with_error(one.energy, one.energy_error, "J") if one.energy is not None else NO_VALUE, one.energy),
            Cell(
                with_error(one.mean_power, one.mean_power_error, "W") if one.mean_power is not None else NO_VALUE,
                one.mean_power,
            ),
            *(Cell.amount(watts, "W") for watts in (one.peak_power, one.idle_before, one.idle_after)),
            Cell.amount(one.energy_over_idle, "J"),
            Cell.number(one.values),
            Cell.amount(one.refresh_s, "s"),
        ]
        rows.append([one.source, one.scope.value, one.supply.value, *numbers, one.reason])
    return Table.of(title, columns, rows)


def aspects_words(energies: Sequence[MeasuredEnergy]) -> str:
    """The four aspects of the sensor that stands for the node; a level needs all four, and the site knows two."""
    node = next((one for one in energies if one.scope is Scope.NODE and one.energy is not None), None)
    if node is None:
        return "EE HPC WG 2.0: no level, since no sensor measured the whole node."
    often = node.refresh_s is not None and node.refresh_s <= _SECOND
    idle = "idle power before and after" if node.idle_before is not None and node.idle_after is not None else "no idle"
    time = f"the whole phase, a value every {show(node.refresh_s, 's')}, {idle}"
    place = {
        Supply.AC: "before the power supplies (AC)",
        Supply.DC: "behind the power supplies (DC), whose losses are left out",
        Supply.UNKNOWN: "before or behind the power supplies: not known",
    }[node.supply]
    accuracy = "not stated" if node.accuracy is None else f"± {show_percent(node.accuracy)}"
    missing = [
        *([] if often else ["a value per second"]),
        *(["the accuracy of the meter"] if node.accuracy is None else []),
        *(["the losses of the power supplies"] if node.supply is not Supply.AC else []),
    ]
    verdict = f"No level: {', '.join(missing)} missing" if missing else "The level follows from the fraction measured"
    return (
        f"EE HPC WG 2.0, by {node.source}. Time: {time}. Fraction: one node. Subsystems: the node, without network, "
        f"storage and cooling. Meter: {place}; accuracy {accuracy}. {verdict}."
    )
