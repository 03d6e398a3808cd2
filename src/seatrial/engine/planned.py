"""The experiments behind points, for plans: the same ids that a run will use, with nothing measured; and the programs
that a study starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.engine.durations import Durations, MissingBuilds
from seatrial.engine.kinds import KINDS
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import prepared_points
from seatrial.engine.ready import Refused
from seatrial.engine.trial import BUDGET_EACH_S
from seatrial.environments.chosen import Environments, refuse_misspelt
from seatrial.environments.compiler import variables_with
from seatrial.environments.mpi import linked_mpi, mpi_of
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import Study, study_without_secrets
from seatrial.plan.planned import LinkedProgram, PlannedExperiment, PlannedStudy, PlannedTrial
from seatrial.plan.points import Point, plan_points, plan_study, refuse_unfit, same_sides, without_secrets
from seatrial.stats.interval import StoppingRule


def linked_programs(points: Sequence[Point], machine: Machine) -> tuple[LinkedProgram, ...]:
    """Each program once; those that are linked with no MPI library are left out."""
    kinds = {declared: kind(Environments(machine), "", Listener(), False) for declared, kind in KINDS.items()}
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


class ExpectedTimes(Frozen):
    """What points are expected to take on this machine, in seconds: `repeat_s` is the time of a repeat by the `id()` of
    its point, `build_s` that of all missing builds together."""

    repeat_s: Mapping[int, float]
    build_s: float


def expected_times(points: Sequence[Point], machine: Machine) -> ExpectedTimes:
    """From what this machine took before, else from what the benchmarks declare. Nothing is built."""
    durations = Durations.of(machine_identity(machine)[:16])
    missing = MissingBuilds(Environments(machine), durations)
    builds = {build: seconds for point in points for build, seconds in missing.of(point).items()}
    return ExpectedTimes({id(point): durations.repeat_s(point) for point in points}, sum(builds.values()))


def planned_experiments(
    points: Sequence[Point], machine: Machine
) -> tuple[tuple[Point, Experiment, Outcome | None], ...]:
    """(point, experiment, why it cannot run) for each point, in their order.

    A program is built only if it loads a library (cpu.gemm) and is not in the cache: the library is part of the
    experiment's identity, and only the program can report it.
    """
    key = machine_identity(machine)[:16]
    prepared = prepared_points(points, Environments(machine), key, Listener(), builds=False)
    return tuple(
        (point, item.experiment, item.outcome if isinstance(item, Refused) else None)
        for point, item in zip(points, prepared, strict=True)
    )


def planned_points(
    points: Sequence[Point], machine: Machine, budget_s: float | None = None, *, is_named: bool = True
) -> PlannedTrial:
    """The experiments of these points, each once: of benchmarks that the user named, or of the standard trial.
    `budget_s` is for all."""
    refuse_misspelt(point.environment for point in points)
    times = expected_times(points, machine)
    found: dict[str, PlannedExperiment] = {}
    for point, experiment, refusal in planned_experiments(points, machine):
        planned = PlannedExperiment(point, experiment, experiment.id, refusal, times.repeat_s[id(point)])
        found.setdefault(experiment.id, replace(planned, point=without_secrets(point)))
    return PlannedTrial(tuple(found.values()), StoppingRule(budget_s=BUDGET_EACH_S), times.build_s, is_named, budget_s)


def planned_trial(machine: Machine, budget_s: float | None = None) -> PlannedTrial:
    """The experiments of the standard trial of a machine, each once."""
    return planned_points(plan_points([], {}, machine), machine, budget_s, is_named=False)


def planned_study(study: Study, machine: Machine) -> PlannedStudy:
    """The experiments of a study on a machine, each once, with secrets masked."""
    found = plan_study(study, machine)
    refuse_unfit(study, found.points)
    refuse_misspelt(point.environment for point in found.points)
    points = tuple(map(without_secrets, found.points))
    experiments: dict[str, PlannedExperiment] = {}
    ids: dict[int, str] = {}
    times = expected_times(found.points, machine)
    planned = planned_experiments(found.points, machine)
    for real, point, (_, experiment, refusal) in zip(found.points, points, planned, strict=True):
        ids[id(real)] = experiment.id
        experiments.setdefault(
            experiment.id, PlannedExperiment(point, experiment, experiment.id, refusal, times.repeat_s[id(real)])
        )
    return PlannedStudy(
        study_without_secrets(study),
        points,
        tuple(experiments.values()),
        len(points) + found.merged,
        same_sides(study, found.points, ids),
        linked_programs(found.points, machine),
        times.build_s,
    )
