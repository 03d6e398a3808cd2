"""The experiments that a study would run on this machine."""

from __future__ import annotations

from pathlib import Path

from seatrial.engine.linked_programs import linked_programs
from seatrial.engine.planned import planned_experiments
from seatrial.interface.declared import with_declared
from seatrial.interface.site import at_site
from seatrial.interface.study_file import read_study_file
from seatrial.machine.live import discover_live
from seatrial.model.machine import Machine
from seatrial.model.study import Study
from seatrial.model.study_document import study_without_secrets
from seatrial.plan.planned_study import PlannedExperiment, PlannedStudy
from seatrial.plan.points import without_secrets
from seatrial.plan.study_points import plan_study, refuse_unfit, same_sides


def plan(study: Path, *, site: Path | None = None, system: str | None = None) -> PlannedStudy:
    """The experiments of a study file on this machine. Raises UsageError for an invalid study."""
    with at_site(site, system):
        with_declared()
        return planned_study(read_study_file(study), discover_live())


def planned_study(study: Study, machine: Machine) -> PlannedStudy:
    """The experiments of a study on a machine, each once, with secrets masked."""
    found = plan_study(study, machine)
    refuse_unfit(study, found.points)
    points = tuple(map(without_secrets, found.points))
    experiments: dict[str, PlannedExperiment] = {}
    ids: dict[int, str] = {}
    planned = planned_experiments(found.points, machine)
    for real, point, (_, experiment, refusal) in zip(found.points, points, planned, strict=True):
        ids[id(real)] = experiment.id
        experiments.setdefault(experiment.id, PlannedExperiment(point, experiment, experiment.id, refusal))
    return PlannedStudy(
        study_without_secrets(study),
        points,
        tuple(experiments.values()),
        len(points) + found.merged,
        same_sides(study, found.points, ids),
        linked_programs(found.points, machine),
    )
