"""One side of a comparison with all facts besides its figures, and the groups of experiments to compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from seatrial.benchmarks import registry
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.store.contents import Contents


class SideFacts(Frozen):
    """Experiments by id, all repeats of each with any outcome, and the documents that the experiments refer to."""

    experiments: Mapping[str, Experiment] = {}
    records: Mapping[str, tuple[RepeatRecord, ...]] = {}
    environments: Mapping[str, Mapping[str, Any]] = {}
    machines: Mapping[str, Mapping[str, Any]] = {}

    def all_records(self) -> tuple[RepeatRecord, ...]:
        """The repeats of all experiments."""
        return tuple(record for key in self.experiments for record in self.records.get(key, ()))


def side_facts(contents: Contents, experiment_ids: Iterable[str]) -> SideFacts:
    """The side with these experiments. Ids that are not in the folder are ignored: they were not measured."""
    experiments = {key: contents.experiments[key] for key in experiment_ids if key in contents.experiments}
    environments = {experiment.environment for experiment in experiments.values()}
    machines = {experiment.machine for experiment in experiments.values()}
    return SideFacts(
        experiments,
        {key: tuple(contents.records.get(key, ())) for key in experiments},
        {key: document for key, document in contents.environments.items() if key in environments},
        {key: document for key, document in contents.machines.items() if key in machines},
    )


class Group(Frozen):
    """Experiments of one benchmark to compare with each other; one side may have none."""

    benchmark: str
    baseline: SideFacts
    candidate: SideFacts


def groups(baseline: SideFacts, candidate: SideFacts, axis: str | None) -> list[Group]:
    """Each experiment in one group: those that differ only along the axis; of the rest, those that differ only in
    parameters that the benchmark derives; of the rest, all of one benchmark."""
    left = (dict(baseline.experiments), dict(candidate.experiments))
    found: list[Group] = []
    for key in (_except(frozenset({axis})), _except_derived(axis), lambda experiment: experiment.benchmark):
        sides = tuple(_by_key(side, key) for side in left)
        for place in [place for place in sides[0] if place in sides[1]]:
            found.append(_group(baseline, candidate, sides[0][place], sides[1][place]))
            for side, ids in zip(left, (sides[0][place], sides[1][place]), strict=True):
                for experiment in ids:
                    del side[experiment]
    for name, ids in _by_key(left[0], lambda experiment: experiment.benchmark).items():
        found.append(Group(str(name), _part(baseline, ids), SideFacts()))
    for name, ids in _by_key(left[1], lambda experiment: experiment.benchmark).items():
        found.append(Group(str(name), SideFacts(), _part(candidate, ids)))
    return found


_Key = Callable[[Experiment], Hashable]


def _except(names: frozenset[str | None]) -> _Key:
    """A key of the benchmark and all parameters except `names`."""

    def key(experiment: Experiment) -> Hashable:
        return experiment.benchmark, tuple(sorted(_kept(experiment, names)))

    return key


def _except_derived(axis: str | None) -> _Key:
    def key(experiment: Experiment) -> Hashable:
        return _except(derived_parameters(experiment.benchmark) | {axis})(experiment)

    return key


def derived_parameters(benchmark: str) -> frozenset[str]:
    """The parameters whose default is a word such as `auto`, which the benchmark resolves to a number."""
    known = registry().get(benchmark)
    return frozenset(p.name for p in known.parameters if p.default in p.words) if known else frozenset()


def _kept(experiment: Experiment, names: frozenset[str | None]) -> Iterator[tuple[str, str, Value]]:
    for name, value in experiment.parameters.items():
        if name not in names:
            yield name, repr(value), value


def _by_key(experiments: Mapping[str, Experiment], key: _Key) -> dict[Hashable, list[str]]:
    found: dict[Hashable, list[str]] = {}
    for name, experiment in experiments.items():
        found.setdefault(key(experiment), []).append(name)
    return found


def _group(baseline: SideFacts, candidate: SideFacts, first: list[str], second: list[str]) -> Group:
    return Group(baseline.experiments[first[0]].benchmark, _part(baseline, first), _part(candidate, second))


def _part(side: SideFacts, ids: Iterable[str]) -> SideFacts:
    experiments = {key: side.experiments[key] for key in ids}
    used = {experiment.environment for experiment in experiments.values()}
    return SideFacts(
        experiments,
        {key: side.records.get(key, ()) for key in experiments},
        {key: document for key, document in side.environments.items() if key in used},
        side.machines,
    )
