"""One side of a comparison with all facts besides its figures, the groups of experiments to compare, and a difference
between two sides before it is known whether it is intended."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import Any, TypeVar, overload

from seatrial.analysis.grouped import grouped
from seatrial.benchmarks import registry
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.store.contents import Contents


class SideFacts(Frozen):
    """Experiments by id, all repeats of each with any outcome (`records` may have others), and the documents that the
    experiments refer to."""

    experiments: Mapping[str, Experiment] = {}
    records: Mapping[str, Sequence[RepeatRecord]] = {}
    environments: Mapping[str, Mapping[str, Any]] = {}
    machines: Mapping[str, Mapping[str, Any]] = {}

    def all_records(self) -> Sequence[RepeatRecord]:
        """The repeats of all experiments."""
        return _AllRecords(self.records, tuple(key for key in self.experiments if key in self.records))


class _AllRecords(Sequence[RepeatRecord]):
    """The repeats of experiments, one experiment after another: all of them together may take too much memory."""

    def __init__(self, records: Mapping[str, Sequence[RepeatRecord]], keys: Sequence[str]) -> None:
        self._records, self._keys = records, keys

    def __len__(self) -> int:
        return sum(len(self._records[key]) for key in self._keys)

    def __iter__(self) -> Iterator[RepeatRecord]:
        return (record for key in self._keys for record in self._records[key])

    @overload
    def __getitem__(self, index: int) -> RepeatRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RepeatRecord]: ...

    def __getitem__(self, index: int | slice) -> RepeatRecord | Sequence[RepeatRecord]:
        return tuple(self)[index]


def side_facts(contents: Contents | SideFacts, experiment_ids: Iterable[str]) -> SideFacts:
    """The side, or the part of one, with these experiments. Ids that are not in the folder are ignored: they were not
    measured."""
    experiments = {key: contents.experiments[key] for key in experiment_ids if key in contents.experiments}
    environments = {experiment.environment for experiment in experiments.values()}
    machines = {experiment.machine for experiment in experiments.values()}
    return SideFacts(
        experiments,
        contents.records,
        {key: document for key, document in contents.environments.items() if key in environments},
        {key: document for key, document in contents.machines.items() if key in machines},
    )


class SideGroup(Frozen):
    """Experiments of one benchmark to compare with each other; one side may have none."""

    benchmark: str
    baseline: SideFacts
    candidate: SideFacts


def groups(baseline: SideFacts, candidate: SideFacts, axis: str | None) -> list[SideGroup]:
    """Each experiment in one group: those that differ only along the axis; of the rest, those that differ only in
    parameters that the benchmark derives; of the rest, all of one benchmark."""
    keys: tuple[Callable[[Experiment], Hashable], ...] = (
        lambda one: _without(one, frozenset({axis})),
        lambda one: _without(one, derived_parameters(one.benchmark) | {axis}),
        lambda one: one.benchmark,
    )
    left = (dict(baseline.experiments), dict(candidate.experiments))
    found: list[SideGroup] = []
    for key in keys:
        first, second = (grouped((key(one), name) for name, one in side.items()) for side in left)
        for place in [place for place in first if place in second]:
            benchmark = baseline.experiments[first[place][0]].benchmark
            found.append(SideGroup(benchmark, side_facts(baseline, first[place]), side_facts(candidate, second[place])))
            for side, ids in zip(left, (first[place], second[place]), strict=True):
                for name in ids:
                    del side[name]
    alone = [grouped((one.benchmark, name) for name, one in side.items()) for side in left]
    found += [SideGroup(name, side_facts(baseline, ids), SideFacts()) for name, ids in alone[0].items()]
    found += [SideGroup(name, SideFacts(), side_facts(candidate, ids)) for name, ids in alone[1].items()]
    return found


def _without(experiment: Experiment, names: frozenset[str | None]) -> Hashable:
    """The benchmark, and all parameters but these."""
    kept = ((name, repr(value), value) for name, value in experiment.parameters.items() if name not in names)
    return experiment.benchmark, tuple(sorted(kept))


def derived_parameters(benchmark: str) -> frozenset[str]:
    """The parameters whose default is a word such as `auto`, which the benchmark resolves to a number."""
    known = registry().get(benchmark)
    return frozenset(p.name for p in known.parameters if p.default in p.words) if known else frozenset()


LONGEST = 100
"""Maximum number of characters shown of a value."""
_MANY_WORDS = 60
"""Beyond this number of characters, only words that the other side does not have are shown."""


class Topic(StrEnum):
    """What differs, by importance."""

    OUTCOME = "outcome"
    POINT = "experiment"
    PARAMETER = "parameter"
    LIBRARY = "library"
    PROGRAM = "program"
    INPUT = "input file"
    ENVIRONMENT = "environment"
    OWN_LIBRARY = "library of the measuring program"
    AFFINITY = "affinity"
    NOTE = "note"
    VARIABLE = "variable"
    SCHEDULING = "scheduling"
    HOST = "host"
    FACT = "fact"
    LOAD = "load"
    STEAL = "steal"
    OTHERS = "CPU time of other processes"
    OTHERS_CPUS = "CPUs used by other processes"
    DELAY = "waiting for a CPU"
    THROTTLED = "time stopped by a CPU quota"
    IO_LIMIT = "limit on I/O"
    MEMORY = "waiting for memory"
    BLOCKED = "time blocked (files, sockets, sleep)"
    FILE_SYSTEM = "file system"
    COMMAND = "command line"
    TIME = "time of measurement"


RANK: Mapping[Topic, int] = {kind: place for place, kind in enumerate(Topic)}


class Noticed(Frozen):
    """`name` identifies it within its kind ("threads", "libm.so.6"), "" if there is only one. Sides as in
    Difference."""

    kind: Topic
    name: str
    baseline: str | None
    candidate: str | None

    @property
    def what(self) -> str:
        """The name used in a Difference."""
        return f"{self.kind} {self.name}".rstrip()


def contrast(kind: Topic, name: str, baseline: str | None, candidate: str | None) -> Noticed:
    """A difference with both values shortened such that they still look different."""
    if baseline is None or candidate is None:
        return Noticed(kind, name, _short(baseline), _short(candidate))
    if max(len(baseline), len(candidate)) > _MANY_WORDS:
        baseline, candidate = _only_here(baseline, candidate), _only_here(candidate, baseline, first=baseline)
    return Noticed(kind, name, *_short_pair(baseline, candidate))


def _only_here(text: str, other: str, first: str | None = None) -> str:
    """The parts of a long list that are not in the other list; the whole text if there are none."""
    separator = "; " if "; " in (first or text) else " "
    parts, others = text.split(separator), other.split(separator)
    if len(parts) + len(others) < 6 or Counter(parts) == Counter(others):
        return text
    rest = Counter(parts) - Counter(others)
    return f"… {separator.join(part for part in dict.fromkeys(parts) if part in rest)}" if rest else "… without these"


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _short_pair(first: str, second: str) -> tuple[str, str]:
    """Both texts, starting shortly before their first difference."""
    if max(len(first), len(second)) <= LONGEST:
        return first, second
    shorter = min(len(first), len(second))
    same = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    start = max(0, same - LONGEST // 4)
    if max(len(first), len(second)) - start < LONGEST:
        start = max(0, max(len(first), len(second)) - LONGEST + 2)
    return _from(first, start), _from(second, start)


def _from(text: str, start: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def counted(values: Counter[str]) -> str:
    """Values with their number of repeats: "granted", or "granted in 5 of 6, refused in 1 of 6"."""
    if len(values) == 1:
        return next(iter(values))
    total = values.total()
    return ", ".join(f"{value} in {number} of {total}" for value, number in values.most_common(4))


T = TypeVar("T")


def distinct(values: Iterable[T]) -> list[tuple[T, int]]:
    """Objects with how often each occurs, in order of first occurrence. Stored records share equal values, so what is
    computed for each object is computed few times."""
    found: dict[int, T] = {}
    times: dict[int, int] = {}
    for value in values:
        key = id(value)
        if key in times:
            times[key] += 1
        else:
            found[key], times[key] = value, 1
    return [(value, times[key]) for key, value in found.items()]


def tally(values: Iterable[T], show: Callable[[T], str]) -> Counter[str]:
    """How often each text occurs."""
    counter: Counter[str] = Counter()
    for value, times in distinct(values):
        counter[show(value)] += times
    return counter


def clearly_unlike(first: Counter[str], second: Counter[str]) -> bool:
    """Whether the values of the two sides differ by more than chance.

    They do if the share of some value differs by more than one half. Values that differ from repeat to repeat (a seed)
    never do; values on which all repeats of a side agree always do.
    """
    if not first or not second:
        return False
    return any(
        abs(first[value] / first.total() - second[value] / second.total()) > 0.5
        for value in first.keys() | second.keys()
    )


_LEAST_REPEATS = 6
_APART = 0.95


def clearly_apart(first: Sequence[float], second: Sequence[float], least: float) -> bool:
    """Whether the numbers of one side are above those of the other: the medians differ by at least `least`, and 95 % of
    all pairs (one of each side) differ in the same direction. Requires 6 repeats: with 3 on each side, all pairs do so
    by chance in one case of ten."""
    if min(len(first), len(second)) < _LEAST_REPEATS or abs(median(first) - median(second)) < least:
        return False
    return not 1 - _APART < share_below(first, second) < _APART


def share_below(first: Iterable[float], second: Sequence[float]) -> float:
    """The share of pairs (a, b) with a < b, ties counted half, without a list of the pairs."""
    ordered, values = sorted(second), list(first)
    doubled = sum(2 * len(ordered) - bisect_left(ordered, a) - bisect_right(ordered, a) for a in values)
    return doubled / (2 * len(values) * len(ordered))


def together(texts: Iterable[str | None]) -> str | None:
    """The values from several groups of experiments in one text."""
    values = list(dict.fromkeys(texts))
    if len(values) == 1:
        return values[0]
    return _short(" | ".join("none" if text is None else text for text in values))
