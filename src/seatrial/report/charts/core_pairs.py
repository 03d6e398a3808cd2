"""Times between pairs of CPUs, sorted by the location of the CPUs: the data of the core-to-core chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median

from seatrial.model.figure_result import FigureResult
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Device, DeviceKind, Machine
from seatrial.report.charts.shapes import cpu_pair

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
    times: dict[Distance, list[float]] = {}
    for pair, figure in found.items():
        times.setdefault(distances[pair], []).append(figure.median)
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
