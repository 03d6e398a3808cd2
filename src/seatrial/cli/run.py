"""`seatrial run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from seatrial.analysis.results import RunResult
from seatrial.cli.chosen import choice_text
from seatrial.cli.compare import share_of, verdict_status
from seatrial.cli.jobs import NO_JOBS, JobOptions, places_of, print_jobs, run_jobs, unfinished_status
from seatrial.cli.output import message, print_json, style_of
from seatrial.cli.programs import (
    NO_PROGRAM,
    ProgramOptions,
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
from seatrial.model.comparison import Verdict
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.outcome import State
from seatrial.model.study_result import StudyResult
from seatrial.model.units import parse_seconds
from seatrial.plan.named_study import only_study
from seatrial.plan.points import parse_settings
from seatrial.report.documents.compare import study_document
from seatrial.report.documents.results import results_document
from seatrial.report.text.compare import study_text
from seatrial.report.text.results import few, results_text
from seatrial.report.text.terminal import Style, clean
from seatrial.report.trial_verdict import verdict

_MOST_REASONS = 12


def run_command(
    targets: Sequence[str],
    settings: Sequence[str],
    budget: str | None,
    results: Path,
    *,
    again: bool,
    keep: bool,
    site: Path | None,
    system: str | None,
    jobs: JobOptions = NO_JOBS,
    wait: str | None,
    ignore_lock_of: Sequence[str],
    fail_on: Verdict | None = None,
    is_versus: bool = False,
    margin: str | None = None,
    equivalence: str | None = None,
    words: Sequence[str] | None = None,
    program: ProgramOptions = NO_PROGRAM,
    quiet: bool = False,
    verbose: bool = False,
    as_json: bool,
) -> int:
    """Measure and print; the exit status of CONTRACT. With `is_versus`, the targets are commands. `words` are those
    after `--`."""
    values: dict[str, Any] = dict(parse_settings(settings))
    commands: list[tuple[str, ...]] = []
    share, narrow = share_of("--margin", margin), share_of("--equivalence", equivalence)
    for name, given in (("margin", margin), ("equivalence", equivalence)):
        if given is not None and not is_versus:
            raise UsageError(
                f"--{name} is only for --versus",
                f"a study states it: compare: {{along: AXIS, {name}: 1%}}; `seatrial compare` takes --{name}",
            )
    places = places_of(site, system, targets, values, jobs, is_versus=is_versus, again=again)
    if is_versus:
        commands = [checked(words_of(text)) for text in (*targets, *(words or ()))]
        values = merged(single_settings(values), program.settings())
    else:
        targets, of_program = program_settings(targets, words, program)
        if fail_on is not None:
            _refuse_without_verdict(targets, settings)
        values = merged(values, of_program)
    if places:
        sent = run_jobs(
            places,
            targets,
            values,
            results,
            jobs,
            quiet=quiet,
            budget_s=None if budget is None else parse_seconds(budget),
            again=again,
            keep=keep,
            site=site,
        )
        if sent.result is None:
            print_jobs(sent, places, as_json=as_json)
            return 0
        status = _print_found(sent.result, results, named=bool(targets), fail_on=fail_on, quiet=quiet, as_json=as_json)
        return unfinished_status(sent) or status
    progress = TerminalProgress(quiet=quiet, verbose=verbose)
    try:
        measure = partial(versus, *commands, margin=share, equivalence=narrow) if is_versus else partial(run, *targets)
        found = measure(
            set=values,
            results=results,
            budget_s=None if budget is None else parse_seconds(budget),
            again=again,
            keep=keep,
            site=site,
            system=system,
            wait_s=None if wait is None else parse_seconds(wait),
            ignore_lock_of=ignore_lock_of,
            progress=progress,
        )
    finally:
        progress.close()
    if is_versus:
        if found.problem is not None:
            message(f"seatrial: {found.problem}")
        print_comparison(found, as_json=as_json)
        return _status_of(found, results, named=bool(targets), fail_on=fail_on, quiet=quiet or as_json)
    return _print_found(found, results, named=bool(targets), fail_on=fail_on, quiet=quiet, as_json=as_json)


def _print_found(
    found: RunResult, results: Path, *, named: bool, fail_on: Verdict | None, quiet: bool, as_json: bool
) -> int:
    """Print results; the exit status."""
    if found.problem is not None:
        message(f"seatrial: {found.problem}")
    if as_json:
        document = results_document(found.experiments, found.environments, found.trial)
        print_json(document if found.study is None else {**document, "study": study_document(found.study)})
    else:
        style = style_of(sys.stdout)
        print(_by_environment(found, style) if found.study is None else study_text(found.study, style=style))
        if found.trial is not None:
            print("", *style.wrapped(clean(verdict(found.trial).sentence), "answer: "), sep="\n")
    return _status_of(found, results, named=named, fail_on=fail_on, quiet=quiet or as_json)


def _status_of(found: RunResult, results: Path, *, named: bool, fail_on: Verdict | None, quiet: bool) -> int:
    """Print where the records are, and what is missing; the exit status."""
    if not quiet:
        message(f"records: {results}; the page: seatrial report {results} -o FILE.html")
    for line in nothing_measured(found.experiments):
        message(line)
    status = exit_status(found.experiments, named=named) or compared_status(found.study)
    return status if fail_on is None or status else verdict_status(found.study.compared if found.study else (), fail_on)


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
