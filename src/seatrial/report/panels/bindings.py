"""How to bind to each GPU and adapter: one row for all devices next to the same CPUs."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.analysis.bindings import Binding, bindings
from seatrial.model.machine import Machine
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, cpu_list

_MOST_NAMED = 12


def bindings_table(machine: Machine) -> Table | None:
    """The table; None if the CPUs next to the devices are unknown, or all CPUs are next to every device."""
    alike: dict[Binding, list[str]] = {}
    for binding in bindings(machine):
        if binding.cpus:
            alike.setdefault(replace(binding, device=""), []).append(binding.device)
    everywhere = set(machine.allowed_cpus or machine.pus)
    if all(set(binding.cpus or ()) == everywhere for binding in alike):
        return None
    columns = [
        Column("Device"),
        Column("NUMA", numeric=True),
        Column("CPUs"),
        Column("numactl"),
        Column("Open MPI"),
        Column("Slurm"),
    ]
    rows = [
        [
            Cell(_named(devices)),
            Cell(NO_VALUE if binding.numa is None else str(binding.numa)),
            Cell(cpu_list(binding.cpus or ())),
            _command(binding.numactl),
            _command(binding.mpirun),
            _command(binding.srun),
        ]
        for binding, devices in alike.items()
    ]
    return Table("Bindings for each device", columns, rows)


def _named(devices: list[str]) -> str:
    more = f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else ""
    return ", ".join(devices[:_MOST_NAMED]) + more


def _command(text: str | None) -> Cell:
    return Cell(NO_VALUE) if text is None else Cell(text, is_code=True)
