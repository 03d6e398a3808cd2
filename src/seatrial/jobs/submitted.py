"""`run --system`: measures in jobs of a batch system, into the same results folder.

The state is what is in the folders of the jobs: no process stays behind. The same command, given later, finds its jobs
there, takes what they measured, and submits only what is missing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from seatrial.analysis.results import RunResult
from seatrial.engine.prepare import build_helpers, build_points
from seatrial.environments.chosen import Environments, refuse_misspelt
from seatrial.errors import BuildError, SeatrialError, StoreError, UsageError
from seatrial.jobs.folder import TOGETHER, JobFolder, Phase
from seatrial.jobs.following import GIVEN_UP, REFUSED, Following, cancel_jobs, is_over, wait_for, wait_for_cancelled
from seatrial.jobs.node_jobs import (
    OTHER_MACHINE,
    cpu_of,
    is_of_other_machine,
    job_without_python,
    node_job,
    record_job,
    refuse_what_needs_python,
    settle,
)
from seatrial.jobs.placed_nodes import with_placed_nodes
from seatrial.jobs.queue import Fetching, Queue, QueueError, Where
from seatrial.jobs.request import (
    Command,
    Portion,
    Submission,
    batch_request,
    planned_script,
    points_of,
    portion_again,
    portions_of,
    refuse_beyond_site,
    request_document,
    script_for_node,
)
from seatrial.jobs.results import (
    Measured,
    ending_of,
    found_by,
    is_complete,
    measured_before,
    results_of_jobs,
    unstarted_of_jobs,
    without,
    without_jobs,
)
from seatrial.machine.live import discover_live
from seatrial.model.frozen import Frozen
from seatrial.model.machine.document import machine_from_document
from seatrial.model.machine.host_list import fold_hosts
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, State
from seatrial.model.spelling import count
from seatrial.model.units import duration
from seatrial.plan.planned import PlannedJob
from seatrial.plan.points import Point, refuse_unfit
from seatrial.plan.site_in_force import at_site
from seatrial.processes.file_lock import lock
from seatrial.store.files import make_folder
from seatrial.store.folder import JOBS, ResultsFolder

_MOST_SHOWN = 8
_MOST_ASKED = 8
"""Jobs at either end of their list that may know what the nodes are."""


class Sent(Frozen):
    """What became of a command: its jobs, and its results if it waited for them. `unfinished` has the outcome of each
    job that did not do all its work; `note` is what to do next."""

    jobs: tuple[JobFolder, ...]
    result: RunResult | None = None
    note: str = ""
    unfinished: tuple[Outcome, ...] = ()

    @property
    def unmeasured(self) -> list[str]:
        """Why jobs did not do all their work; else why they did not start something, of which there is no record."""
        if self.unfinished:
            return [outcome.reason for outcome in self.unfinished]
        if self.result is None:
            return []
        found = [why for _, why in self.not_started]
        return found if self.result.problem is None else [*found, self.result.problem.message]

    @property
    def not_started(self) -> list[tuple[str, str]]:
        """The benchmarks that jobs did not start, of which there is no record, and why."""
        return [
            (
                one.experiment.benchmark,
                f"{one.experiment.benchmark} {one.outcome.state.value.replace('_', ' ')}: {one.outcome.reason}",
            )
            for one in (self.result.experiments if self.result else ())
            if not one.outcome.is_ok and not one.hosts
        ]


def run_in_jobs(places: Sequence[Where], asked: Submission, *, in_brief: bool = False) -> Sent:
    """Measure in jobs, or with `detach` only submit what is missing, or with `cancel` end the jobs of this command.
    Several partitions are those of a study with the axis `system`; each has an equal share of the budget. `in_brief`:
    of the results only what was not started.

    Raises UsageError before anything is submitted; QueueError, StoreError. KeyboardInterrupt passes through: the jobs
    go on.
    """
    tell = asked.tell
    if asked.budget_s is not None:
        asked = replace(asked, budget_s=asked.budget_s / len(places))
    queues = {where.place.system.name: Queue(where.batch, os.environ) for where in places}
    parts: list[_Part] = []
    for where in places:
        with asked.at(where) as command:
            parts.append(_Part(where, command, command.key(where), queues[where.place.system.name]))
    ResultsFolder.refuse_other(asked.results)
    if asked.cancel:
        return _cancelled(ResultsFolder.existing(asked.results), parts, tell)
    folder = ResultsFolder.create(asked.results)
    is_replanned = False
    while True:
        with _submitting(folder, tell):
            for part in parts:
                with part.at_site():
                    part.find_missing(folder)
            _tell_of_open([job for part in parts for job in part.jobs], tell)
            refuse_too_much([portion for part in parts for portion in part.missing], asked.max_node_hours)
            for part in parts:
                for portion in part.missing:
                    planned_script(part.where, folder.path, portion)  # refuses what cannot be in a script
            for part in parts:
                with part.at_site():
                    part.submit(folder)
        jobs = [job for part in parts for job in part.jobs]
        left, refused = (
            [job for job in jobs if not is_over(job)],
            [job for part in parts for job in part.refused_for_now],
        )
        if asked.detach:
            none = "nothing is missing: without --detach the same command prints the results"
            some = f"{count(len(left), 'job')} left; without --detach the same command waits and prints the results"
            more = "the same command submits the others when jobs have ended" if refused else ""
            return Sent(tuple(jobs), note=more or (some if left else none))
        held = _wait(parts, tell)
        with _submitting(folder, tell):
            for part in parts:
                with part.at_site():
                    part.record(folder, part.jobs)
        if not is_replanned and any(is_of_other_machine(job) for job in jobs):
            is_replanned = True
            tell("the nodes are another machine than this one; their jobs are planned for them, and submitted again")
        elif refused and left and not held:
            tell(
                f"{count(len(refused), 'job')} more than the site accepts at once: submitted now that others have ended"
            )
        else:
            break
    own: list[tuple[JobFolder, Sequence[Point]]] = []
    for part in parts:
        with part.at_site():
            points = points_of(part.command, machine_of_place(folder, part.where) or part.machine)
        own += [(job, _own(job, points)) for job in part.jobs]
    before = [one for part in parts for several in part.reused.values() for one in several]
    is_trial = not parts[0].command.names
    if in_brief:
        found = unstarted_of_jobs(folder, own, held)
    else:
        found = results_of_jobs(folder, own, held, before, is_trial=is_trial)
    for job in jobs:
        if is_over(job):
            job.write("collected", {"time_s": time.time()})
    unfinished = tuple(ending_of(job, held.get(job.id)) for job in jobs if not is_complete(job))
    note = "finished repeats are kept; the same command submits what is missing" if unfinished else ""
    if held:
        note = "release it in the batch system, or end it with --cancel; the same command goes on"
    return Sent(tuple(jobs), found, note, unfinished)


def submit_together(nodes: Sequence[Where], asked: Submission) -> bool | None:
    """Submit what each of these nodes of a partition is to measure as one job, which starts a step on each; the same
    command for each node then waits for its own (docs/adr/0078). Whether it was accepted; None: not now, but when
    another job has ended. False also for what cannot share a job: ranks of MPI would see the nodes of all. Raises as
    `run_in_jobs`."""
    queue, first = Queue(nodes[0].batch, os.environ), nodes[0]
    folder = ResultsFolder.create(asked.results)
    with asked.at(first) as command, _submitting(folder, asked.tell):
        parts = [_Part(where, command, command.key(where), queue) for where in nodes]
        for part in parts:
            part.find_missing(folder)
        parts = [part for part in parts if part.missing]
        if not parts:
            return True
        portions = [portion for part in parts for portion in part.missing]
        may_share = first.place.partition.has_python and first.place.partition.is_shared
        is_plain = all(not point.benchmark.may_use_mpi for portion in portions for point in portion.points)
        if not (may_share and is_plain) or len(portions) > len(parts) or any(one.nodes > 1 for one in portions):
            return False
        refuse_too_much(portions, asked.max_node_hours)
        parts[0].build()
        return _submitted_together(folder, parts)


def _submitted_together(folder: ResultsFolder, parts: Sequence[_Part]) -> bool | None:
    """Of parts with one portion each."""
    first, names = parts[0], [str(part.where.node) for part in parts]
    jobs = []
    for part in parts:
        request = request_document(part.command, part.missing[0], part.where, part.key)
        jobs.append(JobFolder.create(folder, request, partial(script_for_node, part.where, folder.path)))
    folders = {name: job.path.absolute() for name, job in zip(names, jobs, strict=True)}
    jobs[0].write_text(TOGETHER, first.where.batch.step_script(folders))
    longest = max((part.missing[0] for part in parts), key=lambda portion: portion.limit_s)
    portion = replace(longest, nodes=len(parts))
    where = Where(first.where.place, first.where.batch, first.where.text, ",".join(names))
    asked = batch_request(where, jobs[0], portion)
    options = replace(asked.options, extra=(*asked.options.extra, *where.batch.goes_on))
    argv = ("/bin/sh", str(folders[names[0]] / TOGETHER))
    script = where.batch.script(replace(asked, argv=argv, options=options))
    jobs[0].write_text("script", script)
    try:
        batch_id = first.queue.submit(script)
    except QueueError as error:
        first.command.tell(str(error))
        for job in jobs:
            if job.give_up():
                job.write_over(REFUSED, error.message)
        return None if where.batch.refused_for_now(error.message) else False
    for job in jobs:
        job.write("submitted.json", {"id": batch_id, "time_s": time.time()})
    limit = f"at most {duration(portion.limit_s)}"
    first.command.tell(f"submitted job {batch_id} to {where.text}: a step on each of {fold_hosts(names)}; {limit}")
    return True


class _Part(Struct):
    """What a command measures on one partition: its jobs, what no job measures yet (`missing`), and what needs none
    (`reused`). `machine` is that of its nodes as far as it is known."""

    where: Where
    command: Command
    key: str
    queue: Queue
    jobs: list[JobFolder] = []
    missing: list[Portion] = []
    reused: Measured = {}
    _machine: Machine | None = None

    @property
    def machine(self) -> Machine:
        """What its nodes are, else this machine."""
        if self._machine is None:
            self._machine = discover_live()
        return self._machine

    @property
    def refused_for_now(self) -> list[JobFolder]:
        """Its jobs that were refused because there are as many as the site allows."""
        ends = ((job, job.over()) for job in self.jobs)
        batch = self.where.batch
        return [job for job, over in ends if over and over.state == REFUSED and batch.refused_for_now(over.reason)]

    def at_site(self) -> AbstractContextManager[None]:
        """With the environments of this partition in force."""
        return at_site(self.command.site, self.where.in_site_file)

    def find_missing(self, folder: ResultsFolder) -> None:
        """Record what its jobs have made, and find what must be submitted. Raises UsageError, StoreError."""
        command, where = self.command, self.where
        self.record(folder, self._jobs_in(folder))
        self._machine = machine_of_place(folder, where) or discover_live()
        self._check()
        jobs = self._jobs_in(folder)
        undone = [job for job in jobs if not _is_open(job) and not _is_done(job)]
        longest_s = where.place.partition.longest_s
        self.missing = [portion_again(command, job, self.machine, longest_s) for job in undone]
        rest = without_jobs(command, jobs and self._jobs_in(folder, printed=True))
        self.reused = {} if rest is None else measured_before(folder, rest, where, self.machine)
        if rest is not None and (rest := without(rest, self.reused)) is not None:
            self.missing += portions_of(rest, self.machine, longest_s)
        self.missing = [with_placed_nodes(portion, where, self.queue) for portion in self.missing]
        self.jobs = [job for job in jobs if job not in undone]

    def _check(self) -> None:
        """Raise UsageError for what can be seen to be wrong before anything is submitted."""
        points, study = points_of(self.command, self.machine), self.command.study
        refuse_beyond_site(self.command, points, self.where)
        if not self.where.place.partition.has_python:
            refuse_what_needs_python(points, self.where.text)
        if study is not None:
            refuse_unfit(study, points)
            refuse_misspelt(point.environment for point in points)

    def _jobs_in(self, folder: ResultsFolder, *, printed: bool = False) -> list[JobFolder]:
        """The jobs of this command, the latest for each part of it. With `--again`, those whose results were printed
        only if `printed`."""
        latest: dict[str, JobFolder] = {}
        for job in JobFolder.with_key(folder, self.key):
            if printed or not (self.command.again and job.has("collected")):
                latest[repr(job.request.get("targets"))] = job
        return list(latest.values())

    def record(self, folder: ResultsFolder, jobs: Sequence[JobFolder]) -> None:
        """Record what jobs on nodes without Python have made, once each is over."""
        if self.where.place.partition.has_python:
            return
        for job in jobs:
            is_new = is_over(job) and job.has("started") and not job.has("planned.json")
            if is_new and not is_of_other_machine(job) and not record_job(folder, job, self.command):
                job.write_over(OTHER_MACHINE, "the node is another machine than its plan was made for")
            if not is_of_other_machine(job):
                settle(folder, job, self.command)

    def submit(self, folder: ResultsFolder) -> None:
        """Build what is missing, and submit a job for each portion of it."""
        if self.missing:
            self.build()
        self.jobs += [self._submitted(folder, portion) for portion in self.missing]

    def build(self) -> None:
        """Build here what can be built here, also what cannot run here: nodes then need no compiler."""
        tell = self.command.tell
        points = [point for portion in self.missing for point in portion.points]
        if (failure := build_helpers(points)) is not None:
            tell(f"the helper programs of ranks could not be built here: {failure.message}; the job tries again")
        environments = Environments(self.machine)
        for item in build_points(points, environments, lambda name: tell(f"building the program of {name}")):
            if isinstance(item.result, BuildError):
                tell(f"{', '.join(item.benchmarks)}: not built here: {item.result.message}; the job tries it")

    def _submitted(self, folder: ResultsFolder, portion: Portion) -> JobFolder:
        """Submit a job. If the batch system refuses it, that is its outcome."""
        command, where, tell = self.command, self.where, self.command.tell
        request = request_document(command, portion, where, self.key)
        if where.place.partition.has_python:
            job = JobFolder.create(folder, request, lambda job: script_for_node(where, folder.path, job))
            script = where.batch.script(batch_request(where, job, portion))
        else:
            planned = node_job(command, portion.points, self.machine, folder, cpu_of(_recorded_at(folder, where)))
            job, script = job_without_python(folder, request, planned, where, portion)
        job.write_text("script", script)
        try:
            batch_id = self.queue.submit(script)
        except QueueError as error:
            tell(str(error))
            if job.give_up():  # a command that did not end may have submitted it
                job.write_over(REFUSED, error.message)
            return job
        job.write("submitted.json", {"id": batch_id, "time_s": time.time()})
        names = ", ".join(dict.fromkeys(point.benchmark.name for point in portion.points[:200]))
        what = names if len(names) < 80 else count(len(portion.points), "point")
        tell(
            f"submitted job {batch_id} to {where.text}: {what}; about {duration(portion.expected_s)}, "
            f"at most {duration(portion.limit_s)}"
        )
        return job


def _wait(parts: Sequence[_Part], tell: Callable[[str], None]) -> dict[str, str]:
    """Until all jobs are over, or held: of these why, by the id of the job's folder. A batch system is asked for all
    jobs of a system at once."""
    by_system: dict[str, list[_Part]] = {}
    for part in parts:
        by_system.setdefault(part.where.place.system.name, []).append(part)
    followings = []
    for name, own in by_system.items():
        fetching = {
            job.id: Fetching(part.where, part.queue)
            for part in own
            if not part.where.place.partition.is_shared
            for job in part.jobs
        }
        jobs = [job for part in own for job in part.jobs]
        followings.append(Following(jobs, own[0].queue, own[0].where.place.system.poll_s, tell, fetching, name))
    wait_for(followings)
    return {
        job: f"is held: {status.reason or 'no reason is given'}"
        for one in followings
        for job, status in one.held.items()
    }


def _own(job: JobFolder, points: Sequence[Point]) -> list[Point]:
    """The points that a job was submitted for."""
    targets = job.request.get("targets", [])
    own = [point for point in points if point.benchmark.name in targets]
    return own or list(points)


def machine_of_place(folder: ResultsFolder, where: Where) -> Machine | None:
    """The machine of the nodes of a partition, if an earlier job into this folder has found it: one on the same nodes,
    else one of the last or the first ones. Where thousands are submitted, most have found nothing yet."""
    jobs = [job for job in reversed(JobFolder.all(folder)) if job.request.get("where") == where.text]
    own = reversed(JobFolder.at(folder, where.text, where.node))
    for job in dict.fromkeys([*own, *jobs[:_MOST_ASKED], *jobs[-_MOST_ASKED:]]):
        if isinstance(identity := (job.read("machine.json") or {}).get("identity"), str):
            with suppress(SeatrialError):
                return machine_named(folder, identity)
        for entry in found_by(job)["experiments"][:1]:
            with suppress(SeatrialError, ValueError, KeyError, TypeError):
                return machine_named(folder, Experiment.from_document(entry["experiment"]).machine)
    return None


def _recorded_at(folder: ResultsFolder, where: Where) -> JobFolder | None:
    """The last job of this partition that was recorded here, not on its node."""
    jobs = (job for job in reversed(JobFolder.all(folder)) if job.has("machine.json"))
    return next((job for job in jobs if job.request.get("where") == where.text), None)


def machine_named(folder: ResultsFolder, identity: str) -> Machine | None:
    """The machine of a results folder with this identity; None if there is none. Raises SeatrialError."""
    documents = (folder.get("machines", key) for key in folder.keys("machines"))
    found = next((one for one in documents if one.get("identity") == identity), None)
    return None if found is None else machine_from_document(found)


def _is_open(job: JobFolder) -> bool:
    """Whether a job may still measure. One that has no id and has not started is given up: nobody could find it."""
    if job.phase() is Phase.SUBMITTING and job.give_up():
        job.write_over(GIVEN_UP, "its submitter ended before it knew whether the job was accepted")
    return not is_over(job)


def _is_done(job: JobFolder) -> bool:
    """Whether a job did its work. If its results were printed and not all are ok, they are tried again, as `run`
    without a system does."""
    bad = {State.FAILED.value, State.TIMED_OUT.value, State.INVALID.value}
    outcomes = (entry.get("outcome") for entry in found_by(job)["experiments"])
    has_bad = any(isinstance(outcome, dict) and outcome.get("state") in bad for outcome in outcomes)
    return is_complete(job) and not (has_bad and job.has("collected"))


def refuse_too_much(portions: Sequence[Portion | PlannedJob], most: float | None) -> None:
    """Raise UsageError for more node-hours than allowed."""
    needed = sum(portion.node_hours for portion in portions)
    if most is not None and needed > most:
        raise UsageError(
            f"the time limits of the jobs are {needed:.3g} node-hours, more than --max-node-hours {most:g}",
            "nothing was submitted; allow more, or measure less: --budget TIME, fewer benchmarks or values",
        )


def _cancelled(folder: ResultsFolder, parts: Sequence[_Part], tell: Callable[[str], None]) -> Sent:
    """End the jobs of all parts, also where the batch system of one does not answer. Raises QueueError after that."""
    asked: list[tuple[_Part, Mapping[str, Sequence[JobFolder]]]] = []
    cancelled: list[JobFolder] = []
    problems: list[QueueError] = []
    are_shared = True
    for part in parts:  # all are asked before the first is waited for
        jobs = JobFolder.with_key(folder, part.key)
        if left := [job for job in jobs if not is_over(job)]:
            try:
                asked.append((part, cancel_jobs(left, part.queue, tell)))
            except QueueError as error:
                problems.append(error)
                continue
            are_shared &= part.where.place.partition.is_shared
            cancelled += left
    for part, by_id in asked:
        try:
            wait_for_cancelled(by_id, part.queue, tell, are_shared=part.where.place.partition.is_shared)
        except QueueError as error:
            problems.append(error)
    if problems:
        ended = sum(map(is_over, cancelled))
        others = f"; {count(ended, 'other job')} cancelled" if ended else ""
        said = "; ".join(dict.fromkeys(one.message for one in problems))
        raise QueueError(f"{said}{others}", problems[0].todo or "the same command ends what is left")
    if not cancelled:
        return Sent((), note="no job of this command is left to cancel")
    kept = "kept" if are_shared else "on its node, and the same command fetches them"
    finished = sum(job.exit_status() == 0 for job in cancelled)
    first = f", {finished} ended first" if finished else ""
    note = f"{count(len(cancelled) - finished, 'job')} cancelled{first}; finished repeats are {kept}"
    return Sent(tuple(cancelled), note=note)


def _tell_of_open(jobs: Sequence[JobFolder], tell: Callable[[str], None]) -> None:
    """Say which jobs of an earlier command, or of one beside this, are waited for."""
    left = [job.batch_id or "without an id yet" for job in jobs if not is_over(job)]
    if left:
        shown = ", ".join(left[:_MOST_SHOWN]) + (", ..." if len(left) > _MOST_SHOWN else "")
        tell(f"already submitted by the same command: job {shown}")


@contextmanager
def _submitting(folder: ResultsFolder, tell: Callable[[str], None]) -> Iterator[None]:
    """One process at a time submits jobs for a results folder, where its file system has locks."""
    try:
        make_folder(folder.path, JOBS)
        descriptor = os.open(folder.path / JOBS / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"{folder.path / JOBS} cannot be written: {error.strerror}") from error
    try:
        if not lock(descriptor):
            tell(f"another process submits jobs into {folder.path}; waiting until it has")
            lock(descriptor, wait_s=math.inf)
        yield
    finally:
        os.close(descriptor)
