"""`seatrial plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import RESULTS, MaxNodeHoursOption, Output, ResultsOption, SiteOption, SystemOption
from seatrial.errors import UsageError
from seatrial.jobs.planned import plan, plan_jobs
from seatrial.jobs.queue import places_for
from seatrial.jobs.request import Submission
from seatrial.model.units import parse_seconds
from seatrial.plan.planned import PlannedJobs
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import jobs_text, plan_text
from seatrial.report.text.terminal import Style


@command("plan")
def _plan(
    study: Annotated[
        Path | None, typer.Argument(metavar="STUDY", help="a study file (default: the standard trial)")
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
    results: ResultsOption = RESULTS,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="with --system: the budget of the run")
    ] = None,
    max_node_hours: MaxNodeHoursOption = None,
    *,
    out: Annotated[Output, {"verbose": "every experiment of a study; each job's script"}],
) -> None:
    targets = () if study is None else (str(study),)
    places = places_for(site, system, targets)
    jobs: PlannedJobs | None = None
    if not places:
        if max_node_hours is not None or budget is not None:
            raise UsageError(
                "--budget and --max-node-hours of plan are for jobs, and none would be submitted",
                "give --system NAME, and `batch: slurm` (or pbs, lsf, flux) for it in the site file",
            )
        planned = plan(study, site=site, system=system)
    else:
        budget_s = None if budget is None else parse_seconds(budget)
        asked = Submission(targets, {}, results, budget_s, site=site, max_node_hours=max_node_hours)
        planned, jobs = plan_jobs(places, asked)

    def text(style: Style) -> str:
        texts = [plan_text(planned, style, verbose=out.verbose)]
        return "\n\n".join(texts if jobs is None else [*texts, jobs_text(jobs, style, verbose=out.verbose)])

    out.show(lambda: plan_document(planned, jobs), text)
