"""The experiments of a study, or of the standard trial, and the jobs that they would be measured in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.engine.planned import planned_study, planned_trial
from seatrial.errors import UsageError
from seatrial.jobs.placed_nodes import with_placed_nodes
from seatrial.jobs.queue import Queue, Where, part_here
from seatrial.jobs.request import Submission, planned_script, portions_of
from seatrial.jobs.submitted import machine_of_place, refuse_too_much
from seatrial.launch.allocation import machine_here
from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import Machine
from seatrial.plan.planned import PlannedJob, PlannedJobs, PlannedStudy, PlannedTrial, joined_plans
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import read_study_file, with_declared
from seatrial.store.folder import ResultsFolder


def plan(
    study: Path | None = None, *, site: Path | None = None, system: str | None = None, machine: Machine | None = None
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


def plan_jobs(places: Sequence[Where], asked: Submission) -> tuple[PlannedStudy | PlannedTrial, PlannedJobs]:
    """The experiments of a study (without a target: of the standard trial) on the nodes of a partition, and the jobs
    for them. Several places are those of a study with the axis `system`.

    If an earlier job into the results folder found what the nodes are, it is planned for that machine, else for this
    one. Raises UsageError, also for more node-hours than allowed.
    """
    if asked.budget_s is not None:
        asked = replace(asked, budget_s=asked.budget_s / len(places))
    one_of_each = [_plan_at(where, asked) for where in places]
    jobs = tuple(job for _, own, _ in one_of_each for job in own)
    refuse_too_much(jobs, asked.max_node_hours)
    found: PlannedStudy | PlannedTrial = one_of_each[0][0]
    if len(places) > 1 and asked.targets:
        with at_site(asked.site, None):
            whole = read_study_file(Path(*with_declared(asked.targets)))
        found = joined_plans(whole, [part for part, _, _ in one_of_each if isinstance(part, PlannedStudy)])
    text = ", ".join(where.text for where in places)
    return found, PlannedJobs(text, jobs, all(is_known for _, _, is_known in one_of_each))


def _plan_at(where: Where, asked: Submission) -> tuple[PlannedStudy | PlannedTrial, list[PlannedJob], bool]:
    """The experiments and jobs on one partition, and whether its nodes are known."""
    known = known_machine(asked.results, where)
    machine = known or discover_live()
    study = Path(*asked.targets) if asked.targets else None
    found = plan(study, site=asked.site, system=where.in_site_file, machine=machine)
    with asked.at(where) as command:
        queue = Queue(where.batch, os.environ)
        portions = [
            with_placed_nodes(portion, where, queue)
            for portion in portions_of(command, machine, where.place.partition.longest_s)
        ]
    jobs = [
        PlannedJob(
            where.text,
            tuple(dict.fromkeys(point.benchmark.name for point in portion.points)),
            portion.nodes,
            portion.expected_s,
            portion.limit_s,
            planned_script(where, asked.results, portion),
        )
        for portion in portions
    ]
    return found, jobs, known is not None


def known_machine(results: Path, where: Where) -> Machine | None:
    """What the nodes of a partition are, if an earlier job into a results folder has found it."""
    try:
        return machine_of_place(ResultsFolder.existing(results), where)
    except UsageError:
        return None
