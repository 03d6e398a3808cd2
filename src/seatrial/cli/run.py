"""`seatrial run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.analysis.results import Asked, results_of
from seatrial.cli.output import message, print_json
from seatrial.cli.progress import TerminalProgress
from seatrial.engine.engine import run_experiments
from seatrial.engine.prepare import Preparation, Refused, prepare
from seatrial.machine.live import discover_live
from seatrial.model.experiment import content_key
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document, machine_identity
from seatrial.model.outcome import State
from seatrial.model.units import parse_seconds
from seatrial.plan.points import parse_settings, plan_points
from seatrial.report.results_document import results_document
from seatrial.report.text import results_text
from seatrial.stats.stopping import StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

BUDGET_EACH_S = 20.0
"""The time of one experiment where nobody sets a budget."""


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
    folder = ResultsFolder.create(request.results)
    progress = TerminalProgress()
    try:
        machine_key = machine_identity(machine)[:16]
        preparation = prepare(points, machine, machine_key, progress)
        _keep_facts(folder, machine, machine_key, preparation)
        rule = StoppingRule(budget_s=_share(budget_s, len(preparation.ready)))
        measured = run_experiments(
            preparation.ready, machine, folder, rule, progress, again=request.again, keep=request.keep
        )
    finally:
        progress.close()
    contents = read_contents(folder)
    for line in contents.damaged:
        message(f"not accepted: {line}")
    asked = [
        Asked(
            item.experiment,
            item.outcome if isinstance(item, Refused) else None,
            measured_now=item.experiment.id in measured,
        )
        for item in preparation.experiments
    ]
    results = results_of(contents, asked)
    if as_json:
        environment = preparation.environment
        print_json(results_document(results, {environment.key: environment.document()} if environment else {}))
    else:
        print(results_text(results))
        message(f"records: {request.results}; the page: seatrial report {request.results} -o FILE.html")
    return exit_status(results, named=bool(request.targets))


def exit_status(results: Sequence[ExperimentResult], *, named: bool) -> int:
    """3 where anything failed, timed out or is invalid, or what was named is unsupported; else 0."""
    bad = {State.FAILED, State.TIMED_OUT, State.INVALID} | ({State.UNSUPPORTED} if named else set())
    return 3 if any(result.outcome.state in bad for result in results) else 0


def _share(budget_s: float | None, experiments: int) -> float:
    """The budget of one experiment: an equal share of the budget of all."""
    return BUDGET_EACH_S if budget_s is None else budget_s / max(1, experiments)


def _keep_facts(folder: ResultsFolder, machine: Machine, machine_key: str, preparation: Preparation) -> None:
    """Write down what the records will refer to, before there are any."""
    document = {"identity": machine_key, **machine_document(machine)}
    knowledge = {name: document[name] for name in ("identity", "memory", "limits", "sources", "unread")}
    folder.put("machines", content_key(knowledge), document)
    if preparation.environment is not None:
        folder.put("environments", preparation.environment.key, preparation.environment.document())
    for item in preparation.ready:
        folder.put("experiments", item.experiment.id, item.experiment.document())
