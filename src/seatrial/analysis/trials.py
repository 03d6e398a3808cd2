"""Trials: everything in a results folder about each of its machines, for the page."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.results import all_results, machines_of
from seatrial.analysis.rules import findings
from seatrial.benchmarks import registry
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.machine import Machine
from seatrial.model.trial import NotMeasured, Trial
from seatrial.store.contents import Contents
from seatrial.version import __version__


def trials_of(contents: Contents) -> tuple[Trial, ...]:
    """One trial for each machine of the folder, in the order of their first experiment."""
    results = all_results(contents)
    machines = machines_of(contents)
    keys = dict.fromkeys(result.experiment.machine for result in results)
    return tuple(
        _trial(machines[key], [result for result in results if result.experiment.machine == key], contents)
        for key in keys
    )


def not_measured(results: Sequence[ExperimentResult]) -> tuple[NotMeasured, ...]:
    """The benchmarks that were not run."""
    measured = {result.experiment.benchmark for result in results}
    return tuple(
        NotMeasured(name, benchmark.question, f"not requested: seatrial run {name}")
        for name, benchmark in registry().items()
        if name not in measured and benchmark.program.can_run
    )


def _trial(machine: Machine, results: Sequence[ExperimentResult], contents: Contents) -> Trial:
    own = dict.fromkeys(result.id for result in results)
    used = {result.experiment.environment for result in results}
    seen = {(key, record.repeat): record.seen for key in own for record in in_time(contents.records[key])}
    return Trial(
        machine=machine,
        results=tuple(results),
        findings=findings(machine, results, seen),
        not_measured=not_measured(results),
        environments={key: document for key, document in contents.environments.items() if key in used},
        places={place_of: contents.places[place_of] for place_of in seen if place_of in contents.places},
        seen=seen,
        version=__version__,
    )
