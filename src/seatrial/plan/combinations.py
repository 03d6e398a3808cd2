"""The points that the axes of a study make, before any machine resolves them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark import Benchmark
from seatrial.model.parameter import Value
from seatrial.model.study import ENVIRONMENT_PREFIX, LABEL, Axis, Study, StudyBenchmark
from seatrial.plan.axis_values import concerns

MOST_POINTS = 100_000
BENCHMARK = "benchmark"
"""The key of a partial point that names a benchmark."""

Given = Mapping[str, Value | None]


def combinations(study: Study) -> Iterator[tuple[StudyBenchmark, dict[str, Value | None]]]:
    """(benchmark, value of each of its axes) in the order of the file: the product without what is excluded, the last
    axis fastest, then what is included. What an included point does not name of the axes is at its default."""
    excludes = _Excludes(study.exclude)
    for entry in study.benchmarks:
        benchmark = benchmark_named(entry.name)
        for row in itertools.product(*_units(study, benchmark)):
            given = dict(itertools.chain.from_iterable(row))
            if not excludes.hit(entry.name, given):
                yield entry, given
    for partial in study.include:
        named = {name: value for name, value in partial.items() if name != BENCHMARK}
        for entry in study.benchmarks:
            benchmark = benchmark_named(entry.name)
            if partial.get(BENCHMARK, entry.name) == entry.name and all(concerns(name, benchmark) for name in named):
                yield entry, {**_defaults(study, entry, benchmark), **named}


def combinations_at_most(study: Study) -> int:
    """How many there are before anything is excluded."""
    product = sum(
        math.prod(len(unit) for unit in _units(study, benchmark_named(entry.name))) for entry in study.benchmarks
    )
    return product + len(study.include) * len(study.benchmarks)


def _units(study: Study, benchmark: Benchmark) -> list[Sequence[tuple[tuple[str, Value | None], ...]]]:
    """What advances together: an axis by itself, or those of a zip, each as a row of (axis, value)."""
    own = [axis for axis in study.axes if concerns(axis.name, benchmark)]
    units: list[Sequence[tuple[tuple[str, Value | None], ...]]] = []
    done: set[str] = set()
    for axis in own:
        if axis.name in done:
            continue
        together = _together(study, axis, own)
        done |= {member.name for member in together}
        columns = [[(member.name, value) for value in member.values] for member in together]
        units.append(list(zip(*columns, strict=True)))
    return units


def _together(study: Study, axis: Axis, own: Sequence[Axis]) -> list[Axis]:
    names = next((names for names in study.zips if axis.name in names), (axis.name,))
    return [member for member in own if member.name in names]


def _defaults(study: Study, entry: StudyBenchmark, benchmark: Benchmark) -> dict[str, Value | None]:
    """The axes that an included point leaves at their default: that of the benchmark. A label or a part of the
    environment has none, and is left out."""
    return {
        axis.name: benchmark.parameter(axis.name).default
        for axis in study.axes
        if concerns(axis.name, benchmark) and axis.name != LABEL and not axis.name.startswith(ENVIRONMENT_PREFIX)
    }


class _Excludes:
    """Partial points to leave out, found by the values of a point without going through them all."""

    def __init__(self, partial: Sequence[Given]) -> None:
        self._by_names: dict[tuple[str, ...], set[tuple[Value | None, ...]]] = {}
        for point in partial:
            names = tuple(sorted(point))
            self._by_names.setdefault(names, set()).add(tuple(point[name] for name in names))

    def hit(self, benchmark: str, given: Given) -> bool:
        """Whether a point is left out."""
        values: Given = {BENCHMARK: benchmark, **given}
        return any(
            all(name in values for name in names) and tuple(values[name] for name in names) in points
            for names, points in self._by_names.items()
        )
