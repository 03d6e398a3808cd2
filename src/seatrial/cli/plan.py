"""`seatrial plan`."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.options import RESULTS
from seatrial.cli.output import print_json, style_of
from seatrial.errors import UsageError
from seatrial.jobs.planned import plan, plan_jobs
from seatrial.jobs.study_systems import places_for
from seatrial.model.units import parse_seconds
from seatrial.plan.planned_jobs import PlannedJobs
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import plan_text
from seatrial.report.text.planned_jobs import jobs_text


def plan_command(
    study: Path | None,
    *,
    as_json: bool,
    site: Path | None = None,
    system: str | None = None,
    results: Path = RESULTS,
    budget: str | None = None,
    max_node_hours: float | None = None,
    verbose: bool = False,
) -> None:
    """Print the experiments of a study, or of the standard trial, on this machine, and the jobs that they would be
    measured in; with `verbose`, each experiment of a study, and each script.

    Raises UsageError for an invalid study.
    """
    places = places_for(site, system, () if study is None else (str(study),))
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
        planned, jobs = plan_jobs(places, study, results, site=site, budget_s=budget_s, max_node_hours=max_node_hours)
    if as_json:
        print_json(plan_document(planned, jobs))
        return
    style = style_of(sys.stdout)
    print(plan_text(planned, style, verbose=verbose))
    if jobs is not None:
        print("", jobs_text(jobs, style, verbose=verbose), sep="\n")
