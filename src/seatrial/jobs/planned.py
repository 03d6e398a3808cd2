"""The experiments of a study, or of the standard trial, and the jobs that they would be measured in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.engine.planned import planned_points, planned_study, planned_trial
from seatrial.errors import UsageError
from seatrial.jobs.placed_nodes import with_placed_nodes
from seatrial.jobs.queue import Queue, Where, part_here
from seatrial.jobs.request import (
    Submission,
    nodes_of,
    planned_script,
    points_of,
    portions_of,
    refuse_beyond_site,
)
from seatrial.jobs.submitted import machine_of_place, refuse_too_much
from seatrial.launch.allocation import machine_here
from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.model.study.study import Study
from seatrial.plan.planned import (
    PlannedExperiment,
    PlannedJob,
    PlannedJobs,
    PlannedStudy,
    PlannedTrial,
    joined_plans,
)
from seatrial.plan.points import Settings, plan_points, values_of
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import only_study, read_study_file, with_declared
from seatrial.store.folder import ResultsFolder


def plan(
    targets: Sequence[str | Study] = (),
    settings: Settings | None = None,
    budget_s: float | None = None,
    *,
    site: Path | None = None,
    system: str | None = None,
) -> PlannedStudy | PlannedTrial:
    """The experiments that `run` would measure of these targets on this machine: of benchmarks, of a study (its file,
    or as a value), or of the standard trial. `budget_s` is for the whole run. Raises UsageError as `run` does."""
    with at_site(site, system):
        machine = machine_here()
        if targets and isinstance(targets[0], Study):
            study: Study | None = targets[0]
            names: list[str] = []
        else:
            names = with_declared(list(map(str, targets)))
            study = only_study(names, settings or {})
        if study is not None:
            return planned_study(_within(part_here(study, site, system), budget_s), machine)
        if not names and not settings:
            return planned_trial(machine, budget_s)
        points = plan_points(names, values_of(settings or {}), machine)
        return planned_points(points, machine, budget_s, is_named=bool(names))


def _within(study: Study, budget_s: float | None) -> Study:
    """The study with the budget of the command, if it has one."""
    return study if budget_s is None else replace(study, repeat=replace(study.repeat, budget_s=budget_s))


def plan_jobs(places: Sequence[Where], asked: Submission) -> tuple[PlannedStudy | PlannedTrial, PlannedJobs]:
    """The experiments of a study (without a target: of the standard trial) on the nodes of a partition, and the jobs
    for them. Several partitions are those of a study with the axis `system`.

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
    with asked.at(where) as command:
        points = points_of(command, machine)
        refuse_beyond_site(command, points, where)
        found: PlannedStudy | PlannedTrial
        if command.study is not None:
            found = planned_study(_within(command.study, command.budget_s), machine)
        else:
            found = planned_points(points, machine, command.budget_s, is_named=bool(command.names))
        found = replace(found, experiments=tuple(_open(one, known is not None) for one in found.experiments))
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


def _open(planned: PlannedExperiment, is_known: bool) -> PlannedExperiment:
    """An experiment that cannot run on this machine may run on the nodes: open unless they are known, and if it needs
    several, which only the job has."""
    can_differ = planned.refusal is not None and planned.refusal.state in (State.SKIPPED, State.UNSUPPORTED)
    return replace(planned, is_open=can_differ and (not is_known or nodes_of(planned.point) > 1))


def known_machine(results: Path, where: Where) -> Machine | None:
    """What the nodes of a partition are, if an earlier job into a results folder has found it."""
    try:
        return machine_of_place(ResultsFolder.existing(results), where)
    except UsageError:
        return None
