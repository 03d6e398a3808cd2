"""The experiments that a study would run on this machine."""

from __future__ import annotations

from pathlib import Path

from seatrial.engine.linked_programs import linked_programs
from seatrial.engine.planned import planned_experiments
from seatrial.interface.site import at_site
from seatrial.interface.study_file import read_study_file
from seatrial.machine.live import discover_live
from seatrial.model.machine import Machine
from seatrial.model.study import Study
from seatrial.plan.planned_study import PlannedExperiment, PlannedStudy
from seatrial.plan.study_points import plan_study, refuse_unfit, same_sides


def plan(study: Path, *, site: Path | None = None, system: str | None = None) -> PlannedStudy:
    """The experiments of a study file on this machine. Raises UsageError for an invalid study."""
    with at_site(site, system):
        return planned_study(read_study_file(study), discover_live())


def planned_study(study: Study, machine: Machine) -> PlannedStudy:
    """The experiments of a study on a machine, each once."""
    found = plan_study(study, machine)
    refuse_unfit(study, found.points)
    experiments: dict[str, PlannedExperiment] = {}
    ids: dict[int, str] = {}
    for point, experiment, refusal in planned_experiments(found.points, machine):
        key = ids[id(point)] = experiment.id
        experiments.setdefault(key, PlannedExperiment(point, experiment, key, refusal))
    return PlannedStudy(
        study,
        found.points,
        tuple(experiments.values()),
        len(found.points) + found.merged,
        same_sides(study, found.points, ids),
        linked_programs(found.points, machine),
    )
