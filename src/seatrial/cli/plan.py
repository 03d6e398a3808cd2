"""`seatrial plan`."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.output import print_json, style_of
from seatrial.cli.site import use_site_options
from seatrial.cli.study_file import read_study_file
from seatrial.engine.planned import planned_experiments
from seatrial.machine.live import discover_live
from seatrial.model.machine import Machine
from seatrial.model.study import Study
from seatrial.plan.planned_study import PlannedExperiment, PlannedStudy
from seatrial.plan.study_points import plan_study
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import plan_text


def plan_command(study: Path, *, as_json: bool, site: Path | None = None, system: str | None = None) -> None:
    """Print what the study would run on this machine. Raises UsageError for a study that cannot be understood."""
    use_site_options(site, system)
    plan = planned_study(read_study_file(study), discover_live())
    if as_json:
        print_json(plan_document(plan))
    else:
        print(plan_text(plan, style_of(sys.stdout)))


def planned_study(study: Study, machine: Machine) -> PlannedStudy:
    """The experiments of a study on a machine, each once."""
    found = plan_study(study, machine)
    experiments: dict[str, PlannedExperiment] = {}
    for point, experiment, refusal in planned_experiments(found.points, machine):
        key = experiment.id
        experiments.setdefault(key, PlannedExperiment(point, experiment, key, refusal))
    return PlannedStudy(study, found.points, tuple(experiments.values()), len(found.points) + found.merged)
