"""`seatrial plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.jobs import Jobs
from seatrial.cli.output import Output
from seatrial.cli.programs import ProgramOptions, WithWords
from seatrial.cli.run import RunOptions, Wanted
from seatrial.environments.settings.node import although_shared
from seatrial.jobs.planned import plan, plan_jobs
from seatrial.jobs.request import Submission
from seatrial.plan.planned import PlannedJobs, PlannedStudy, PlannedTrial
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
    with although_shared(what.shared):
        planned, of_jobs = _planned(what, wanted, jobs)

    def text(style: Style) -> str:
        if out.quiet:
            return plan_line(planned)
        texts = [plan_text(planned, style, verbose=out.verbose)]
        return "\n\n".join(texts if of_jobs is None else [*texts, jobs_text(of_jobs, style, verbose=out.verbose)])

    out.show(lambda: plan_document(planned, of_jobs), text)


def _planned(what: RunOptions, wanted: Wanted, jobs: Jobs) -> tuple[PlannedStudy | PlannedTrial, PlannedJobs | None]:
    """The experiments, and the jobs for them if there are any."""
    if wanted.places:
        asked = Submission(
            tuple(wanted.names),
            wanted.values,
            what.results,
            what.budget_s,
            site=what.site,
            max_node_hours=jobs.max_node_hours,
        )
        return plan_jobs(wanted.places, asked)
    if wanted.commands is None:
        return plan(wanted.names, wanted.values, what.budget_s, site=what.site, system=what.system), None
    from seatrial.interface.results import margin_given
    from seatrial.interface.run import versus_study

    share = margin_given(wanted.margin, wanted.equivalence)
    study = versus_study(wanted.commands, wanted.values, share, equivalence=wanted.equivalence is not None)
    return plan([study], {}, what.budget_s, site=what.site, system=what.system), None
