"""`seatrial run --system`: submits jobs, and shows what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.command import Options
from seatrial.cli.output import MaxNodeHoursOption, message, print_json
from seatrial.errors import UsageError

if TYPE_CHECKING:
    from seatrial.jobs.queue import Where
    from seatrial.jobs.request import Submission
    from seatrial.jobs.submitted import Sent


class Jobs(Options):
    """The options of `run` for jobs."""

    detach: Annotated[
        bool, typer.Option("--detach", help="with --system: submit what is missing and return; the same command waits")
    ] = False
    cancel: Annotated[
        bool, typer.Option("--cancel", help="with --system: end the jobs of the same command that are not over")
    ] = False
    max_node_hours: MaxNodeHoursOption = None

    @property
    def are_given(self) -> bool:
        """Whether any is."""
        return self.detach or self.cancel or self.max_node_hours is not None


def places_of(
    site: Path | None,
    system: str | None,
    targets: Sequence[str],
    settings: Mapping[str, Any],
    options: Jobs,
    *,
    is_versus: bool,
    again: bool,
    of_jobs: Mapping[str, Sequence[str]],
) -> tuple[Where, ...]:
    """Where this command submits jobs to; () if it measures in this process. `of_jobs` are settings of what jobs get.
    Raises UsageError for options that contradict that."""
    from seatrial.jobs.queue import places_for, with_job_settings

    places = places_for(site, system, () if is_versus else targets, settings)
    places = with_job_settings(places, of_jobs) if of_jobs else places
    if is_versus:
        if places and system is not None:
            raise UsageError(
                "--versus does not submit jobs",
                "run it inside an allocation (salloc, sbatch), or make it a study of `command`",
            )
        places = ()
    if not places and options.are_given:
        raise UsageError(
            "--detach, --cancel and --max-node-hours are for jobs, and this command submits none",
            "give --system NAME, and `batch: slurm` (or pbs, lsf, flux) for it in the site file",
        )
    if options.detach and options.cancel:
        raise UsageError("--detach and --cancel were both given", "give one of them")
    if options.cancel and again:
        raise UsageError("--cancel and --again were both given", "give one of them")
    return places


def run_jobs(places: Sequence[Where], asked: Submission) -> Sent:
    """Submit and wait as `run_in_jobs` does."""
    from seatrial.jobs.submitted import run_in_jobs

    try:
        return run_in_jobs(places, asked)
    except (KeyboardInterrupt, SystemExit):
        message("the jobs go on; the same command waits for them again, with --cancel it ends them")
        raise


def print_jobs(sent: Sent, places: Sequence[Where], *, as_json: bool) -> None:
    """What was submitted or cancelled, if there are no results yet."""
    if as_json:
        from seatrial.report.documents.plan import jobs_document

        print_json(jobs_document(", ".join(where.text for where in places), sent.jobs))
    message(sent.note)


def unfinished_status(sent: Sent) -> int:
    """3 if a job did not do all its work, and what to do about it is printed; else 0."""
    for outcome in sent.unfinished:
        message(f"{outcome.state}: {outcome.reason}")
    if sent.note:
        message(sent.note)
    return 3 if sent.unfinished else 0
