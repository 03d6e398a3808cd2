"""What a command needs no job for: benchmarks whose points earlier jobs into the same results folder have measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from seatrial.engine.planned import planned_experiments
from seatrial.errors import StoreError
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.request import Command, named_from_anywhere, part_of, points_of
from seatrial.jobs.results import found_by, is_complete
from seatrial.jobs.where import Where
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.model.results.outcome import State
from seatrial.model.results.record import Experiment
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads

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
    """The benchmarks of a command of which every point was measured by jobs on this place.

    Only of jobs that ended by themselves, and of experiments that the same benchmark, environment and machine identify:
    the job would find them finished. A study, and a trial of the machine, decide on their node how often they repeat.
    """
    if command.is_fresh or command.study is not None or not command.names:
        return {}
    done = {key for job in JobFolder.all(folder) if _counts(job, where) for key in _finished(job)}
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


def _counts(job: JobFolder, where: Where) -> bool:
    """Whether a job measured benchmarks, without a study, where the command would."""
    request = job.request
    is_here = request.get("where") == where.text and request.get("node") == where.node
    return is_here and is_complete(job) and found_by(job).get("study") is None


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
