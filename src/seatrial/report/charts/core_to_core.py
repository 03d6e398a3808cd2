"""The time of a cache line between CPUs: a matrix, folded where there are many, and where the slow pairs are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import cpu_list, show, show_range
from seatrial.model.units import Unit
from seatrial.report.blocks import Cell, Cells, Svg, Table, headings, right
from seatrial.report.charts import heat
from seatrial.report.charts.vega import cpu_pair
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells

Pair = tuple[int, int]


class Distance(Frozen, order=True):
    """The distance of two CPUs, by the innermost part that contains both; a smaller rank is nearer.

    `name` is that part: "one L3 cache", "the machine only".
    """

    rank: int
    name: str


_OF_KIND = {
    DeviceKind.CORE: Distance(0, "one core"),
    DeviceKind.NUMA: Distance(20, "one NUMA node"),
    DeviceKind.PACKAGE: Distance(30, "one package"),
}
PACKAGES = Distance(40, "the machine only")
UNKNOWN = Distance(50, "an unknown part")
_CACHE_RANK = 10


class AtDistance(Frozen):
    """All pairs at one distance: their times in seconds, ascending, and the number of possible pairs."""

    distance: Distance
    times_s: tuple[float, ...]
    possible: int

    @property
    def median_s(self) -> float:
        """The median over pairs."""
        return median(self.times_s)


class CorePairs(Frozen):
    """One experiment. `cpus` are ordered by location; `boundaries` maps a position to the distance across it."""

    cpus: tuple[int, ...]
    figures: Mapping[Pair, FigureResult]
    distances: Mapping[Pair, Distance]
    """Of the measured pairs."""
    by_distance: tuple[AtDistance, ...]
    """The measured distances, the nearest first."""
    boundaries: Mapping[int, Distance]
    package_starts: Mapping[int, str]
    """Position of the first CPU of each package -> the package's number or name."""

    @property
    def possible_pairs(self) -> int:
        """The number of pairs of these CPUs."""
        return len(self.cpus) * (len(self.cpus) - 1) // 2


def core_pairs(machine: Machine, figures: Sequence[FigureResult]) -> CorePairs | None:
    """The pairs among the figures of one experiment; None if there are none."""
    found = {pair: figure for figure in figures if (pair := cpu_pair(figure)) is not None and pair[0] != pair[1]}
    if not found:
        return None
    places = _Places(machine)
    cpus = tuple(sorted(_cpus(machine, {cpu for pair in found for cpu in pair}), key=places.order))
    distances = {pair: places.distance(*pair) for pair in found}
    possible = Counter(places.distance(a, b) for a, b in combinations(cpus, 2))
    times = grouped((distances[pair], figure.median) for pair, figure in found.items())
    by_distance = tuple(AtDistance(far, tuple(sorted(times[far])), possible[far]) for far in sorted(times))
    edges = {n: places.distance(a, b) for n, (a, b) in enumerate(pairwise(cpus), start=1)}
    boundaries = {n: far for n, far in edges.items() if far.rank > _CACHE_RANK + 9 and far != UNKNOWN}
    return CorePairs(cpus, found, distances, by_distance, boundaries, _package_starts(machine, cpus))


def _cpus(machine: Machine, measured: set[int]) -> set[int]:
    """The measured CPUs, and the cores that were left out if at least half of the machine's cores were sampled."""
    cores = set(machine.cpus_one_per_core)
    return cores if measured <= cores and 2 * len(measured) >= len(cores) else measured


class _Places:
    """The location of CPUs in the tree of the machine; looked up once for each CPU."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._position = {device.id: n for n, device in enumerate(machine.devices)}
        self._branches: dict[int, tuple[Device, ...]] = {}

    def branch(self, cpu: int) -> tuple[Device, ...]:
        """The parts that contain a CPU, from the outside in; empty if no source describes it."""
        if cpu not in self._branches:
            pu = self._machine.pus.get(cpu)
            above = () if pu is None else tuple(self._machine.ancestors(pu))
            self._branches[cpu] = () if pu is None else (*reversed(above), pu)
        return self._branches[cpu]

    def order(self, cpu: int) -> tuple[bool, list[int], int]:
        """Sorts neighbours in the machine next to each other; CPUs that no source describes come last."""
        branch = self.branch(cpu)
        return not branch, [self._position[device.id] for device in branch], cpu

    def _shared(self, a: int, b: int) -> Device | None:
        """The innermost device that contains both CPUs, or None."""
        innermost = None
        for one, other in zip(self.branch(a), self.branch(b), strict=False):
            if one.id != other.id:
                break
            innermost = one
        return innermost

    def distance(self, a: int, b: int) -> Distance:
        if not self.branch(a) or not self.branch(b):
            return UNKNOWN
        device = self._shared(a, b)
        if device is None:
            return PACKAGES
        if device.kind is DeviceKind.CACHE:
            level = device.facts.integer("level") or 0
            return Distance(_CACHE_RANK + min(max(level, 0), 9), f"one L{level} cache" if level else "one cache")
        return _OF_KIND.get(device.kind, PACKAGES)


def _package_starts(machine: Machine, cpus: Sequence[int]) -> dict[int, str]:
    numbers = {package.id: n for n, package in enumerate(machine.of_kind(DeviceKind.PACKAGE))}
    starts: dict[int, str] = {}
    last: str | None = None
    for position, cpu in enumerate(cpus):
        package = machine.package_of(cpu)
        if package is not None and package.id != last:
            starts[position] = f"package {numbers[package.id]}"
        last = package.id if package is not None else None
    return starts


_LEAST_MARK = 5.0
_LONGEST_LABEL = 11
_BORDER = {40: "border-package", 30: "border-node"}


class CoreToCore(Frozen):
    """One experiment on the page. `picture` is None for two CPUs, whose only time is given as a sentence."""

    title: str
    said: str
    picture: Svg | None
    by_distance: Table
    numbers: Table


def core_to_core(view: TrialView, benchmark: BenchmarkView) -> Iterator[CoreToCore]:
    """One for each experiment that measured pairs of CPUs."""
    for result in benchmark.results:
        by_unit = grouped(((figure.name, figure.unit), figure) for figure in result.figures)
        for (name, unit), figures in by_unit.items():
            pairs = core_pairs(view.trial.machine, figures)
            if pairs is None:
                continue
            title = f"{benchmark.labels[result.id]}: {name} between CPUs"
            said = in_words(pairs, unit)
            ident = view.anchor(f"pairs-{result.id}-{name}")
            picture = _picture(pairs, unit, ident, title, said) if len(pairs.cpus) > 2 else None
            yield CoreToCore(title, said, picture, _by_distance(pairs, unit), _numbers(pairs))


def in_words(pairs: CorePairs, unit: Unit) -> str:
    """The content of the picture as sentences."""
    if len(pairs.figures) == 1:
        ((a, b), figure), *_ = pairs.figures.items()
        interval = f" (95 % interval {show_range(*figure.ci95, unit, beside=figure.median)})" if figure.ci95 else ""
        return f"CPU {a} and CPU {b}: {show(figure.median, unit)}{interval}. They share: {pairs.distances[a, b].name}."
    measured = {frozenset(pair) for pair in pairs.figures}
    near, far = pairs.by_distance[0], pairs.by_distance[-1]
    times = f"Median {show(near.median_s, unit)} between CPUs that share {near.distance.name}"
    if far is not near:
        ratio = far.median_s / near.median_s
        times += f", {show(far.median_s, unit)} ({ratio:.1f} times that) where they share {far.distance.name}"
    return f"{times}. {len(measured)} of the {pairs.possible_pairs} pairs of {len(pairs.cpus)} CPUs were measured."


def _picture(pairs: CorePairs, unit: Unit, ident: str, title: str, said: str) -> Svg:
    matrix = heat.HeatMatrix(_values(pairs), len(pairs.cpus), unit, "lower is better", _LEAST_MARK)
    marks = [*_borders(pairs, matrix.side, matrix.edge), *_labels(pairs, matrix.side)]
    return matrix.drawn(ident, title, f"{said} {_distances_in_words(pairs, unit, matrix.scale)}", marks)


def _values(pairs: CorePairs) -> dict[heat.Place, float]:
    """(row, column) -> seconds; a pair that was measured in one direction is on both sides of the diagonal."""
    position = {cpu: n for n, cpu in enumerate(pairs.cpus)}
    medians = {(position[a], position[b]): figure.median for (a, b), figure in pairs.figures.items()}
    return {(b, a): value for (a, b), value in medians.items()} | medians


def _borders(pairs: CorePairs, side: float, whole: float) -> Iterator[str]:
    for position, distance in sorted(pairs.boundaries.items(), key=lambda edge: edge[1].rank):
        kind = _BORDER.get(distance.rank, "border-cache")
        line = heat.across(position * side, whole)
        if kind == "border-package":  # a light rim keeps it visible between dark cells
            yield f'<path class="border-rim" {line}/>'
        yield f'<path class="{kind}" {line}/>'


def _labels(pairs: CorePairs, side: float) -> Iterator[str]:
    """The CPU number at each row and column if it fits, else CPU ranges at each group; packages on top."""
    if side >= heat.CELL_WITH_LABEL:
        for n, cpu in enumerate(pairs.cpus):
            yield heat.text(-6, (n + 0.5) * side + 4, str(cpu), "tick", "end")
            if side >= heat.CELL_WITH_LABEL + 6:
                yield heat.text((n + 0.5) * side, -6, str(cpu), "tick")
    else:
        for start, end in pairwise(sorted({0, *pairs.boundaries, len(pairs.cpus)})):
            if (end - start) * side >= heat.CELL_WITH_LABEL:
                run = cpu_list(sorted(pairs.cpus[start:end]))
                shown = run if len(run) < _LONGEST_LABEL else f"{pairs.cpus[start]} .. {pairs.cpus[end - 1]}"
                yield heat.text(-6, (start + end) / 2 * side + 4, shown, "tick", "end")
    for start, end in pairwise([*sorted(pairs.package_starts), len(pairs.cpus)]):
        if (end - start) * side > 70:
            yield heat.text((start + end) / 2 * side, -22, pairs.package_starts[start], "tick")
    yield heat.text(-6, -6, "CPU", "tick", "end")


def _distances_in_words(pairs: CorePairs, unit: Unit, scale: heat.HeatScale) -> str:
    medians = ", ".join(f"{at.distance.name} {show(at.median_s, unit)}" for at in pairs.by_distance)
    colours = f"{scale.spelled(scale.bounds[0])} to {show(scale.bounds[-1], unit)}"
    return f"Medians by distance: {medians}. Colours from {colours}"


def _by_distance(pairs: CorePairs, unit: Unit) -> Table:
    rows: list[Cells] = []
    for at in pairs.by_distance:
        pairs_here = len({frozenset(pair) for pair, far in pairs.distances.items() if far == at.distance})
        times = show_range(at.times_s[0], at.times_s[-1], unit) if len(at.times_s) > 1 else "one pair"
        rows.append([at.distance.name, f"{pairs_here} of {at.possible}", Cell.amount(at.median_s, unit), times])
    columns = headings("What the two CPUs share", *right("Pairs measured", "Median", "Range over pairs"))
    return Table.of("By distance", columns, rows)


def _numbers(pairs: CorePairs) -> Table:
    position = {cpu: n for n, cpu in enumerate(pairs.cpus)}
    in_order = sorted(pairs.figures, key=lambda pair: (position[pair[0]], position[pair[1]]))
    rows = [(str(a), str(b), pairs.distances[a, b].name, *median_cells(pairs.figures[a, b])) for a, b in in_order]
    return Table.of("All measured pairs", [*right("CPU", "CPU"), "What they share", *MEDIAN_COLUMNS], rows)
