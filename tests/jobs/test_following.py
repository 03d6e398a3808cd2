"""What is made of what a batch system says of jobs, and what their files say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from seatrial.jobs import following as job_following
from seatrial.jobs.batch.system import JobState, JobStatus
from seatrial.jobs.folder import JobFolder, Phase
from seatrial.jobs.following import Following, cancel_jobs, wait_for, wait_for_cancelled
from seatrial.jobs.queue import Queue, QueueError
from seatrial.jobs.results import ending_of
from seatrial.model.results.sample import State
from seatrial.store.folder import ResultsFolder


@dataclass
class Says:
    """A batch system that gives these answers, the last one for ever; an exception is raised. Before an answer, what
    stands beside it happens."""

    answers: list[Any]
    cancelled: list[str] = field(default_factory=list)
    asked: int = 0

    def statuses(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return {job: JobStatus(job, *answer) for job in ids}

    def cancel(self, ids: Sequence[str]) -> str:
        self.cancelled += ids
        return ""


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_following.time, "sleep", lambda seconds: None)


def a_job(path: Path) -> JobFolder:
    folder = ResultsFolder.create(path / "results")
    job = JobFolder.create(folder, {"v": 1, "limit_s": 240.0}, lambda job: "")
    job.write("submitted.json", {"id": "12"})
    return job


def ended(job: JobFolder, status: int) -> None:
    (job.path / "ended").write_text(f"status={status}\n")


def follow(job: JobFolder, says: Says) -> tuple[list[str], Following]:
    told: list[str] = []
    following = Following([job], cast(Queue, says), 0.0, told.append)
    wait_for([following])
    return told, following


@pytest.mark.parametrize(
    ("state", "reason", "outcome", "words"),
    [
        (JobState.TIMED_OUT, "TimeLimit", State.TIMED_OUT, "job 12 reached its time limit of 4 min: TimeLimit"),
        (JobState.CANCELLED, "CANCELLED by 7", State.FAILED, "job 12 ended: cancelled: CANCELLED by 7"),
        (JobState.PREEMPTED, "", State.FAILED, "job 12 ended: preempted"),
        (JobState.NODE_FAILED, "NODE_FAIL", State.FAILED, "job 12 ended: node failed: NODE_FAIL"),
        (JobState.FAILED, "", State.FAILED, "job 12 ended: failed: exit status 143"),
        (JobState.NEVER_STARTS, "BadConstraints", State.FAILED, "job 12 never starts: BadConstraints"),
        (JobState.UNKNOWN, "", State.FAILED, "job 12 unknown: the batch system does not know it any more"),
        (JobState.ENDED, "", State.FAILED, "job 12 ended: ended: it ended before it measured"),
    ],
)
def test_each_end_has_its_outcome(tmp_path: Path, state: JobState, reason: str, outcome: State, words: str) -> None:
    job, says = a_job(tmp_path), Says([(state, reason)])
    ended(job, 143)
    follow(job, says)
    assert job.phase() is Phase.OVER
    found = ending_of(job)
    assert found.state is outcome and found.reason.removeprefix("launch: ") == words
    assert says.cancelled == (["12"] if state is JobState.NEVER_STARTS else [])


def test_a_mark_of_the_end_counts_more_than_the_batch_system(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    says = Says([lambda: ended(job, 0) or (JobState.NODE_FAILED, "late")])
    follow(job, says)
    assert job.phase() is Phase.ENDED and job.over() is None


def test_a_job_without_a_mark_is_believed_gone_at_the_second_answer(tmp_path: Path) -> None:
    """The file systems of nodes are slower than the batch system."""
    job = a_job(tmp_path)
    says = Says([(JobState.ENDED,), lambda: ended(job, 0) or (JobState.ENDED,)])
    follow(job, says)
    assert job.phase() is Phase.ENDED and says.asked == 2
    other = a_job(tmp_path / "other")
    says = Says([(JobState.UNKNOWN,)])
    follow(other, says)
    assert other.phase() is Phase.OVER and says.asked == 2


def test_a_forgotten_job_within_its_time_limit_may_still_run(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    (job.path / "started").write_text(f"job=12\nhost=n1\ntime={time.time()}\nstart=x\n")
    says = Says([(JobState.UNKNOWN,)] * 4 + [lambda: ended(job, 0) or (JobState.UNKNOWN,)])
    follow(job, says)
    assert job.phase() is Phase.ENDED and says.asked == 5
    other = a_job(tmp_path / "other")
    (other.path / "started").write_text("job=12\nhost=n1\ntime=100\nstart=x\n")
    follow(other, Says([(JobState.UNKNOWN,)]))
    assert other.phase() is Phase.OVER


def test_a_job_that_is_over_before_it_started_never_starts(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    follow(job, Says([(JobState.CANCELLED, "by 7")]))
    assert (job.path / "taken").readlink() == Path("void")


def test_a_requeued_job_is_waited_for(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    ended(job, 143)
    says = Says(
        [
            (JobState.REQUEUED, "BeginTime"),
            (JobState.PENDING, "BeginTime"),
            lambda: ended(job, 0) or (JobState.RUNNING,),
        ]
    )
    told, _ = follow(job, says)
    assert job.phase() is Phase.ENDED
    assert told == ["job 12 waits (requeued): BeginTime", "job 12 waits (pending): BeginTime"]


def test_a_held_job_ends_the_wait_but_is_not_over(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    _, following = follow(job, Says([(JobState.HELD, "JobHeldUser")]))
    assert job.phase() is Phase.WAITING and list(following.held) == [job.id]


def test_no_answer_is_said_once_and_waited_out(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    silent = QueueError("the batch system does not answer: down")
    told, _ = follow(job, Says([silent, silent, lambda: ended(job, 0) or silent]))
    assert job.phase() is Phase.ENDED and told == ["the batch system does not answer: down; asking again in 0 s"]


def test_the_batch_system_is_asked_at_most_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, says, looks = a_job(tmp_path), Says([(JobState.PENDING, "Priority")]), 0

    def look(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 50:
            ended(job, 0)

    monkeypatch.setattr(job_following.time, "sleep", look)
    wait_for([Following([job], cast(Queue, says), 60.0, lambda text: None)])
    assert (looks, says.asked) == (50, 1)
    (job.path / "ended").unlink()
    looks = 0
    wait_for([Following([job], cast(Queue, says), 60.0, lambda text: None)])  # nor by the next command
    assert says.asked == 1


def test_cancelling_waits_for_the_end(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    says = Says([(JobState.RUNNING,), (JobState.CANCELLED,)])
    queue = cast(Queue, says)
    asked = cancel_jobs([job], queue, lambda text: None)
    assert says.cancelled == ["12"] and says.asked == 0
    wait_for_cancelled(asked, queue, lambda text: None)
    assert says.asked == 2
    over = job.over()
    assert over is not None and over.state == "cancelled" and "--cancel" in over.reason


def test_a_job_of_unknown_id_is_given_up_when_cancelled(tmp_path: Path) -> None:
    job = JobFolder.create(ResultsFolder.create(tmp_path / "results"), {"v": 1}, lambda job: "")
    says = Says([QueueError("nobody to ask")])
    assert not cancel_jobs([job], cast(Queue, says), lambda text: None)
    assert job.phase() is Phase.OVER and job.give_up()
