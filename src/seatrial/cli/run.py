"""`seatrial run`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.command import Options, command
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
from seatrial.model.frozen import Frozen

if TYPE_CHECKING:
    from seatrial.model.study.study import Study

FAIL_ON_HELP = (
    "exit 1 if the study has this verdict; ambiguous includes slower; reference: if a figure is beyond its stored "
    "reference"
)


class RunOptions(Options):
    """What is measured, and how: of `run`, and of `plan`, which takes the same."""

    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="benchmarks, a study file, or `command -- PROGRAM ARGUMENTS` (default: the standard trial)",
        ),
    ] = None
    is_versus: Annotated[
        bool, typer.Option("--versus", help="the targets are commands, each in quotes: compare them with the first")
    ] = False
    margin: MarginOption = None
    equivalence: EquivalenceOption = None
    settings: SetOption = None
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="time for the whole command; what does not fit is left out (default: 20s for each experiment)",
        ),
    ] = None
    again: Annotated[bool, typer.Option("--again", help="add repeats to finished experiments")] = False
    keep: Annotated[bool, typer.Option("--keep", help="keep the output of every repeat in artefacts/")] = False
    results: ResultsOption = RESULTS
    site: SiteOption = None
    system: SystemOption = None
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="the longest wait for another run that measures on this host (default: until it ends)",
        ),
    ] = None
    wait_quiet: WaitQuietOption = None
    ignore_lock_of: Annotated[
        list[str] | None,
        typer.Option("--ignore-lock-of", metavar="USER", help="measure beside runs of this user, which is recorded"),
    ] = None
    shared: Annotated[
        bool, typer.Option("--shared", help="change clocks and limits also on a node on which others run programs")
    ] = False
    root: Annotated[
        Path | None, typer.Option("--root", metavar="DIR", help="a folder in place of /, for settings", hidden=True)
    ] = None
    fail_on: Annotated[FailOn | None, typer.Option("--fail-on", help=FAIL_ON_HELP)] = None
    probes: Annotated[
        list[str] | None,
        typer.Option("--probe", metavar="NAME", help="measure beside the repeats: mpi, io or power (energy)"),
    ] = None

    @property
    def budget_s(self) -> float | None:
        """In seconds; None: not given. Raises UsageError."""
        from seatrial.model.units import parse_seconds

        return None if self.budget is None else parse_seconds(self.budget)

    def wanted(self, context: typer.Context, program: ProgramOptions, jobs: Jobs) -> Wanted:
        """What is to be measured. Raises UsageError for options that contradict each other."""
        from seatrial.environments.settings.node import use_root
        from seatrial.interface.run import words_of
        from seatrial.jobs.queue import OF_JOBS
        from seatrial.plan.points import PROBES_SETTING, parse_settings

        use_root(self.root or Path("/"))
        names, words = self.targets or [], context.meta.get(WORDS)
        given = parse_settings(self.settings or ())
        beside: dict[str, Any] = {PROBES_SETTING: list(self.probes)} if self.probes else {}
        of_jobs = {name.removeprefix(OF_JOBS): text for name, text in given.items() if name.startswith(OF_JOBS)}
        values: dict[str, Any] = {name: text for name, text in given.items() if not name.startswith(OF_JOBS)}
        share, narrow = share_of("--margin", self.margin), share_of("--equivalence", self.equivalence)
        for name, stated in (("margin", self.margin), ("equivalence", self.equivalence)):
            if stated is not None and not self.is_versus:
                raise UsageError(
                    f"--{name} is only for --versus",
                    f"a study states it: compare: {{along: AXIS, {name}: 1%}}; `seatrial compare` takes --{name}",
                )
        places = places_of(
            *(self.site, self.system, names, {**values, **beside}, jobs),
            is_versus=self.is_versus,
            again=self.again,
            of_jobs=of_jobs,
        )
        if self.is_versus:
            commands = [checked(words_of(text)) for text in (*names, *(words or ()))]
            return Wanted(
                [], {**merged(single_settings(values), program.settings()), **beside}, commands, share, narrow
            )
        names, of_program = program_settings(names, words, program)
        if self.fail_on is FailOn.REFERENCE:
            self._refuse_without_references(names)
        elif self.fail_on is not None:
            self._refuse_without_verdict(names)
        return Wanted(names, {**merged(values, of_program), **beside}, None, places=places)

    def _study(self, targets: Sequence[str]) -> Study | None:
        """The study that the targets name."""
        from seatrial.jobs.queue import OF_JOBS
        from seatrial.plan.points import parse_settings
        from seatrial.plan.site_in_force import at_site
        from seatrial.plan.targets import only_study, with_declared

        with at_site(self.site, self.system):
            settings = [text for text in self.settings or () if not text.startswith(OF_JOBS)]
            return only_study(with_declared(targets), parse_settings(settings))

    def _refuse_without_references(self, targets: Sequence[str]) -> None:
        """Raise UsageError if there is no reference for `--fail-on reference`."""
        from seatrial.analysis.reference_check import stored_references

        study = self._study(targets)
        stored_references(() if study is None else study.references)

    def _refuse_without_verdict(self, targets: Sequence[str]) -> None:
        """Raise UsageError if nothing would have a verdict for `--fail-on`."""
        study = self._study(targets)
        if study is None or study.compare is None:
            what = "a benchmark alone" if study is None else f"study {study.name}, which has no `compare` section,"
            raise UsageError(
                f"--fail-on: {what} has no verdict",
                "give a study with a `compare` section; `seatrial compare A B --fail-on` compares results folders",
            )


class Wanted(Frozen):
    """The targets with their settings, or the commands to compare with their margin; `places` are where jobs go."""

    names: list[str]
    values: dict[str, Any]
    commands: list[tuple[str, ...]] | None
    margin: float | None = None
    equivalence: float | None = None
    places: tuple[Any, ...] = ()


@command("run", cls=WithWords)
def _run(
    context: typer.Context,
    what: RunOptions,
    program: ProgramOptions,
    jobs: Jobs,
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
    from seatrial.interface.run import run, versus
    from seatrial.jobs.request import Submission

    wanted = what.wanted(context, program, jobs)
    if wanted.commands is None:
        measure = partial(run, *wanted.names)
    else:
        measure = partial(versus, *wanted.commands, margin=wanted.margin, equivalence=wanted.equivalence)
    printer = Printer(what.results, bool(wanted.names), what.fail_on, out)
    if wanted.places:
        asked = Submission(
            tuple(wanted.names),
            wanted.values,
            what.results,
            what.budget_s,
            again=what.again,
            keep=what.keep,
            shared=what.shared,
            site=what.site,
            detach=jobs.detach,
            cancel=jobs.cancel,
            max_node_hours=jobs.max_node_hours,
            tell=out.announce,
        )
        sent = run_jobs(wanted.places, asked)
        if sent.result is None:
            print_jobs(sent, wanted.places, as_json=out.as_json)
            return 0
        status = printer.found(sent.result)
        return unfinished_status(sent) or status
    progress = TerminalProgress(quiet=out.quiet, verbose=out.verbose, waits_quiet=what.wait_quiet is not None)
    try:
        found = measure(
            set=wanted.values,
            results=what.results,
            budget=what.budget,
            again=what.again,
            keep=what.keep,
            site=what.site,
            system=what.system,
            wait=what.wait,
            wait_quiet=what.wait_quiet,
            ignore_lock_of=what.ignore_lock_of or (),
            shared=what.shared,
            progress=progress,
        )
    finally:
        progress.close()
    return printer.found(found) if wanted.commands is None else printer.compared(found)
