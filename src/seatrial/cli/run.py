"""`seatrial run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.analysis.results import RunResult
from seatrial.cli.chosen import choice_text
from seatrial.cli.command import command
from seatrial.cli.compare import share_of, verdict_status
from seatrial.cli.jobs import Jobs, places_of, print_jobs, run_jobs, unfinished_status
from seatrial.cli.options import (
    RESULTS,
    EquivalenceOption,
    FailOn,
    MarginOption,
    Output,
    ResultsOption,
    SetOption,
    SiteOption,
    SystemOption,
)
from seatrial.cli.output import message, print_json, style_of
from seatrial.cli.programs import (
    WORDS,
    Program,
    WithWords,
    checked,
    merged,
    print_comparison,
    program_settings,
    single_settings,
)
from seatrial.cli.progress import TerminalProgress
from seatrial.errors import UsageError
from seatrial.interface.run import run
from seatrial.interface.versus import versus, words_of
from seatrial.jobs.request import Submission
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.outcome import State
from seatrial.model.study.result import StudyResult
from seatrial.model.units import parse_seconds
from seatrial.plan.points import parse_settings
from seatrial.plan.targets import only_study
from seatrial.report.documents.compare import study_document
from seatrial.report.documents.results import results_document
from seatrial.report.text.compare import study_text
from seatrial.report.text.results import few, results_text
from seatrial.report.text.terminal import Style, clean
from seatrial.report.trial_verdict import verdict

_MOST_REASONS = 12


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
        bool,
        typer.Option("--versus", help="the targets are commands, each in quotes: compare them with the first"),
    ] = False,
    margin: MarginOption = None,
    equivalence: EquivalenceOption = None,
    *,
    program: Program,
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
    ignore_lock_of: Annotated[
        list[str] | None,
        typer.Option("--ignore-lock-of", metavar="USER", help="measure beside runs of this user, which is recorded"),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="exit 1 if the study has this verdict; ambiguous includes slower"),
    ] = None,
    out: Annotated[
        Output,
        {"quiet": "no progress; only results, waits and failures", "verbose": "a line for every repeat"},
    ],
) -> int:
    """`run command -- ./app input` measures a program, `run --versus './a x' './b x'` compares programs."""
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
    printer = _Printer(results, bool(names), fail_on, out)
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
            ignore_lock_of=ignore_lock_of or (),
            progress=progress,
        )
    finally:
        progress.close()
    return printer.compared(found) if is_versus else printer.found(found)


class _Printer(Frozen):
    """Prints what a run found into the folder `results`; `named`: its benchmarks were named."""

    results: Path
    named: bool
    fail_on: FailOn | None
    out: Output

    def found(self, found: RunResult) -> int:
        """Print results; the exit status."""
        if found.problem is not None:
            message(f"seatrial: {found.problem}")
        if self.out.as_json:
            document = results_document(found.experiments, found.environments, found.trial)
            print_json(document if found.study is None else {**document, "study": study_document(found.study)})
        else:
            style = style_of(sys.stdout)
            print(_by_environment(found, style) if found.study is None else study_text(found.study, style=style))
            if found.trial is not None:
                print("", *style.wrapped(clean(verdict(found.trial).sentence), "answer: "), sep="\n")
        return self._status(found)

    def compared(self, found: RunResult) -> int:
        """Print the comparison of programs; the exit status."""
        if found.problem is not None:
            message(f"seatrial: {found.problem}")
        print_comparison(found, as_json=self.out.as_json)
        return self._status(found)

    def _status(self, found: RunResult) -> int:
        """Print where the records are, and what is missing; the exit status."""
        if not self.out.as_json:
            self.out.announce(f"records: {self.results}; the page: seatrial report {self.results} -o FILE.html")
        for line in nothing_measured(found.experiments):
            message(line)
        status = exit_status(found.experiments, named=self.named) or compared_status(found.study)
        return status or verdict_status(found.study.compared if found.study else (), self.fail_on)


def _refuse_without_verdict(targets: Sequence[str], settings: Sequence[str]) -> None:
    """Raise UsageError if nothing would have a verdict for `--fail-on`."""
    study = only_study(targets, settings)
    if study is None or study.compare is None:
        what = "a benchmark alone" if study is None else f"study {study.name}, which has no `compare` section,"
        raise UsageError(
            f"--fail-on: {what} has no verdict",
            "give a study with a `compare` section; `seatrial compare A B --fail-on` compares results folders",
        )


def compared_status(study: StudyResult | None) -> int:
    """3 if a study was to compare, and nothing was compared; else 0."""
    if study is None or study.study.compare is None or any(one.comparisons for one in study.compared):
        return 0
    message("nothing was compared")
    return 3


def _by_environment(found: RunResult, style: Style) -> str:
    """The results; if experiments chose different environments, grouped by choice and resolved environment."""
    if len(set(found.choices.values())) <= 1:
        return results_text(found.experiments, style)

    def heading(result: ExperimentResult) -> str:
        chosen = choice_text(found.choices[result.id]) or "the default environment"
        document = found.environments.get(result.experiment.environment)
        return f"In {chosen}" + ("" if document is None else f" ({document.get('name', '')})")

    groups = groupby(found.experiments, heading)
    return "\n\n".join(f"{title}\n\n{results_text(list(group), style)}" for title, group in groups)


def exit_status(results: Sequence[ExperimentResult], *, named: bool) -> int:
    """3 if an experiment failed, timed out or is invalid, or a named benchmark is unsupported, or none has a result;
    else 0."""
    bad = {State.FAILED, State.TIMED_OUT, State.INVALID} | ({State.UNSUPPORTED} if named else set())
    states = [result.outcome.state for result in results]
    return 0 if State.OK in states and bad.isdisjoint(states) else 3


def nothing_measured(results: Sequence[ExperimentResult]) -> list[str]:
    """What was missing, if no experiment has a result; else []."""
    if any(result.outcome.is_ok for result in results):
        return []
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        reasons.setdefault((result.outcome.state.value, result.outcome.reason), []).append(result.experiment.benchmark)
    lines = [
        f"  {few(names)}: {state}{f' ({len(names)} experiments)' if len(names) > 1 else ''}: {reason}"
        for (state, reason), names in list(reasons.items())[:_MOST_REASONS]
    ]
    more = len(reasons) - len(lines)
    return ["nothing was measured", *lines, *([f"  and {more} more reasons"] if more else [])]
