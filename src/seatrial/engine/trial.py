"""A trial from end to end: environment, programs, facts written down, repeats."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.engine.engine import run_experiments
from seatrial.engine.events import Listener
from seatrial.engine.prepare import Ready, Refused, native_environment, prepare
from seatrial.environments.build import Environment
from seatrial.environments.installed import Installed
from seatrial.errors import BuildError, StoreError
from seatrial.model.experiment import content_key
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document, machine_identity
from seatrial.model.record import RepeatRecord
from seatrial.plan.points import Point
from seatrial.stats.stopping import StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter

BUDGET_EACH_S = 20.0
"""The time of one experiment where nobody sets a budget."""


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What a trial did: its experiments in the order of the points, and those for which a repeat was made now.

    `problem` is set where the results folder failed on the way; what was recorded before stays.
    """

    experiments: tuple[Ready | Refused, ...]
    environments: Mapping[str, Mapping[str, Any]]
    measured: frozenset[str] = frozenset()
    problem: StoreError | None = None


def run_trial(
    points: Sequence[Point],
    machine: Machine,
    open_folder: Callable[[], ResultsFolder],
    listener: Listener,
    *,
    budget_s: float | None = None,
    again: bool = False,
    keep: bool = False,
) -> TrialRun:
    """Measure the points into the folder. `budget_s` is for all experiments together, in equal shares.

    The folder is opened when everything that was asked for is known to make sense. Raises UsageError before anything
    runs; KeyboardInterrupt passes through with finished repeats kept.
    """
    try:
        environment: Environment | BuildError = native_environment(machine)
    except BuildError as problem:
        environment = problem
    folder = open_folder()
    machine_key = machine_identity(machine)[:16]
    experiments = prepare(points, environment, machine_key, listener)
    ready = tuple(item for item in experiments if isinstance(item, Ready))
    known = _environments(environment, experiments)
    rule = StoppingRule(budget_s=BUDGET_EACH_S if budget_s is None else budget_s / max(1, len(ready)))
    try:
        _keep_facts(folder, machine, machine_key, known, experiments)
        _record_refusals(folder, [item for item in experiments if isinstance(item, Refused)])
        measured = run_experiments(ready, machine, folder, rule, listener, again=again, keep=keep)
    except StoreError as problem:
        return TrialRun(experiments, known, problem=problem)
    return TrialRun(experiments, known, measured)


def _environments(
    native: Environment | BuildError, experiments: Sequence[Ready | Refused]
) -> dict[str, Mapping[str, Any]]:
    """Key -> document: what our programs are built in, and the installed programs that run as they are."""
    known: dict[str, Mapping[str, Any]] = {}
    if isinstance(native, Environment):
        known[native.key] = native.document()
    for item in experiments:
        if isinstance(item, Ready) and isinstance(item.built, Installed):
            known[item.built.key] = item.built.document()
    return known


def keep_machine(folder: ResultsFolder, machine: Machine, identity: str) -> None:
    """Write down a machine, under the hash of what is known of it: root knows more of the same machine than a user."""
    document = {"identity": identity, **machine_document(machine)}
    knowledge = {name: document[name] for name in ("identity", "memory", "limits", "sources", "unread")}
    folder.put("machines", content_key(knowledge), document)


def _keep_facts(
    folder: ResultsFolder,
    machine: Machine,
    machine_key: str,
    environments: Mapping[str, Mapping[str, Any]],
    experiments: Sequence[Ready | Refused],
) -> None:
    """Write down what records will refer to, before there are any."""
    keep_machine(folder, machine, machine_key)
    for key, document in environments.items():
        folder.put("environments", key, document)
    for item in experiments:
        folder.put("experiments", item.experiment.id, item.experiment.document())


def _record_refusals(folder: ResultsFolder, refused: Sequence[Refused]) -> None:
    """Record what could not be run, so that the page says so; the same reason is not recorded twice."""
    if not refused:
        return
    known = read_contents(folder).records
    writer = RecordWriter(folder, platform.node())
    try:
        for item in refused:
            before = known.get(item.experiment.id, ())
            if before and before[-1].outcome == item.outcome:
                continue
            number = max((record.repeat for record in before), default=-1) + 1
            writer.append(RepeatRecord(item.experiment.id, number, 0, time.time(), 0.0, item.outcome))
    finally:
        writer.close()
