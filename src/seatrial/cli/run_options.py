"""The options of `seatrial run`; the command is loaded when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli.options import (
    RESULTS,
    CleanupOption,
    CompareFailOn,
    EquivalenceOption,
    ExpectOption,
    Format,
    FormatOption,
    InputOption,
    MarginOption,
    MaxNodeHoursOption,
    PrepareOption,
    ResultsOption,
    SetOption,
    SiteOption,
    SystemOption,
    WarmupOption,
    detail_of,
    quiet_option,
    verbose_option,
)
from seatrial.cli.words import WORDS


def run(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="benchmarks, a study file, or `command -- PROGRAM ARGUMENTS` (default: the standard trial)",
        ),
    ] = None,
    versus: Annotated[
        bool,
        typer.Option("--versus", help="the targets are commands, each in quotes: compare them with the first"),
    ] = False,
    margin: MarginOption = None,
    equivalence: EquivalenceOption = None,
    warmup: WarmupOption = None,
    prepare: PrepareOption = None,
    cleanup: CleanupOption = None,
    standard_input: InputOption = None,
    expect: ExpectOption = None,
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
    detach: Annotated[
        bool, typer.Option("--detach", help="with --system: submit what is missing and return; the same command waits")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="with --system: end the jobs of the same command that are not over")
    ] = False,
    max_node_hours: MaxNodeHoursOption = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="the longest wait for another run that measures on this host (default: until it ends)",
        ),
    ] = None,
    ignore_lock_of: Annotated[
        list[str] | None,
        typer.Option("--ignore-lock-of", metavar="USER", help="measure beside runs of this user, which is recorded"),
    ] = None,
    fail_on: Annotated[
        CompareFailOn | None,
        typer.Option("--fail-on", help="exit 1 if the study has this verdict; ambiguous includes slower"),
    ] = None,
    quiet: Annotated[bool, quiet_option("no progress; only results, waits and failures")] = False,
    verbose: Annotated[bool, verbose_option("a line for every repeat")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """`run command -- ./app input` measures a program, `run --versus './a x' './b x'` compares programs."""
    from seatrial.cli.jobs import JobOptions
    from seatrial.cli.programs import ProgramOptions
    from seatrial.cli.run import run_command
    from seatrial.model.comparison import Verdict

    detail_of(quiet, verbose)  # refuses both
    status = run_command(
        targets or (),
        settings or (),
        budget,
        results,
        again=again,
        keep=keep,
        site=site,
        system=system,
        jobs=JobOptions(detach, cancel, max_node_hours),
        wait=wait,
        ignore_lock_of=ignore_lock_of or (),
        fail_on=None if fail_on is None else Verdict(fail_on.value),
        is_versus=versus,
        margin=margin,
        equivalence=equivalence,
        words=context.meta.get(WORDS),
        program=ProgramOptions(warmup, prepare, cleanup, standard_input, expect),
        quiet=quiet,
        verbose=verbose,
        as_json=output_format is Format.JSON,
    )
    raise typer.Exit(status)
