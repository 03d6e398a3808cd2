"""`seatrial.jobs/1`: jobs of a batch system as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from seatrial.jobs.folder import JobFolder
from seatrial.model.json_shape import shape


@shape(None)
class SubmittedJson(TypedDict):
    """One job, as its files describe it."""

    id: Annotated[str, "of its folder"]
    batch_id: Annotated[str | None, "the batch system's; null: it was not accepted, or its submitter was killed"]
    phase: Literal["submitting", "waiting", "running", "stopped", "ended", "over"]
    host: Annotated[str | None, "the node that it started on; null: it has not started"]
    exit_status: Annotated[int | None, "of what ran in it; null: it has not ended by itself"]
    ending: Annotated[str | None, "how the batch system ended it, such as cancelled or timed out; null: it did not"]
    reason: Annotated[str, "what the batch system said about that"]
    folder: str


@shape(None)
class JobsJson(TypedDict):
    """The jobs of a command."""

    schema: Literal["seatrial.jobs/1"]
    system: Annotated[
        str, "where they were submitted to: NAME:PARTITION, of a study with the axis `system` all, joined by commas"
    ]
    jobs: list[SubmittedJson]


def jobs_document(system: str, jobs: Sequence[JobFolder]) -> JobsJson:
    """The document."""
    return JobsJson(schema="seatrial.jobs/1", system=system, jobs=[_job(job) for job in jobs])


def _job(job: JobFolder) -> SubmittedJson:
    start, over = job.start(), job.over()
    return SubmittedJson(
        id=job.id,
        batch_id=job.batch_id,
        phase=job.phase().value,
        host=None if start is None else start.host,
        exit_status=job.exit_status(),
        ending=None if over is None else over.state,
        reason="" if over is None else over.reason,
        folder=str(job.path),
    )
