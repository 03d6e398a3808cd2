"""The jobs that a study, or the standard trial, would be measured in."""

from __future__ import annotations

from pathlib import Path

from seatrial.errors import UsageError
from seatrial.interface.job_request import planned_script, portions_of
from seatrial.interface.plan import plan
from seatrial.interface.submitted import command_at, machine_of_place, refuse_too_much
from seatrial.interface.system import Where
from seatrial.machine.live import discover_live
from seatrial.model.machine import Machine
from seatrial.plan.planned_jobs import PlannedJob, PlannedJobs
from seatrial.plan.planned_study import PlannedStudy
from seatrial.plan.planned_trial import PlannedTrial
from seatrial.store.folder import ResultsFolder


def plan_jobs(
    where: Where,
    study: Path | None,
    results: Path,
    *,
    site: Path | None = None,
    budget_s: float | None = None,
    max_node_hours: float | None = None,
) -> tuple[PlannedStudy | PlannedTrial, PlannedJobs]:
    """The experiments of a study (None: of the standard trial) on the nodes of a partition, and the jobs for them.

    If an earlier job into the results folder found what the nodes are, it is planned for that machine, else for this
    one. Raises UsageError, also for more node-hours than allowed.
    """
    known = known_machine(results, where)
    machine = known or discover_live()
    found = plan(study, site=site, system=where.in_site_file, machine=machine)
    targets = () if study is None else (str(study),)
    with command_at(where, targets, {}, budget_s=budget_s, again=False, keep=False, site=site) as command:
        portions = portions_of(command, machine, where.place.partition.longest_s)
    refuse_too_much(portions, max_node_hours)
    jobs = tuple(
        PlannedJob(
            tuple(dict.fromkeys(point.benchmark.name for point in portion.points)),
            portion.nodes,
            portion.expected_s,
            portion.limit_s,
            planned_script(where, results, portion),
        )
        for portion in portions
    )
    return found, PlannedJobs(where.text, jobs, known is not None)


def known_machine(results: Path, where: Where) -> Machine | None:
    """What the nodes of a partition are, if an earlier job into a results folder has found it."""
    try:
        return machine_of_place(ResultsFolder.existing(results), where)
    except UsageError:
        return None
