"""The results of jobs, as if they had been measured here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.results import Asked, RunResult, machines_of, results_of, trial_of
from seatrial.analysis.study_results import joined, study_result
from seatrial.engine.planned import planned_experiments
from seatrial.errors import StoreError
from seatrial.jobs.batch.system import JobState
from seatrial.jobs.folder import JobFolder, Phase, entry_from
from seatrial.jobs.following import GIVEN_UP, REFUSED
from seatrial.jobs.queue import Where
from seatrial.jobs.request import Command, named_from_anywhere, part_of, points_of
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.model.secrets import masked_parameters
from seatrial.model.study.study import KeptStudy, study_from_document
from seatrial.model.units import duration
from seatrial.plan.points import Point
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import measured_on_nodes, read_heads

_log = logging.getLogger(__name__)
TIMED_OUT, FAILED = JobState.TIMED_OUT.value, JobState.FAILED.value


def results_of_jobs(
    folder: ResultsFolder,
    jobs: Sequence[tuple[JobFolder, Sequence[Point]]],
    waiting: Mapping[str, str],
    before: Sequence[tuple[Experiment, EnvironmentChoice]] = (),
    *,
    is_trial: bool,
) -> RunResult:
    """What these jobs measured, each with the points that it was submitted for; those that it did not come to have the
    outcome of the job. `waiting` says, by the id of a job's folder, why it has not ended. `before`: experiments that
    needed no job, because earlier ones have measured them."""
    contents = read_contents(folder)
    for line in contents.damaged:
        _log.warning("ignored: %s", line)
    asked: dict[str, Asked] = {}
    choices: dict[str, EnvironmentChoice] = {}
    studies: list[str] = []
    problems: list[str] = []
    for experiment, choice in before:
        asked[experiment.id] = Asked(experiment, measured_now=False)
        choices[experiment.id] = choice
    for job, points in jobs:
        for one, choice in _asked(job, points, partial(_newest_s, contents), waiting):
            asked.setdefault(one.experiment.id, one)
            choices.setdefault(one.experiment.id, choice)
        document = found_by(job)
        if document.get("study"):
            studies.append(str(document["study"]))
        if document.get("problem"):
            problems.append(str(document["problem"]))
    found = results_of(contents, list(asked.values()))
    known = {result.id: result for result in found}
    parts = [kept for key in studies if (kept := _study(folder, key)) is not None]
    kept = joined(parts) if parts else None
    result = RunResult(
        found,
        contents.environments,
        choices,
        study=None if kept is None else study_result(kept, contents, known),
        problem=StoreError(problems[0]) if problems else None,
    )
    machines = machines_of(contents)
    machine = next((one.experiment.machine for one in found if one.experiment.machine in machines), None)
    return replace(result, trial=trial_of(machines[machine], found, contents)) if is_trial and machine else result


def unstarted_of_jobs(
    folder: ResultsFolder, jobs: Sequence[tuple[JobFolder, Sequence[Point]]], waiting: Mapping[str, str]
) -> RunResult:
    """Of what `results_of_jobs` returns only the experiments that no record names a node of, and the problem. A screen
    asks for them node by node: with the records of all nodes, its time would grow with the square of their number."""
    measured = measured_on_nodes(folder)
    found: dict[str, ExperimentResult] = {}
    for job, points in jobs:
        for one, _ in _asked(job, points, lambda key: 0.0 if key in measured else None, waiting):
            if one.refusal is not None:
                key = one.experiment.id
                found.setdefault(key, ExperimentResult(key, one.experiment, "", one.refusal))
    problems = [str(problem) for job, _ in jobs if (problem := found_by(job).get("problem"))]
    return RunResult(tuple(found.values()), problem=StoreError(problems[0]) if problems else None)


def _newest_s(contents: Contents, key: str) -> float | None:
    """When the last repeat of an experiment began; None: it has none."""
    return max(record.t0 for record in contents.records[key]) if key in contents.experiments else None


def _study(folder: ResultsFolder, key: str) -> KeptStudy | None:
    """The study that jobs measured, as they stored it; None if it is damaged."""
    try:
        return study_from_document(folder.get("studies", key))
    except (StoreError, ValueError) as error:
        _log.warning("ignored: the study of the jobs cannot be read: %s", error)
        return None


def found_by(job: JobFolder) -> dict[str, Any]:
    """What a job measured, or was going to: `experiments` is a list of objects."""
    found = job.read("result.json") or job.read("planned.json") or {}
    entries = found.get("experiments")
    return {
        **found,
        "experiments": [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else [],
    }


def _asked(
    job: JobFolder,
    points: Sequence[Point],
    measured_s: Callable[[str], float | None],
    waiting: Mapping[str, str],
) -> Iterator[tuple[Asked, EnvironmentChoice]]:
    """`measured_s`: when an experiment was measured last; None: never."""
    ending = None if is_complete(job) else ending_of(job, waiting.get(job.id))
    since_s = float("inf") if job.has("collected") else job.submitted_s
    entries = found_by(job)["experiments"]
    for entry in entries:
        try:
            experiment, choice, outcome = entry_from(entry)
        except (KeyError, TypeError, ValueError, StoreError) as error:
            _log.warning("ignored: an experiment of %s cannot be read: %s", job.path, error)
            continue
        if (newest_s := measured_s(experiment.id)) is not None:
            yield Asked(experiment, measured_now=newest_s >= since_s), choice
        else:
            refusal = outcome if outcome is not None and not outcome.is_ok else ending
            yield Asked(experiment, refusal), choice
    if not entries:
        for point in points:
            unknown = Experiment(point.benchmark.name, masked_parameters(point.parameters), "", "", "")
            yield Asked(unknown, ending), point.environment


def is_complete(job: JobFolder) -> bool:
    """Whether a job is over, with a result."""
    return job.phase() in (Phase.ENDED, Phase.OVER) and job.read("result.json") is not None


def ending_of(job: JobFolder, waits: str | None = None) -> Outcome:
    """The outcome of what a job did not come to measure; `waits` says why it has not ended."""
    batch_id, over = job.batch_id, job.over()
    named = f"job {batch_id}" if batch_id else "the job"
    output = job.last_line()
    if over is None:
        status = job.exit_status()
        if status is None:
            return Outcome.failed(Stage.LAUNCH, f"{named} {waits or 'has not ended'}", output)
        seen = f"{named} ended with exit status {status} before it measured"
        return Outcome.failed(Stage.LAUNCH, f"{seen}: {output}" if output else seen, output)
    why = f": {over.reason}" if over.reason else ""
    if over.state == TIMED_OUT:
        limit_s = job.request.get("limit_s")
        limit = f" of {duration(limit_s)}" if isinstance(limit_s, int | float) else ""
        return Outcome(State.TIMED_OUT, f"{named} reached its time limit{limit}{why}", output)
    if over.state in (REFUSED, GIVEN_UP):
        return Outcome.failed(Stage.LAUNCH, f"{named} was {over.state}{why}", output)
    if over.state == FAILED and output:
        why += f"; its output ends: {output}"
    said = over.state if over.state.startswith(("never", "un")) else f"ended: {over.state}"
    return Outcome.failed(Stage.LAUNCH, f"{named} {said}{why}", output)


Measured = Mapping[str, Sequence[tuple[Experiment, EnvironmentChoice]]]
"""Benchmark -> its experiments, with their environments."""


def without_jobs(command: Command, jobs: Sequence[JobFolder]) -> Command | None:
    """The part of a command for which none of these jobs was submitted; None if nothing is left. A submitter may have
    ended before it had submitted them all."""
    if not jobs:
        return command
    if command.study is not None or not command.names:
        return None  # one job measures it all
    requests = [job.request for job in jobs]
    taken = {target for request in requests for target in request.get("targets", [])}
    return _part(command, lambda target, name: named_from_anywhere(target) not in taken)


def without(command: Command, measured: Measured) -> Command | None:
    """A command without benchmarks that were measured; None if nothing is left."""
    return _part(command, lambda target, name: name not in measured) if measured else command


def _part(command: Command, keeps: Callable[[str, str], bool]) -> Command | None:
    part = part_of(command, keeps)
    return part if part.targets else None


def measured_before(folder: ResultsFolder, command: Command, where: Where, machine: Machine) -> Measured:
    """The benchmarks of a command of which every point was measured by jobs on this partition.

    Only of jobs that ended by themselves, and of experiments that the same benchmark, environment and machine identify:
    the job would find them finished. A study, and a trial of the machine, decide on their node how often they repeat.
    """
    if command.is_fresh or command.study is not None or not command.names:
        return {}
    done = {key for job in JobFolder.at(folder, where.text, where.node) if _counts(job) for key in _finished(job)}
    names = {name for name, _ in done}
    points = [point for point in points_of(command, machine) if point.benchmark.name in names]
    found: dict[str, list[tuple[Experiment, EnvironmentChoice]]] = {}
    missing: set[str] = set()
    planned = planned_experiments(points, machine) if points else ()
    heads = read_heads(folder, {key for _, key in done}) if planned else {}
    for point, experiment, refusal in planned:
        name = point.benchmark.name
        if refusal is not None or (name, experiment.id) not in done or not heads.get(experiment.id):
            missing.add(name)
        found.setdefault(name, []).append((experiment, point.environment))
    return {name: several for name, several in found.items() if name not in missing}


def _counts(job: JobFolder) -> bool:
    """Whether a job measured benchmarks, without a study."""
    return is_complete(job) and found_by(job).get("study") is None


def _finished(job: JobFolder) -> Iterator[tuple[str, str]]:
    """Benchmark and id of each experiment of a job that is ok."""
    for entry in found_by(job)["experiments"]:
        try:
            experiment = Experiment.from_document(entry["experiment"])
            is_ok = entry["outcome"]["state"] == State.OK.value
        except (KeyError, TypeError, ValueError, StoreError):
            continue
        if is_ok:
            yield experiment.benchmark, experiment.id
