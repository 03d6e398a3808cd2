"""Experiments of a results folder as sides of comparisons: their figures, with the block of each repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.analysis.match import Match, Measured, Sequential
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import by_number
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import point_key
from seatrial.store.contents import Contents


class SideExperiment(Frozen):
    """An experiment on one side, with the name of that side, and the folder with its records. `settings` are the other
    axes of its environment, which are no parameters of it: they tell it from the other pairs of a study."""

    name: str
    result: ExperimentResult
    contents: Contents
    settings: Mapping[str, Value] = {}

    @property
    def parameters(self) -> Mapping[str, Value]:
        """What it was measured with: parameters and settings."""
        return {**self.result.experiment.parameters, **self.settings}


def blocks_of(contents: Contents, experiment: str) -> dict[int, str]:
    """Repeat -> the block in which it was made, if any."""
    return {
        record.repeat: str(block)
        for record in contents.records.get(experiment, ())
        if (block := record.seen.get("block"))
    }


def hosts_of(contents: Contents, experiment: str) -> tuple[str, ...]:
    """The hosts that an experiment was measured on, sorted."""
    return hosts_of_records(contents.records.get(experiment, ()))


def hosts_of_records(records: Iterable[RepeatRecord]) -> tuple[str, ...]:
    """The hosts of all ranks and programs, sorted."""
    found = {str(host) for record in records for host in record.seen.get("hosts") or [record.seen.get("host")] if host}
    return tuple(sorted(found, key=by_number))


def matches(
    baseline: SideExperiment,
    candidate: SideExperiment,
    *,
    figures: frozenset[str] = frozenset(),
    rule: Sequential | None = None,
) -> list[Match]:
    """A match for each figure and point that both have, in the order of the baseline. `figures` empty: all."""
    if baseline.result.id == candidate.result.id and baseline.contents is candidate.contents:
        return []  # two settings that resolve to the same experiment
    shared = _shared(baseline.parameters, candidate.parameters)
    others = {(figure.name, point_key(figure.point)): figure for figure in candidate.result.figures}
    return [
        Match(
            baseline.result.experiment.benchmark,
            {**shared, **figure.point},
            measured(baseline, figure),
            measured(candidate, other),
            figure.unit,
            figure.better,
            figure.name,
            rule,
            figure.is_secondary,
        )
        for figure in baseline.result.figures
        if (not figures or figure.name in figures)
        and (other := others.get((figure.name, point_key(figure.point)))) is not None
        and all(value > 0 for one in (figure, other) for value in one.values)  # a ratio needs both
    ]


def measured(side: SideExperiment, figure: FigureResult) -> Measured:
    """One figure of an experiment as a side."""
    result, contents = side.result, side.contents
    return Measured(
        side.name,
        result.id,
        figure,
        hosts_of(contents, result.id),
        result.experiment.machine,
        blocks_of(contents, result.id),
    )


def _shared(first: Mapping[str, Value], second: Mapping[str, Value]) -> Mapping[str, Value]:
    """The parameters that both have with the same value."""
    return {name: value for name, value in first.items() if name in second and second[name] == value}
