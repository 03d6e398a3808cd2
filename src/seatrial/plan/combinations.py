"""The combinations of the axis values of a study, before they are resolved for a machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value
from seatrial.model.study.study import OF_SIDES, Study, StudyBenchmark, is_of_environment
from seatrial.plan.axis_values import concerns

MOST_COMBINATIONS = 100_000
BENCHMARK = "benchmark"
"""The key of a partial parameter set that selects a benchmark."""

Given = Mapping[str, Value | None]


def combinations(study: Study) -> Iterator[tuple[StudyBenchmark, dict[str, Value | None]]]:
    """(benchmark, value of each of its axes) in the order of the file: the product without the excluded, the last axis
    fastest, then the included. Axes that an included set does not contain are at their defaults."""
    excludes = _Excludes(study.exclude)
    for entry in study.benchmarks:
        benchmark = benchmark_named(entry.name)
        for row in itertools.product(*_units(study, benchmark)):
            given = dict(itertools.chain.from_iterable(row))
            if not excludes.matches(entry.name, given):
                yield entry, given
    for partial in study.include:
        named = {name: value for name, value in partial.items() if name != BENCHMARK}
        for entry in study.benchmarks:
            benchmark = benchmark_named(entry.name)
            if partial.get(BENCHMARK, entry.name) == entry.name and all(concerns(name, benchmark) for name in named):
                yield entry, {**_defaults(study, entry, benchmark), **named}


def combinations_at_most(study: Study) -> int:
    """The number of combinations before any are excluded."""
    product = sum(
        math.prod(len(unit) for unit in _units(study, benchmark_named(entry.name))) for entry in study.benchmarks
    )
    return product + len(study.include) * len(study.benchmarks)


def _units(study: Study, benchmark: Benchmark) -> list[Sequence[tuple[tuple[str, Value | None], ...]]]:
    """Axes that advance together (one, or those of a zip), as lists of rows of (axis, value)."""
    own = [axis for axis in study.axes if concerns(axis.name, benchmark)]
    units: list[Sequence[tuple[tuple[str, Value | None], ...]]] = []
    done: set[str] = set()
    for axis in own:
        if axis.name in done:
            continue
        together = [member for member in own if member.name in study.moves_with(axis.name)]
        done |= {member.name for member in together}
        columns = [[(member.name, value) for value in member.values] for member in together]
        units.append(list(zip(*columns, strict=True)))
    return units


def _defaults(study: Study, entry: StudyBenchmark, benchmark: Benchmark) -> dict[str, Value | None]:
    """The defaults of the axes for an included set, without those that have none: label, system, environment."""
    return {
        axis.name: benchmark.parameter(axis.name).default
        for axis in study.axes
        if concerns(axis.name, benchmark) and axis.name not in OF_SIDES and not is_of_environment(axis.name)
    }


class _Excludes:
    """The partial parameter sets to exclude, indexed by their values for fast lookup."""

    def __init__(self, partial: Sequence[Given]) -> None:
        self._by_names: dict[tuple[str, ...], set[tuple[Value | None, ...]]] = {}
        for excluded in partial:
            names = tuple(sorted(excluded))
            self._by_names.setdefault(names, set()).add(tuple(excluded[name] for name in names))

    def matches(self, benchmark: str, given: Given) -> bool:
        """Whether a combination is excluded."""
        values: Given = {BENCHMARK: benchmark, **given}
        return any(
            all(name in values for name in names) and tuple(values[name] for name in names) in excluded
            for names, excluded in self._by_names.items()
        )
