"""`seatrial run`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from seatrial.cli.command import command
from seatrial.cli.compare import share_of
from seatrial.cli.jobs import Jobs, places_of, print_jobs, run_jobs, unfinished_status
from seatrial.cli.output import (
    RESULTS,
    EquivalenceOption,
    FailOn,
    MarginOption,
    Output,
    ResultsOption,
    SetOption,
    SiteOption,
    SystemOption,
    WaitQuietOption,
)
from seatrial.cli.programs import WORDS, ProgramOptions, WithWords, checked, merged, program_settings, single_settings
from seatrial.errors import UsageError


@command("run", cls=WithWords)
def _run(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="benchmarks, a study file, or `command -- PROGRAM ARGUMENTS` (default: the standard trial)",
        ),
    ] = None,
    is_versus: Annotated[
        bool, typer.Option("--versus", help="the targets are commands, each in quotes: compare them with the first")
    ] = False,
    margin: MarginOption = None,
    equivalence: EquivalenceOption = None,
    *,
    program: ProgramOptions,
    settings: SetOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="time for the whole command; what does not fit is left out (default: 20s for each experiment)",
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="add repeats to finished experiments")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="keep the output of every repeat in artefacts/")] = False,
    results: ResultsOption = RESULTS,
    site: SiteOption = None,
    system: SystemOption = None,
    jobs: Jobs,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="the longest wait for another run that measures on this host (default: until it ends)",
        ),
    ] = None,
    wait_quiet: WaitQuietOption = None,
    ignore_lock_of: Annotated[
        list[str] | None,
        typer.Option("--ignore-lock-of", metavar="USER", help="measure beside runs of this user, which is recorded"),
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="exit 1 if the study has this verdict; ambiguous includes slower")
    ] = None,
    out: Annotated[
        Output,
        {
            "quiet": "no progress; of a trial, study or comparison the answer alone; waits and failures",
            "verbose": "a line for every repeat; every figure of a trial, the tables of a study",
        },
    ],
) -> int:
    """`run command -- ./app input` measures a program, `run --versus './a x' './b x'` compares programs."""
    from seatrial.cli.progress import TerminalProgress
    from seatrial.cli.run_results import Printer
    from seatrial.interface.run import run, versus, words_of
    from seatrial.jobs.request import Submission
    from seatrial.model.units import parse_seconds
    from seatrial.plan.points import parse_settings

    names, words = targets or [], context.meta.get(WORDS)
    values: dict[str, Any] = dict(parse_settings(settings or ()))
    share, narrow = share_of("--margin", margin), share_of("--equivalence", equivalence)
    for name, given in (("margin", margin), ("equivalence", equivalence)):
        if given is not None and not is_versus:
            raise UsageError(
                f"--{name} is only for --versus",
                f"a study states it: compare: {{along: AXIS, {name}: 1%}}; `seatrial compare` takes --{name}",
            )
    places = places_of(site, system, names, values, jobs, is_versus=is_versus, again=again)
    if is_versus:
        commands = [checked(words_of(text)) for text in (*names, *(words or ()))]
        values = merged(single_settings(values), program.settings())
        measure = partial(versus, *commands, margin=share, equivalence=narrow)
    else:
        names, of_program = program_settings(names, words, program)
        if fail_on is not None:
            _refuse_without_verdict(names, settings or ())
        values = merged(values, of_program)
        measure = partial(run, *names)
    budget_s = None if budget is None else parse_seconds(budget)
    printer = Printer(results, bool(names), fail_on, out)
    if places:
        asked = Submission(
            tuple(names),
            values,
            results,
            budget_s,
            again=again,
            keep=keep,
            site=site,
            detach=jobs.detach,
            cancel=jobs.cancel,
            max_node_hours=jobs.max_node_hours,
            tell=out.announce,
        )
        sent = run_jobs(places, asked)
        if sent.result is None:
            print_jobs(sent, places, as_json=out.as_json)
            return 0
        status = printer.found(sent.result)
        return unfinished_status(sent) or status
    progress = TerminalProgress(quiet=out.quiet, verbose=out.verbose)
    try:
        found = measure(
            set=values,
            results=results,
            budget_s=budget_s,
            again=again,
            keep=keep,
            site=site,
            system=system,
            wait_s=None if wait is None else parse_seconds(wait),
            wait_quiet_s=None if wait_quiet is None else parse_seconds(wait_quiet),
            ignore_lock_of=ignore_lock_of or (),
            progress=progress,
        )
    finally:
        progress.close()
    return printer.compared(found) if is_versus else printer.found(found)


def _refuse_without_verdict(targets: Sequence[str], settings: Sequence[str]) -> None:
    """Raise UsageError if nothing would have a verdict for `--fail-on`."""
    from seatrial.plan.targets import only_study

    study = only_study(targets, settings)
    if study is None or study.compare is None:
        what = "a benchmark alone" if study is None else f"study {study.name}, which has no `compare` section,"
        raise UsageError(
            f"--fail-on: {what} has no verdict",
            "give a study with a `compare` section; `seatrial compare A B --fail-on` compares results folders",
        )
