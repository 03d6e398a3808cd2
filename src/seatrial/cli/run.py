"""`seatrial run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from seatrial.analysis.results import Asked, results_of
from seatrial.analysis.study_results import study_result
from seatrial.cli.chosen import choice_text
from seatrial.cli.output import message, print_json, style_of
from seatrial.cli.progress import TerminalProgress
from seatrial.cli.site import use_site_options
from seatrial.cli.study_file import only_study_file, read_study_file
from seatrial.engine.ready import Refused
from seatrial.engine.trial import TrialRun, run_study, run_trial
from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.outcome import Outcome, Stage, State
from seatrial.model.units import parse_seconds
from seatrial.plan.points import parse_settings, plan_points
from seatrial.plan.study_points import PROBES, refuse_nothing_to_compare, study_points
from seatrial.report.documents.compare import study_document
from seatrial.report.documents.results import results_document
from seatrial.report.text.compare import study_text
from seatrial.report.text.results import results_text
from seatrial.report.text.terminal import Style
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked for on the command line, as text."""

    targets: tuple[str, ...]
    settings: tuple[str, ...]
    budget: str | None
    again: bool
    keep: bool
    results: Path
    site: Path | None = None
    system: str | None = None


def run_command(request: RunRequest, *, as_json: bool) -> int:
    """Measure and print; the exit status of CONTRACT."""
    use_site_options(request.site, request.system)
    study_file = only_study_file(request.targets, request.settings)
    study = None if study_file is None else read_study_file(study_file)
    settings = parse_settings(request.settings)
    budget_s = None if request.budget is None else parse_seconds(request.budget)
    machine = discover_live()
    progress = TerminalProgress()

    def open_folder() -> ResultsFolder:
        return ResultsFolder.create(request.results)

    try:
        if study is None:
            points = plan_points(request.targets, settings, machine)
            trial = run_trial(
                points, machine, open_folder, progress, budget_s=budget_s, again=request.again, keep=request.keep
            )
        else:
            for probe in set(study.probes) - PROBES:
                message(f"probe {probe}: this version has none; the study is measured without it")
            if budget_s is not None:
                study = replace(study, repeat=replace(study.repeat, budget_s=budget_s))
            points = study_points(study, machine)
            refuse_nothing_to_compare(study, points)
            trial = run_study(study, points, machine, open_folder, progress, again=request.again, keep=request.keep)
    finally:
        progress.close()
    return _answer(request, trial, as_json=as_json)


def _answer(request: RunRequest, trial: TrialRun, *, as_json: bool) -> int:
    contents = _contents(request.results)
    for line in contents.damaged:
        message(f"not accepted: {line}")
    lost = None
    if trial.problem is not None:
        message(f"seatrial: {trial.problem}")
        lost = Outcome.failed(Stage.RECORD, trial.problem.message)
    asked = [
        Asked(
            item.experiment,
            item.outcome if isinstance(item, Refused) else lost,
            measured_now=item.experiment.id in trial.measured,
        )
        for item in trial.experiments
    ]
    results = results_of(contents, asked)
    known = {result.id: result for result in results}
    answer = None if trial.study is None else study_result(trial.study, contents, known)
    if as_json:
        document = results_document(results, trial.environments)
        print_json(document if answer is None else {**document, "study": study_document(answer)})
    else:
        style = style_of(sys.stdout)
        print(_by_environment(trial, results, style) if answer is None else study_text(answer, style=style))
        message(f"records: {request.results}; the page: seatrial report {request.results} -o FILE.html")
    return exit_status(results, named=bool(request.targets))


def _by_environment(trial: TrialRun, results: Sequence[ExperimentResult], style: Style) -> str:
    """The results; where points chose different environments, each under what it chose and what that came to."""
    choices = {item.experiment.id: item.point.environment for item in trial.experiments}
    if len(set(choices.values())) <= 1:
        return results_text(results, style)

    def heading(result: ExperimentResult) -> str:
        chosen = choice_text(choices[result.id]) or "nothing chosen"
        document = trial.environments.get(result.experiment.environment)
        return f"In {chosen}" + ("" if document is None else f" ({document.get('name', '')})")

    groups = groupby(results, heading)
    return "\n\n".join(f"{title}\n\n{results_text(list(group), style)}" for title, group in groups)


def _contents(results: Path) -> Contents:
    """What the folder holds; nothing where it vanished during the run, which the trial has reported."""
    try:
        return read_contents(ResultsFolder.existing(results))
    except UsageError:
        return Contents()


def exit_status(results: Sequence[ExperimentResult], *, named: bool) -> int:
    """3 where anything failed, timed out or is invalid, or what was named is unsupported; else 0."""
    bad = {State.FAILED, State.TIMED_OUT, State.INVALID} | ({State.UNSUPPORTED} if named else set())
    return 3 if any(result.outcome.state in bad for result in results) else 0
