"""What a screen uses, computed from whole records and results one by one: what the columns of a screen must equal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.experiment_figures import in_time, outcome_of
from seatrial.analysis.pairs import pair_of, pair_values
from seatrial.analysis.results import results_without_limits
from seatrial.analysis.screening.columns import natural
from seatrial.analysis.screening.inputs import with_like_pairs
from seatrial.analysis.screening.screen import facts_of_node
from seatrial.benchmarks import benchmark_of, registry
from seatrial.model.benchmark.benchmark import Benchmark, Role
from seatrial.model.benchmark.parameter import Value
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.host_list import expand_hosts
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.record import RepeatRecord
from seatrial.model.study.screen import (
    CountsOfNodes,
    HalfFigure,
    Item,
    ItemFigure,
    LinkCount,
    NoResult,
    PairFigure,
    ScreenInput,
)
from seatrial.store.contents import Contents

_DEVICE = "device"
"""The parameter that has the number of a GPU."""
_MOST_NAMED = 4


def ordinary_input(
    folders: Sequence[Contents], switch_of: Mapping[str, str] | None = None, oversubscription: float | None = None
) -> ScreenInput:
    """All that a screen uses of these folders: of one cluster, or of one node each.

    A figure is that of equal benchmark, parameters and environment; the machine need not be equal, since that is the
    question. What ran on several nodes is a figure of pairs, or of the halves of `mpi.bisection`, or ignored.
    """
    figures = _Figures()
    pairs: dict[str, _Pairs] = {}
    halves: dict[str, _Halves] = {}
    facts: dict[str, Mapping[str, FactValue]] = {}
    benchmarks = registry()
    switch_of = dict(switch_of or {})
    for contents in folders:
        of_machine: dict[str, Mapping[str, FactValue]] = {}  # like nodes are one
        for result in results_without_limits(contents):
            records = contents.records[result.id]
            key = result.experiment.machine
            document = contents.machines.get(key)
            if document is not None and key not in of_machine:
                of_machine[key] = facts_of_node(document)
            for record in records:
                host = record.seen.get("host")
                if host and document is not None and len(_hosts(record)) == 1:
                    facts.setdefault(str(host), of_machine[key])
            several = [record for record in in_time(records) if len(set(_hosts(record))) > 1]
            if not several:
                figures.add(result, records)
            elif result.experiment.benchmark == benchmark_of(Role.RANK_PAIRS):
                _add_pairs(pairs, benchmarks[result.experiment.benchmark], result, several)
            elif result.experiment.parameters.get("half", "ranks") != "ranks":
                _add_half(halves, result, switch_of)
    made = tuple(figures.made())
    of_pairs = tuple(one for own in pairs.values() for one in own.made())
    nodes = dict.fromkeys(item.node for figure in made for item in figure.items)
    nodes |= dict.fromkeys(node for figure in of_pairs for pair in figure.pairs for node in pair)
    nodes |= dict.fromkeys(facts)
    no_results, results = _latest(folders)
    nodes |= dict.fromkeys(one.node for one in no_results)
    names = tuple(sorted(nodes, key=natural))
    return ScreenInput(
        nodes=names,
        figures=made,
        pairs=of_pairs,
        halves=tuple(own.made() for own in halves.values()),
        facts={node: facts[node] for node in names if node in facts},
        switch_of={node: switch_of[node] for node in names if node in switch_of},
        oversubscription=oversubscription,
        failed=_failed(folders),
        no_results=no_results,
        results=results,
        link_counts=_link_counts(folders),
        counts_of_repeats=_counts_of_repeats(folders),
    )


def _link_counts(folders: Sequence[Contents]) -> tuple[LinkCount, ...]:
    """What counters of links grew by in all repeats together, errors first. What is unknown is left out."""
    grew: dict[tuple[str, str, str], int] = {}
    for contents in folders:
        for records in contents.records.values():
            for record in records:
                hosts = _hosts(record)
                for entry in record.seen.get("links") or ():
                    node = entry.get("host") or (hosts[0] if len(set(hosts)) == 1 else None)
                    if node is not None and entry["grew_by"] and entry["counter"] in LINK_COUNTERS:
                        place = (str(node), str(entry["port"]), str(entry["counter"]))
                        grew[place] = grew.get(place, 0) + int(entry["grew_by"])
    order = {kind: place for place, kind in enumerate(CounterKind)}
    found = [LinkCount(*place, by) for place, by in grew.items()]
    return tuple(sorted(found, key=lambda one: (order[LINK_COUNTERS[one.counter].kind], -one.grew_by, one.node)))


def _counts_of_repeats(folders: Sequence[Contents]) -> tuple[CountsOfNodes, ...]:
    """What counters grew by on each node, of every repeat that ran on several and had any."""
    found: list[CountsOfNodes] = []
    for record in (one for contents in folders for records in contents.records.values() for one in records):
        own: dict[str, dict[str, int]] = {node: {} for node in _hosts(record)}
        for entry in record.seen.get("links") or ():
            if len(own) > 1 and entry.get("host") in own and entry["grew_by"]:
                kept = own[entry["host"]]
                kept[entry["counter"]] = kept.get(entry["counter"], 0) + entry["grew_by"]
        found += [own] if any(own.values()) else []
    return tuple(found)


def _failed(folders: Sequence[Contents]) -> tuple[str, ...]:
    """The benchmarks that gave no result on some nodes, and why; of nodes that failed alike, the first are named."""
    done: set[str] = set()
    failed: dict[tuple[str, str], dict[str, tuple[frozenset[str], str]]] = {}
    for contents in folders:
        for key, experiment in contents.experiments.items():
            records = contents.records[key]
            outcome, _ = outcome_of(records)
            hosts = frozenset(host for record in records for host in _hosts(record))
            same = _key(experiment.benchmark, experiment.parameters, sorted(hosts))
            if outcome.is_ok:
                done.add(same)
            else:
                kind = (experiment.benchmark, outcome.state.value.replace("_", " "))
                failed.setdefault(kind, {})[same] = (hosts, outcome.reason)
    found = []
    for (benchmark, state), each in failed.items():
        left = [own for same, own in each.items() if same not in done]
        if left:
            named = sorted({host for own, _ in left for host in own}, key=natural)
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            where = f" on {', '.join(named[:_MOST_NAMED])}{more}" if named else ""
            reason = f": {left[0][1]}" if left[0][1] else ""
            found.append(f"{benchmark} {state}{where}{reason}")
    return tuple(found)


def _latest(folders: Sequence[Contents]) -> tuple[tuple[NoResult, ...], dict[str, frozenset[str]]]:
    """What failed in its latest repeat on one node; and the benchmarks that had a result on one node."""
    none: list[NoResult] = []
    had: dict[str, list[str]] = {}
    for contents in folders:
        for key, experiment in contents.experiments.items():
            each = dict.fromkeys(_hosts(record) for record in contents.records[key])
            outcome, _ = outcome_of(contents.records[key])
            nodes = {host for own in each for host in own}
            if outcome.is_ok:
                for own in each:
                    for host in own if len(set(own)) == 1 else ():
                        had.setdefault(host, []).append(experiment.benchmark)
            elif len(nodes) == 1:
                why = f"{experiment.benchmark} {outcome.state.value.replace('_', ' ')}: {outcome.reason}"
                none.append(NoResult(nodes.pop(), experiment.benchmark, why))
    return tuple(none), {host: frozenset(names) for host, names in had.items()}


def _hosts(record: RepeatRecord) -> tuple[str, ...]:
    """The hosts of the ranks, or the only host."""
    hosts = tuple(map(str, record.seen.get("hosts") or ()))
    return hosts or ((str(record.seen["host"]),) if record.seen.get("host") else ())


def _key(*parts: object) -> str:
    return json.dumps(parts, sort_keys=True, default=str)


class _Figures:
    """Figures of nodes and devices, collected over experiments."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[ExperimentResult, FigureResult, dict[str, Value], dict[Item, list[float]]]] = {}

    def add(self, result: ExperimentResult, records: Sequence[RepeatRecord]) -> None:
        """Add the figures of an experiment that ran on one node."""
        hosts = {record.repeat: own[0] for record in records if (own := _hosts(record))}
        experiment = result.experiment
        for figure in result.figures:
            if figure.is_secondary:
                continue
            parameters: dict[str, Value] = {**experiment.parameters, **figure.point}
            device = parameters.pop(_DEVICE, None)
            key = _key(experiment.benchmark, parameters, experiment.environment, figure.name)
            _, _, _, values = self._of.setdefault(key, (result, figure, parameters, {}))
            for repeat in figure.repeats:
                if repeat.repeat in hosts and repeat.value > 0:
                    name = "" if device is None else f"GPU {device}"
                    values.setdefault(Item(hosts[repeat.repeat], name), []).append(repeat.value)

    def made(self) -> Iterator[ItemFigure]:
        """The figures, each with its items in order of their names. Of one device per node the node is the item."""
        for result, figure, parameters, values in self._of.values():
            if not values:
                continue
            if len({item.device for item in values}) == 1:
                values = {Item(item.node): own for item, own in values.items()}
            items = sorted(values, key=lambda item: (natural(item.node), natural(item.device)))
            yield ItemFigure(
                result.experiment.benchmark,
                figure.name,
                figure.unit,
                figure.better,
                tuple(items),
                tuple(values[item] for item in items),
                parameters,
            )


class _Pairs:
    """Figures of pairs of nodes of one benchmark, collected over repeats."""

    def __init__(self, benchmark: Benchmark, parameters: Mapping[str, Value]) -> None:
        self._benchmark = benchmark
        self._parameters = parameters
        self._of: dict[str, list[dict[tuple[str, str], float]]] = {}

    def add(self, record: RepeatRecord) -> None:
        """Add a repeat: of each pair of nodes the median over its pairs of ranks."""
        hosts = _hosts(record)
        is_alone = self._parameters.get("at_once") == 1
        for figure in self._benchmark.figures:
            values = pair_values(figure, record.samples, is_alone=is_alone)
            own: dict[tuple[str, str], list[float]] = {}
            for (a, b), value in values.items():
                if max(a, b) < len(hosts) and hosts[a] != hosts[b] and value > 0:
                    one, other = sorted((hosts[a], hosts[b]), key=natural)
                    own.setdefault((one, other), []).append(value)
            self._of.setdefault(figure.name, []).append({pair: median(each) for pair, each in own.items()})

    def made(self) -> Iterator[PairFigure]:
        """The figures, each of pairs that all its repeats have."""
        for name, of_all in self._of.items():
            repeats = with_like_pairs(of_all)
            pairs = sorted(set.intersection(*map(set, repeats)), key=lambda pair: tuple(map(natural, pair)))
            if pairs:
                figure = self._benchmark.figure(name)
                values = tuple([repeat[pair] for repeat in repeats] for pair in pairs)
                yield PairFigure(
                    self._benchmark.name, name, figure.unit, figure.better, tuple(pairs), values, self._parameters
                )


def _add_pairs(
    pairs: dict[str, _Pairs], benchmark: Benchmark, result: ExperimentResult, records: Sequence[RepeatRecord]
) -> None:
    experiment = result.experiment
    key = _key(experiment.benchmark, experiment.parameters, experiment.environment)
    own = pairs.setdefault(key, _Pairs(benchmark, experiment.parameters))
    for record in records:
        if record.outcome.is_ok and any(pair_of(sample.point) for sample in record.samples):
            own.add(record)


class _Halves:
    """The bandwidth between the nodes of each switch and all others."""

    def __init__(self, result: ExperimentResult, figure: FigureResult, parameters: Mapping[str, Value]) -> None:
        self._result, self._figure, self._parameters = result, figure, parameters
        self.of: dict[str, list[float]] = {}

    def made(self) -> HalfFigure:
        """The figure."""
        switches = sorted(self.of, key=natural)
        return HalfFigure(
            self._result.experiment.benchmark,
            self._figure.name,
            self._figure.unit,
            tuple(switches),
            tuple(self.of[switch] for switch in switches),
            self._parameters,
        )


def _add_half(halves: dict[str, _Halves], result: ExperimentResult, switch_of: Mapping[str, str]) -> None:
    """Add bisection 0, if its half is the nodes of a switch."""
    parameters: dict[str, Any] = dict(result.experiment.parameters)
    try:
        half = frozenset(expand_hosts(str(parameters.pop("half")).replace("+", ",")))
    except ValueError:
        return
    members: dict[str, set[str]] = {}
    for node, switch in switch_of.items():
        members.setdefault(switch, set()).add(node)
    own_switch = next((name for name, nodes in members.items() if nodes == half), None)
    figure = next((f for f in result.figures if f.name == "bandwidth" and f.point.get("bisection", 0) == 0), None)
    if own_switch is None or figure is None:
        return
    key = _key(result.experiment.benchmark, parameters, result.experiment.environment)
    own = halves.setdefault(key, _Halves(result, figure, parameters))
    own.of.setdefault(own_switch, []).extend(value for value in figure.values if value > 0)
