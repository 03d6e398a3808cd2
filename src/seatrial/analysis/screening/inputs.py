"""What a screen uses, from results folders: figures of nodes and of pairs of nodes, and facts of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.analysis.folder import tell_of_folder
from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.finding import listed
from seatrial.analysis.screening.columns import FOLDER_USE, natural
from seatrial.analysis.screening.gathered import ScreenFolder, screen_folder
from seatrial.analysis.screening.item_figures import FolderFigures, item_figures, key_of
from seatrial.analysis.screening.screen import facts_of_node
from seatrial.benchmarks import benchmark_of, registry
from seatrial.benchmarks.nodes import NODE_PLACEMENT, listed_nodes
from seatrial.diagnosis.cpu import LEAST_DELAY
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Figure, Role
from seatrial.model.benchmark.parameter import Value
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.host_list import expand_hosts
from seatrial.model.machine.identity import is_stored_as_emulated
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind
from seatrial.model.results.no_cpu import NoCpu, worst_of
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.model.study.screen import (
    ClockReading,
    CountsOfNodes,
    Fingerprints,
    FolderUse,
    HalfFigure,
    LinkCount,
    NodePair,
    NoResult,
    PairFigure,
    ScreenInput,
)
from seatrial.store.folder import ResultsFolder

_MOST_NAMED = 4


def folder_to_screen(path: Path) -> ScreenFolder:
    """What a screen uses of a folder; damaged lines are logged. Raises UsageError if there is no folder, or no repeat
    in it."""
    found = screen_folder(ResultsFolder.existing(path))
    tell_of_folder(path, found.damaged, is_empty=not found.experiments)
    return found


def screen_input(
    folders: Sequence[ScreenFolder],
    switch_of: Mapping[str, str] | None = None,
    oversubscription: float | None = None,
    confirmed_s: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> ScreenInput:
    """All that a screen uses of these folders: of one cluster, or of one node each.

    A figure is that of equal benchmark, parameters and environment; the machine need not be equal, since that is the
    question. What ran on several nodes is a figure of pairs, or of the halves of `mpi.bisection`, or ignored.
    `confirmed_s` has the times at which a node was measured again because it was odd: from and until, in seconds since
    1970.
    """
    pairs: dict[str, _Pairs] = {}
    halves: dict[str, _Halves] = {}
    facts: dict[str, Mapping[str, FactValue]] = {}
    switch_of = dict(switch_of or {})
    figures = [FolderFigures(folder) for folder in folders]
    are_of_one: list[list[bool]] = []
    for own in figures:
        folder = own.folder
        are_of_one.append(
            [not any(hosts.are_several for hosts in folder.hosts_of(k)) for k in range(len(folder.first) - 1)]
        )
        _add_facts(facts, folder)
        for experiment, is_of_one in enumerate(are_of_one[-1]):
            if is_of_one or not folder.has_figures[experiment]:
                continue
            given = folder.experiments[experiment]
            if given.benchmark == benchmark_of(Role.RANK_PAIRS):
                _add_pairs(pairs, folder, experiment)
            elif given.parameters.get("half", "ranks") != "ranks":
                _add_half(halves, own, experiment, switch_of)
    made = tuple(item_figures(figures, are_of_one, confirmed_s or {}))
    of_pairs = tuple(one for own_pairs in pairs.values() for one in own_pairs.made())
    nodes = dict.fromkeys(item.node for figure in made for item in figure.items)
    nodes |= dict.fromkeys(node for figure in of_pairs for pair in figure.pairs for node in pair)
    nodes |= dict.fromkeys(facts)
    no_results = tuple(_no_results(folders))
    nodes |= dict.fromkeys(one.node for one in no_results)
    names = tuple(sorted(nodes, key=natural))
    return ScreenInput(
        nodes=names,
        figures=made,
        pairs=of_pairs,
        halves=tuple(own_halves.made() for own_halves in halves.values()),
        facts={node: facts[node] for node in names if node in facts},
        switch_of={node: switch_of[node] for node in names if node in switch_of},
        oversubscription=oversubscription,
        failed=(*_emulated(folders), *_failed(folders)),
        no_results=no_results,
        results=_results(folders),
        link_counts=_link_counts(folders),
        counts_of_repeats=_counts_of_repeats(folders),
        no_cpu=tuple(_missing_cpus(folders)),
        tried_pairs=tried_pairs(folders),
        folder_use=_folder_use(folders),
        fingerprints=tuple(_fingerprints(folders, facts)),
    )


def _fingerprints(
    folders: Sequence[ScreenFolder], facts: Mapping[str, Mapping[str, FactValue]]
) -> Iterator[Fingerprints]:
    """Those of runs on one node, by what they follow from: benchmark, parameters, environment and the processor."""
    found: dict[tuple[str, str, str, str], dict[str, list[str]]] = {}
    for folder in folders:
        for experiment, given in enumerate(folder.experiments):
            for record in folder.records_of(experiment):
                hosts, bits = folder.hosts[folder.record_hosts[record]], folder.fingerprints.get(record)
                if bits is None or hosts.are_several:
                    continue
                node = hosts.stated
                processor = str(facts.get(node, {}).get("CPU model"))
                like = (given.benchmark, repr(sorted(given.parameters.items())), given.environment, processor)
                found.setdefault(like, {}).setdefault(node, []).append(bits)
    for (benchmark, *_), of_node in found.items():
        yield Fingerprints(benchmark, {node: tuple(own) for node, own in of_node.items()})


def _folder_use(folders: Sequence[ScreenFolder]) -> dict[str, FolderUse]:
    """What each node saw of the results folder. Of several folders nothing is compared: they may be on different file
    systems."""
    if len(folders) != 1:
        return {}
    (folder,) = folders
    found: dict[str, FolderUse] = {}
    nodes = [hosts.stated for hosts in folder.hosts]
    rows = grouped((nodes[place], record) for record, place in enumerate(folder.record_hosts.tolist()))
    for node, own in rows.items():
        claim_s, write_s, clock_s, error_s = (folder.record_folder[name][own] for name in FOLDER_USE)
        readings = zip(folder.record_t0[own].tolist(), clock_s.tolist(), error_s.tolist(), strict=True)
        clock = tuple(ClockReading(*one) for one in readings if all(map(isfinite, one)))
        made, written = (tuple(filter(isfinite, each.tolist())) for each in (claim_s, write_s))
        if node and (made or written or clock):
            found[node] = FolderUse(made, written, clock, folder.file_systems.get(node, ""))
    return found


_TRIED = (State.OK, State.TIMED_OUT, State.FAILED)
_UNREACHED = re.compile(r"left out[^(]*\((srun|ssh|it did not say)\b")
"""In the reason of what could not be started, since nodes did not answer (launch/allocation.py)."""
_MOST_SAID = 200


def was_tried(outcome: Outcome) -> bool:
    """Whether a program with messages ran, or did not because nodes did not answer."""
    has_ended = outcome.state in _TRIED and outcome.stage is not Stage.LAUNCH
    return has_ended or _UNREACHED.search(outcome.reason) is not None


def tried_pairs(folders: Sequence[ScreenFolder]) -> dict[NodePair, str]:
    """The pairs of nodes that `mpi.pairs` was tried on by themselves -> why there is no result, "" if there is; none if
    it had a result on all of them, and on more nodes together."""
    found: dict[NodePair, str] = {}
    has_failed = False
    for folder in folders:
        for place, experiment in enumerate(folder.experiments):
            outcome = folder.latest[place]
            if experiment.benchmark == benchmark_of(Role.RANK_PAIRS) and was_tried(outcome):
                has_failed |= not outcome.is_ok
                if (pair := pair_alone(experiment.parameters)) is not None:
                    state = outcome.state.value.replace("_", " ")
                    why = f"{state}: {outcome.reason.partition(';')[0][:_MOST_SAID]}"
                    found[pair] = "" if folder.is_ever_ok[place] else why
    return found if has_failed else {}


def pair_alone(parameters: Mapping[str, Value]) -> NodePair | None:
    """The two nodes that an experiment was placed on, None if others or none were named."""
    placement = str(parameters.get(NODE_PLACEMENT.name, ""))
    if placement in NODE_PLACEMENT.words:
        return None
    with suppress(UsageError):
        names = listed_nodes(placement)
        if len(names) == 2:
            return names[0], names[1]
    return None


def _missing_cpus(folders: Sequence[ScreenFolder]) -> Iterator[NoCpu]:
    """The nodes whose programs had no CPU for a tenth of the time of all their repeats, on average."""
    repeats: dict[str, int] = {}
    missing: dict[str, list[NoCpu]] = {}
    for folder in folders:
        for record, place in enumerate(folder.record_hosts.tolist()):
            nodes = set(folder.hosts[place].of_ranks)
            if len(nodes) == 1:
                (node,) = nodes
                repeats[node] = repeats.get(node, 0) + 1
                if record in folder.no_cpu:
                    missing.setdefault(node, []).append(folder.no_cpu[record])
    for node, own in missing.items():
        share = sum(one.share or 0.0 for one in own) / repeats[node]
        if share >= LEAST_DELAY:
            yield replace(worst_of(own), who=node, share=share)


def _add_facts(facts: dict[str, Mapping[str, FactValue]], folder: ScreenFolder) -> None:
    """Add the facts of nodes, by the name that they state."""
    of_machine: dict[str, Mapping[str, FactValue]] = {}  # like nodes are one
    for experiment, given in enumerate(folder.experiments):
        document = folder.facts.machines.get(given.machine)
        if document is None or is_stored_as_emulated(document):
            continue
        if given.machine not in of_machine:
            of_machine[given.machine] = facts_of_node(document)
        for hosts in folder.hosts_of(experiment):
            if hosts.stated and len(hosts.of_ranks) == 1:
                facts.setdefault(hosts.stated, of_machine[given.machine])


def _link_counts(folders: Sequence[ScreenFolder]) -> tuple[LinkCount, ...]:
    """What counters of links grew by in all repeats together, errors first. What is unknown is left out."""
    grew: dict[tuple[str, str, str], int] = {}
    for folder in folders:
        for record in folder.by_repeat(folder.links):
            hosts = folder.hosts[folder.record_hosts[record]].of_ranks
            for entry in folder.links[record]:
                node = entry.get("host") or (hosts[0] if len(set(hosts)) == 1 else None)
                if node is not None and entry["grew_by"] and entry["counter"] in LINK_COUNTERS:
                    place = (str(node), str(entry["port"]), str(entry["counter"]))
                    grew[place] = grew.get(place, 0) + int(entry["grew_by"])
    order = {kind: place for place, kind in enumerate(CounterKind)}
    found = [LinkCount(*place, by) for place, by in grew.items()]
    return tuple(sorted(found, key=lambda one: (order[LINK_COUNTERS[one.counter].kind], -one.grew_by, one.node)))


def _counts_of_repeats(folders: Sequence[ScreenFolder]) -> tuple[CountsOfNodes, ...]:
    """What counters grew by on each node, of every repeat that ran on several and had any."""
    found: list[CountsOfNodes] = []
    for folder in folders:
        for record in folder.by_repeat(folder.links):
            own: dict[str, dict[str, int]] = {node: {} for node in folder.hosts[folder.record_hosts[record]].of_ranks}
            for entry in folder.links[record]:
                if len(own) > 1 and entry.get("host") in own and entry["grew_by"]:
                    counts, name = own[entry["host"]], str(entry["counter"])
                    counts[name] = counts.get(name, 0) + int(entry["grew_by"])
            if any(own.values()):
                found.append(own)
    return tuple(found)


def _emulated(folders: Sequence[ScreenFolder]) -> Iterator[str]:
    """The nodes whose processors are emulated, and that nothing of them is compared."""
    found = {
        host
        for folder in folders
        for place, experiment in enumerate(folder.experiments)
        if is_stored_as_emulated(folder.facts.machines.get(experiment.machine, {}))
        for own in folder.hosts_of(place)
        for host in own.of_ranks
    }
    if found:
        yield f"nothing of {_named(sorted(found, key=natural))} is compared: the processors are emulated (QEMU TCG)"


def _named(hosts: Sequence[str]) -> str:
    return listed(hosts, _MOST_NAMED)


def _failed(folders: Sequence[ScreenFolder]) -> tuple[str, ...]:
    """The benchmarks that gave no result on some nodes, and why; of nodes that failed alike, the first are named."""
    done: set[str] = set()
    failed: dict[tuple[str, str], dict[str, tuple[frozenset[str], str]]] = {}
    for folder in folders:
        for place, experiment in enumerate(folder.experiments):
            outcome = folder.latest[place]
            hosts = frozenset(host for own in folder.hosts_of(place) for host in own.of_ranks)
            same = key_of(experiment.benchmark, experiment.parameters, sorted(hosts))
            if outcome.is_ok:
                done.add(same)
            elif experiment.benchmark != benchmark_of(Role.RANK_PAIRS) or pair_alone(experiment.parameters) is None:
                kind = (experiment.benchmark, outcome.state.value.replace("_", " "))
                failed.setdefault(kind, {})[same] = (hosts, outcome.reason)
    found = []
    for (benchmark, state), each in failed.items():
        left = [own for same, own in each.items() if same not in done]
        if left:
            named = sorted({host for own, _ in left for host in own}, key=natural)
            where = f" on {_named(named)}" if named else ""
            reason = f": {left[0][1]}" if left[0][1] else ""
            found.append(f"{benchmark} {state}{where}{reason}")
    return tuple(found)


def _no_results(folders: Sequence[ScreenFolder]) -> Iterator[NoResult]:
    """What ran on one node only, and failed in its latest repeat."""
    for folder in folders:
        for place, experiment in enumerate(folder.experiments):
            outcome = folder.latest[place]
            nodes = {host for own in folder.hosts_of(place) for host in own.of_ranks}
            if not outcome.is_ok and len(nodes) == 1:
                why = f"{experiment.benchmark} {outcome.state.value.replace('_', ' ')}: {outcome.reason}"
                yield NoResult(nodes.pop(), experiment.benchmark, why)


def _results(folders: Sequence[ScreenFolder]) -> dict[str, frozenset[str]]:
    """Node -> the benchmarks whose latest repeat on it alone was ok."""
    each = (
        (host, experiment.benchmark)
        for folder in folders
        for place, experiment in enumerate(folder.experiments)
        if folder.latest[place].is_ok
        for own in folder.hosts_of(place)
        if not own.are_several
        for host in own.of_ranks
    )
    return {node: frozenset(names) for node, names in grouped(each).items()}


class _Pairs(Struct):
    """Figures of pairs of nodes of one benchmark: of each repeat, figure and pair of nodes the median over its pairs of
    ranks."""

    benchmark: Benchmark
    parameters: Mapping[str, Value]
    repeats: list[Mapping[str, Mapping[NodePair, float]]] = []

    def made(self) -> Iterator[PairFigure]:
        """The figures, each of pairs that all its repeats have."""
        for name, of_all in grouped(item for values in self.repeats for item in values.items()).items():
            repeats = with_like_pairs(of_all)
            pairs = tuple(sorted(set.intersection(*map(set, repeats)), key=lambda pair: tuple(map(natural, pair))))
            if pairs:
                figure = self.benchmark.figure(name)
                values = tuple([repeat[pair] for repeat in repeats] for pair in pairs)
                yield PairFigure(self.benchmark.name, name, figure.unit, figure.better, pairs, values, self.parameters)


def with_like_pairs(repeats: Sequence[Mapping[NodePair, float]]) -> Sequence[Mapping[NodePair, float]]:
    """The repeats that have every pair, if at least half of them do; else all. On a busy node, a pair may be without
    samples in one repeat: its other repeats still say what its links can."""
    every = set[NodePair]().union(*repeats)
    whole = [repeat for repeat in repeats if len(repeat) == len(every)]
    return whole if 2 * len(whole) >= len(repeats) else repeats


def _add_pairs(pairs: dict[str, _Pairs], folder: ScreenFolder, place: int) -> None:
    experiment = folder.experiments[place]
    if pair_alone(experiment.parameters) is not None:
        return  # two nodes do not show which end is slow
    key = key_of(experiment.benchmark, experiment.parameters, experiment.environment)
    own = pairs.setdefault(key, _Pairs(registry()[experiment.benchmark], experiment.parameters))
    own.repeats += [folder.pairs[record] for record in folder.records_of(place) if record in folder.pairs]


class _Halves(Struct):
    """The bandwidth between the nodes of each switch and all others."""

    benchmark: str
    figure: Figure
    parameters: Mapping[str, Value]
    of: dict[str, list[float]] = {}

    def made(self) -> HalfFigure:
        """The figure."""
        switches = tuple(sorted(self.of, key=natural))
        values = tuple(self.of[switch] for switch in switches)
        return HalfFigure(self.benchmark, self.figure.name, self.figure.unit, switches, values, self.parameters)


def _add_half(halves: dict[str, _Halves], figures: FolderFigures, place: int, switch_of: Mapping[str, str]) -> None:
    """Add bisection 0, if its half is the nodes of a switch."""
    experiment = figures.folder.experiments[place]
    parameters: dict[str, Any] = dict(experiment.parameters)
    try:
        half = frozenset(expand_hosts(str(parameters.pop("half")).replace("+", ",")))
    except ValueError:
        return
    members = grouped((switch, node) for node, switch in switch_of.items())
    own_switch = next((name for name, nodes in members.items() if half == set(nodes)), None)
    figure = next(
        (
            one
            for one in figures.figures
            if one.experiment == place and one.figure.name == "bandwidth" and one.point.get("bisection", 0) == 0
        ),
        None,
    )
    if own_switch is None or figure is None:
        return
    key = key_of(experiment.benchmark, parameters, experiment.environment)
    own = halves.setdefault(key, _Halves(experiment.benchmark, figure.figure, parameters))
    own.of.setdefault(own_switch, []).extend(value for value in figures.values_of(figure) if value > 0)
