"""`seatrial run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.analysis.results import Asked, results_of
from seatrial.cli.output import message, print_json
from seatrial.cli.progress import TerminalProgress
from seatrial.engine.prepare import Refused
from seatrial.engine.trial import run_trial
from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.outcome import Outcome, Stage, State
from seatrial.model.units import parse_seconds
from seatrial.plan.points import parse_settings, plan_points
from seatrial.report.results_document import results_document
from seatrial.report.text import results_text
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


def run_command(request: RunRequest, *, as_json: bool) -> int:
    """Measure and print; the exit status of CONTRACT."""
    settings = parse_settings(request.settings)
    budget_s = None if request.budget is None else parse_seconds(request.budget)
    machine = discover_live()
    points = plan_points(request.targets, settings, machine)
    progress = TerminalProgress()
    try:
        trial = run_trial(
            points,
            machine,
            lambda: ResultsFolder.create(request.results),
            progress,
            budget_s=budget_s,
            again=request.again,
            keep=request.keep,
        )
    finally:
        progress.close()
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
    if as_json:
        print_json(results_document(results, trial.environments))
    else:
        print(results_text(results))
        message(f"records: {request.results}; the page: seatrial report {request.results} -o FILE.html")
    return exit_status(results, named=bool(request.targets))


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
