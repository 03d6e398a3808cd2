"""The experiments that a study, or the standard trial, would run on this machine."""

from __future__ import annotations

from pathlib import Path

from seatrial.engine.linked_programs import linked_programs
from seatrial.engine.planned import expected_times, planned_experiments
from seatrial.engine.trial import BUDGET_EACH_S
from seatrial.environments.misspelt import refuse_misspelt
from seatrial.errors import UsageError
from seatrial.interface.declared import with_declared
from seatrial.interface.machine_here import machine_here
from seatrial.interface.site import at_site
from seatrial.interface.study_file import read_study_file
from seatrial.interface.study_systems import part_here
from seatrial.model.machine import Machine
from seatrial.model.study import Study
from seatrial.model.study_document import study_without_secrets
from seatrial.plan.planned_study import PlannedExperiment, PlannedStudy
from seatrial.plan.planned_trial import PlannedTrial
from seatrial.plan.points import plan_points, without_secrets
from seatrial.plan.study_points import plan_study, refuse_unfit, same_sides
from seatrial.stats.stopping import StoppingRule


def plan(
    study: Path | None = None,
    *,
    site: Path | None = None,
    system: str | None = None,
    machine: Machine | None = None,
) -> PlannedStudy | PlannedTrial:
    """The experiments of a study file on a machine (default: this one); without one, of the standard trial. Raises
    UsageError for an invalid study."""
    with at_site(site, system):
        machine = machine or machine_here()
        if study is None:
            with_declared()
            return planned_trial(machine)
        (target,) = with_declared([str(study)])
        if target != str(study):
            raise UsageError(
                f"{study} declares the benchmark {target}, and plan takes a study",
                f"measure it: seatrial run {study}; or plan a study with `benchmarks: {{{target}: {{}}}}`",
            )
        found = read_study_file(study)
        return planned_study(found if system is None else part_here(found, site, system), machine)


def planned_trial(machine: Machine) -> PlannedTrial:
    """The experiments of the standard trial of a machine, each once."""
    points = plan_points([], {}, machine)
    times = expected_times(points, machine)
    found: dict[str, PlannedExperiment] = {}
    for point, experiment, refusal in planned_experiments(points, machine):
        planned = PlannedExperiment(point, experiment, experiment.id, refusal, times.repeat_s[id(point)])
        found.setdefault(experiment.id, planned)
    return PlannedTrial(tuple(found.values()), StoppingRule(budget_s=BUDGET_EACH_S), times.build_s)


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
