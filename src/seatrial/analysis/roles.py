"""Figures among results by their role (declared in benchmark.py), and what follows from these: measured ceilings, which
are the best rate of another experiment on the machine and used if the physical limit is unknown; the latency of each
cache level and of memory, from working sets of `memory.latency` well within one level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from seatrial.benchmarks import declared_figure, registry
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Benchmark, Ceiling, HostCopies, Role
from seatrial.model.benchmark.parameter import CACHES_TIMES, Params, whole
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, share_of
from seatrial.model.results.record import limiting
from seatrial.model.units import si_unit

Source = tuple[ExperimentResult, FigureResult]


def role_of(result: ExperimentResult, figure: FigureResult) -> Role | HostCopies | None:
    """The role of a figure of a result; None if its benchmark declares none."""
    declared = declared_figure(result.experiment.benchmark, figure.name)
    return declared.role if declared is not None else None


def figures_with(results: Iterable[ExperimentResult], *roles: Role) -> Iterator[Source]:
    """The figures with one of these roles, each with its experiment, in the order of the results."""
    for result in results:
        for figure in result.figures:
            if role_of(result, figure) in roles:
                yield result, figure


def is_of_devices(result: ExperimentResult) -> bool:
    """Whether an experiment ran on GPUs, or on CPUs used as devices."""
    benchmark = registry().get(result.experiment.benchmark)
    return benchmark is not None and benchmark.program.uses_devices


def with_ceilings(
    benchmark: Benchmark, result: ExperimentResult, others: Sequence[ExperimentResult]
) -> ExperimentResult:
    """The same result with a measured ceiling on each figure whose physical limit is unknown and that declares one."""
    figures = tuple(_with_ceiling(benchmark, result, figure, others) for figure in result.figures)
    return replace(result, figures=figures)


def _with_ceiling(
    benchmark: Benchmark, result: ExperimentResult, figure: FigureResult, others: Sequence[ExperimentResult]
) -> FigureResult:
    declared = benchmark.figure(figure.name)
    if declared.ceiling is None or (figure.limit is not None and figure.limit.value is not None):
        return figure
    try:
        found = declared.ceiling(limiting(declared, result.experiment.parameters))
    except UNREADABLE:  # parameters are missing: the experiment is of another version, or was changed
        return figure
    ceilings = (found,) if isinstance(found, Ceiling) else found or ()
    limits = [
        limit
        for ceiling in ceilings
        if (limit := _measured(ceiling, figure, result, others)) is not None and limit.value is not None
    ]
    if not limits:
        return figure
    limit = min(limits, key=lambda limit: limit.value or 0.0)
    share = share_of(figure.median, limit, figure.better)
    # The factor already refers to counted work: all of such a ceiling is attainable.
    return replace(figure, limit=limit, fraction_of_limit=share, attainable=ALL_OF_IT)


def _measured(
    ceiling: Ceiling, figure: FigureResult, result: ExperimentResult, others: Sequence[ExperimentResult]
) -> Limit | None:
    """What the best of the selected figures allows; None if there is none."""
    parameters = result.experiment.parameters
    sources = [
        (other_figure.median, other.experiment.benchmark)
        for other, other_figure in figures_with(others, *ceiling.roles)
        if _is_source(ceiling, parameters, result, other)
    ]
    if not sources:
        return None
    rate, source = max(sources)
    derivation = ceiling.derivation.replace("{benchmark}", source)
    return Limit(rate * ceiling.factor, si_unit(figure.unit), derivation, Basis.MEASURED)


def _is_source(ceiling: Ceiling, parameters: Params, result: ExperimentResult, other: ExperimentResult) -> bool:
    """Whether `other` is from the same machine, with the parameters of `result` except those that the ceiling
    states."""
    known = other.experiment.parameters
    wanted = {**{name: value for name, value in parameters.items() if name in known}, **ceiling.parameters}
    wanted |= {name: known[name] for name in ceiling.ignored if name in known}
    return other.experiment.machine == result.experiment.machine and dict(other.experiment.parameters) == wanted


_WITHIN = 0.5
"""A set of at most this share of a cache is well within it: the cache also holds other data, and 4 KiB pages fill a
physically indexed cache unevenly."""
_BEYOND = 2.0
"""A set of this multiple of the level below hardly fits in it."""
_SAME_LEVEL = 1.5
"""Within a level, sets that a TLB does not cover take longer; those that miss the level take several times as long."""


class LatencyLevel(Frozen):
    """One level: `name` is L1, L2, ... or DRAM; `interval` the 95 % one, None below six repeats."""

    name: str
    working_set_B: int
    latency_s: float
    interval: tuple[float, float] | None


def levels(machine: Machine, points: Sequence[FigureResult], cpu: int | None = None) -> tuple[LatencyLevel, ...]:
    """The levels that `points` (figures `load` of one experiment) measure, from L1 outwards.

    A cache level is represented by a set that is at most half of it and at least twice the level below: the largest of
    those at most 1.5 times as slow as the fastest. Memory is represented by the largest set of all, if at least four
    times the last-level cache. A level without such a set is omitted; empty if the caches are unknown. `cpu` is the one
    that measured; None: the first allowed one.
    """
    sizes = ((point.point.get("working_set_B"), point) for point in points)
    sets = sorted(((whole(size), point) for size, point in sizes if size is not None), key=lambda entry: entry[0])
    found: list[LatencyLevel] = []
    below_B = 0
    for level, size_B in _data_caches(machine, cpu):
        if level is None or size_B is None:  # outer levels cannot be determined
            return tuple(found)
        inside = [entry for entry in sets if below_B * _BEYOND <= entry[0] <= size_B * _WITHIN]
        if inside:
            size, point = _plateau(inside)
            found.append(LatencyLevel(f"L{level}", size, point.median, point.ci95))
        below_B = size_B
    if below_B and sets and sets[-1][0] >= below_B * CACHES_TIMES:
        size, point = sets[-1]
        found.append(LatencyLevel("DRAM", size, point.median, point.ci95))
    return tuple(found)


def _plateau(inside: Sequence[tuple[int, FigureResult]]) -> tuple[int, FigureResult]:
    """The largest set that the level still serves: if others use part of a shared cache, or a virtual machine gets less
    of it than reported, larger sets are slower."""
    least = min(point.median for _, point in inside)
    return [entry for entry in inside if entry[1].median <= _SAME_LEVEL * least][-1]


def _data_caches(machine: Machine, cpu: int | None) -> Iterator[tuple[int | None, int | None]]:
    """(level, size in bytes) of the caches that hold a CPU's data, innermost first; None if not reported."""
    if cpu is None:
        cpu = next(iter(machine.allowed_cpus or sorted(machine.pus)), None)
    pu = machine.pus.get(cpu) if cpu is not None else None
    for device in machine.ancestors(pu) if pu is not None else ():
        facts = device.facts
        if device.kind is not DeviceKind.CACHE or facts.text("type") == "instruction":
            continue
        yield facts.integer("level"), facts.integer("size")
