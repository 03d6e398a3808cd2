"""`seatrial plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.jobs import Jobs
from seatrial.cli.output import Output
from seatrial.cli.programs import ProgramOptions, WithWords
from seatrial.cli.run import RunOptions
from seatrial.jobs.planned import plan, plan_jobs
from seatrial.jobs.request import Submission
from seatrial.plan.planned import PlannedJobs
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import jobs_text, plan_line, plan_text
from seatrial.report.text.terminal import Style


@command("plan", cls=WithWords)
def _plan(
    context: typer.Context,
    what: RunOptions,
    program: ProgramOptions,
    jobs: Jobs,
    out: Annotated[
        Output, {"quiet": "the number of experiments and the time", "verbose": "every experiment; each job's script"}
    ],
) -> None:
    """It takes the targets and options of `run`, and measures nothing: write `plan` for `run`."""
    wanted = what.wanted(context, program, jobs)
    of_jobs: PlannedJobs | None = None
    if wanted.places:
        asked = Submission(
            tuple(wanted.names),
            wanted.values,
            what.results,
            what.budget_s,
            site=what.site,
            max_node_hours=jobs.max_node_hours,
        )
        planned, of_jobs = plan_jobs(wanted.places, asked)
    elif wanted.commands is None:
        planned = plan(wanted.names, wanted.values, what.budget_s, site=what.site, system=what.system)
    else:
        from seatrial.interface.results import margin_given
        from seatrial.interface.run import versus_study

        share = margin_given(wanted.margin, wanted.equivalence)
        study = versus_study(wanted.commands, wanted.values, share, equivalence=wanted.equivalence is not None)
        planned = plan([study], {}, what.budget_s, site=what.site, system=what.system)

    def text(style: Style) -> str:
        if out.quiet:
            return plan_line(planned)
        texts = [plan_text(planned, style, verbose=out.verbose)]
        return "\n\n".join(texts if of_jobs is None else [*texts, jobs_text(of_jobs, style, verbose=out.verbose)])

    out.show(lambda: plan_document(planned, of_jobs), text)
