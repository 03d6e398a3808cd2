"""Trials: everything in a results folder about each of its machines, for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.results import all_results, machines_of
from seatrial.analysis.rules import findings
from seatrial.benchmarks import registry
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.study.result import NotMeasured, PerRepeat, RecordPlace, Trial
from seatrial.store.contents import Contents
from seatrial.version import __version__


def trials_of(contents: Contents) -> tuple[Trial, ...]:
    """One trial for each machine of the folder, in the order of their first experiment."""
    results = all_results(contents)
    machines = machines_of(contents)
    by_machine: dict[str, list[ExperimentResult]] = {}
    for result in results:
        by_machine.setdefault(result.experiment.machine, []).append(result)
    return tuple(trial_of(machines[key], own, contents) for key, own in by_machine.items())


def not_measured(results: Sequence[ExperimentResult]) -> tuple[NotMeasured, ...]:
    """The benchmarks that were not run."""
    measured = {result.experiment.benchmark for result in results}
    return tuple(
        NotMeasured(name, benchmark.question, f"not requested: seatrial run {name}")
        for name, benchmark in registry().items()
        if name not in measured and benchmark.program.can_run
    )


def trial_of(machine: Machine, results: Sequence[ExperimentResult], contents: Contents) -> Trial:
    """The trial of one machine with some of the results in a folder."""
    own = dict.fromkeys(result.id for result in results)
    used = {result.experiment.environment for result in results}
    records = {key: in_time(contents.records.get(key, ())) for key in own}
    seen = PerRepeat({key: {record.repeat: record.seen for record in each} for key, each in records.items()})
    return Trial(
        machine=machine,
        results=tuple(results),
        findings=findings(machine, results, seen),
        not_measured=not_measured(results),
        environments={key: document for key, document in contents.environments.items() if key in used},
        places=_places(contents, seen, own),
        seen=seen,
        version=__version__,
    )


def _places(
    contents: Contents, seen: PerRepeat[Mapping[str, Any]], experiments: Iterable[str]
) -> Mapping[tuple[str, int], RecordPlace]:
    """The places of the records, the repeats of an experiment in order of time."""
    if not isinstance(contents.places, PerRepeat):
        return {place_of: contents.places[place_of] for place_of in seen if place_of in contents.places}
    found: dict[str, Mapping[int, RecordPlace]] = {}
    for key in experiments:
        own = contents.places.of(key)
        in_order = list(own) == list(seen.of(key))
        found[key] = own if in_order else {repeat: own[repeat] for repeat in seen.of(key) if repeat in own}
    return PerRepeat(found)
