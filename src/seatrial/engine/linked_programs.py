"""The installed programs that a study starts, and the MPI library that each is linked with."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.events import Silent
from seatrial.engine.kinds import KINDS
from seatrial.environments.chosen import Environments
from seatrial.environments.mpi import linked_mpi, mpi_of
from seatrial.environments.variables import variables_with
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.machine import Machine
from seatrial.plan.planned_study import LinkedProgram
from seatrial.plan.points import Point


def linked_programs(points: Sequence[Point], machine: Machine) -> tuple[LinkedProgram, ...]:
    """Each program once; those that are linked with no MPI library are left out."""
    kinds = {declared: kind(Environments(machine), "", Silent(), False) for declared, kind in KINDS.items()}
    found: dict[LinkedProgram, None] = {}
    asked: set[tuple[str, str, EnvironmentChoice]] = set()
    for point in points:
        program = point.benchmark.program
        for path in kinds[type(program)].installed_programs(point, program):
            key = (point.benchmark.name, str(path), point.environment)
            if key in asked:
                continue
            asked.add(key)
            variables = variables_with(point.environment.variables)
            name, where = linked_mpi(path, variables)
            if name:
                mpi = mpi_of(path, variables)
                known = None if mpi is None else mpi.name
                found.setdefault(LinkedProgram(point.benchmark.name, str(path), name, where, known))
    return tuple(found)
