"""Jobs that were submitted: waits for them, says what they do, and finds how those ended that did not by themselves.

A job's end is seen by its files; the batch system, which is asked rarely, says why one waits, and how one ended that
left no result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from seatrial.analysis.grouped import grouped
from seatrial.errors import StoreError
from seatrial.jobs.batch.system import JobState, JobStatus
from seatrial.jobs.folder import JobFolder, Phase
from seatrial.jobs.queue import Fetching, Queue, QueueError
from seatrial.store.files import write_once
from seatrial.store.folder import JOBS

_LOOK_S = 1.0
"""How often the files of jobs are looked at, in seconds."""
_PROGRESS_S = 10.0
_CANCEL_LIMIT_S = 60.0
_CLOCKS_DIFFER_S = 120.0
_FETCHES = 20
"""Attempts to fetch the files of a job from its node, which may be busy."""
_SURE = 2
"""Answers of the batch system that a job is gone, before that is believed of one without a mark of its end: files of
other nodes are seen late."""
REFUSED, GIVEN_UP = "refused", "given up"


class Following(Struct):
    """Jobs being waited for. `tell` gets lines of text."""

    jobs: Sequence[JobFolder]
    queue: Queue
    poll_s: float
    tell: Callable[[str], None]
    fetching: Mapping[str, Fetching] = {}
    """Of jobs on nodes that share no file system, by the id of their folder."""
    system: str = ""
    """The name of the system that they are on."""
    _seen: dict[str, str] = {}
    _gone: dict[str, int] = {}
    _told_s: float = field(default_factory=time.monotonic)
    held: dict[str, JobStatus] = {}
    """Jobs that somebody must release, by the id of their folder."""

    def look(self) -> bool:
        """See what became of the jobs, and whether any must be waited for."""
        left = [job for job in self.jobs if not is_over(job)]
        if not left:
            return False
        self._report_starts(left)
        self._report_progress(left)
        if self._is_time_to_ask(left[0].results):
            self._ask(left)
            left = [job for job in left if not is_over(job)]
        return not all(job.id in self.held for job in left)

    def _is_time_to_ask(self, results: Path) -> bool:
        """At most once in `poll_s`, whoever asked."""
        name = f".asked-{self.system}" if self.system else ".asked"
        mark = results / JOBS / name
        with suppress(OSError):
            if 0.0 <= time.time() - mark.stat().st_mtime < self.poll_s:
                return False
        with suppress(OSError):
            write_once(results, JOBS, name, data=b"")
        return True

    def _ask(self, left: Sequence[JobFolder]) -> None:
        by_id = grouped((batch_id, job) for job in left if (batch_id := job.batch_id) is not None)
        try:
            found = self.queue.statuses(list(by_id))
        except QueueError as error:
            self._once("", f"{error.message}; asking again in {self.poll_s:g} s")
            return
        self.held = {}
        for batch_id, status in found.items():
            for job in by_id[batch_id]:
                self._judge(job, status)

    def _judge(self, job: JobFolder, status: JobStatus) -> None:
        """Take in what the batch system says of a job."""
        phase = job.phase()
        if phase in (Phase.ENDED, Phase.OVER):
            return
        if status.state is JobState.NEVER_STARTS:
            self.tell(f"job {status.id} can never start: {status.reason}; it is cancelled")
            with suppress(QueueError):
                self.queue.cancel([status.id])
            end(job, status)
        elif status.state is JobState.UNKNOWN and _may_run(job):
            self._once(job.id, f"the batch system does not know job {status.id}, which may still run")
        elif status.state.is_over or status.state is JobState.UNKNOWN:
            self._gone[job.id] = self._gone.get(job.id, 0) + 1
            certain = phase is Phase.STOPPED and status.state is not JobState.UNKNOWN
            if certain or self._gone[job.id] >= _SURE:
                self._end(job, status)
        else:
            self._gone.pop(job.id, None)
            if status.state is JobState.HELD:
                self.held[job.id] = status
            if status.state is JobState.RUNNING and job.id in self.fetching and status.nodes:
                self._once(job.id, f"job {status.id} runs on {status.nodes[0]}, which shares no files")
            elif status.state is not JobState.RUNNING:
                why = f": {status.reason}" if status.reason else ""
                self._once(job.id, f"job {status.id} waits ({status.state}){why}")

    def _end(self, job: JobFolder, status: JobStatus) -> None:
        """A job is over: if its files are on its node, they are fetched first."""
        if (fetching := self.fetching.get(job.id)) is not None:
            try:
                fetching.fetch(job, status.nodes)
            except (QueueError, StoreError) as error:
                tried = self._gone[job.id] - _SURE + 1
                if isinstance(error, QueueError) and status.nodes and tried < _FETCHES:
                    self._once(f"{job.id} fetch", f"its node cannot be asked: {error.message}; trying again")
                    return
                place = f" from {status.nodes[0]}" if status.nodes else ""
                self.tell(f"what job {status.id} made cannot be fetched{place}: {error.message}")
            else:
                with suppress(QueueError):
                    fetching.remove(job, status.nodes)
            if job.phase() is Phase.ENDED:
                return
        end(job, status)

    def _report_starts(self, jobs: Sequence[JobFolder]) -> None:
        for job in jobs:
            start = job.start() if job.phase() is Phase.RUNNING else None
            if start is not None:
                self._once(job.id, f"job {start.batch_id} runs on {start.host}", start.token)

    def _report_progress(self, jobs: Sequence[JobFolder]) -> None:
        """What running jobs printed last, from time to time."""
        if time.monotonic() - self._told_s < max(_PROGRESS_S, self.poll_s):
            return
        self._told_s = time.monotonic()
        for job in jobs:
            line = job.last_line() if job.phase() is Phase.RUNNING else ""
            if line:
                self._once(f"{job.id} progress", f"job {job.batch_id}: {line}")

    def _once(self, key: str, text: str, token: str = "") -> None:
        if self._seen.get(key) != text + token:
            self._seen[key] = text + token
            self.tell(text)


def wait_for(followings: Sequence[Following]) -> None:
    """Until every job is over, or those that are not are held. Raises KeyboardInterrupt, SystemExit: jobs go on."""
    open_ones = list(followings)
    while open_ones := [following for following in open_ones if following.look()]:
        time.sleep(_LOOK_S)


def is_over(job: JobFolder) -> bool:
    """Whether a job will not measure any more, as far as its files say."""
    return job.phase() in (Phase.ENDED, Phase.OVER)


def _not_over(jobs: Sequence[JobFolder]) -> list[JobFolder]:
    return [job for job in jobs if not is_over(job)]


def _may_run(job: JobFolder) -> bool:
    """Whether a job has started, has not ended, and is within its time limit."""
    start, limit_s = job.start(), job.request.get("limit_s")
    if start is None or job.phase() is not Phase.RUNNING or not isinstance(limit_s, int | float):
        return False
    return time.time() < start.time_s + limit_s + _CLOCKS_DIFFER_S


def end(job: JobFolder, status: JobStatus) -> None:
    """Record how a job ended that did not by itself. One that has not started never will: if the batch system was
    wrong, it measures nothing when it starts."""
    job.give_up()
    reason = status.reason
    if status.state is JobState.UNKNOWN:
        reason = reason or "the batch system does not know it any more"
    elif status.state is JobState.ENDED:
        reason = reason or "it ended before it measured"
    exit_status = status.exit_status if status.exit_status is not None else job.exit_status()
    if status.state is JobState.FAILED and exit_status is not None:
        reason = f"{reason}, exit status {exit_status}" if reason else f"exit status {exit_status}"
    job.write_over(status.state.value, reason)


def _by_whom() -> str:
    return f"by seatrial run --cancel of user {os.environ.get('USER', os.geteuid())}"


def cancel_jobs(jobs: Sequence[JobFolder], queue: Queue, tell: Callable[[str], None]) -> dict[str, list[JobFolder]]:
    """Ask the batch system to end jobs that are not over; those that `wait_for_cancelled` must wait for, by their id.
    Raises QueueError if it cannot be asked."""
    by_id: dict[str, list[JobFolder]] = {}
    for job in jobs:
        never_starts, batch_id = job.give_up(), job.batch_id
        if batch_id is not None:
            by_id.setdefault(batch_id, []).append(job)
        elif never_starts:
            job.write_over(JobState.CANCELLED.value, _by_whom())
    said = queue.cancel(list(by_id))
    if said:
        tell(f"the batch system said: {said}")
    return by_id


def wait_for_cancelled(
    cancelled: Mapping[str, Sequence[JobFolder]], queue: Queue, tell: Callable[[str], None], *, are_shared: bool = True
) -> None:
    """Until these jobs are over. Without `are_shared`, what they made is still to be fetched. Raises QueueError if the
    batch system cannot be asked."""
    by_id = dict(cancelled)
    until = time.monotonic() + _CANCEL_LIMIT_S
    while left := {batch_id: open_ones for batch_id, jobs in by_id.items() if (open_ones := _not_over(jobs))}:
        for batch_id, status in queue.statuses(list(left)).items():
            if not (status.state.is_over or status.state is JobState.UNKNOWN):
                continue
            if are_shared or not status.nodes:
                for job in left[batch_id]:
                    job.write_over(JobState.CANCELLED.value, _by_whom())
            else:
                del by_id[batch_id]
        if time.monotonic() > until:
            tell(f"{', '.join(left)}: still ending; the same command says later whether they have")
            return
        time.sleep(_LOOK_S)
