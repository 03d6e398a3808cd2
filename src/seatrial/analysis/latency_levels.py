"""The latency of each cache level and of memory: the working sets of `memory.latency` that lie well within one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seatrial.model.beyond_caches import CACHES_TIMES
from seatrial.model.figure_result import FigureResult
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.parameter import whole

_WITHIN = 0.5
"""A set of this share of a cache lies well within it: the rest holds what else the level serves, and pages of 4 KiB
fill a cache that is indexed by physical addresses unevenly."""
_BEYOND = 2.0
"""A set of this multiple of the level below is hardly held by it."""
_SAME_LEVEL = 1.5
"""Within a level, sets that a TLB does not cover take longer; those that miss the level take several times as long."""


@dataclass(frozen=True, slots=True)
class LatencyLevel:
    """One rung of the ladder: `name` is L1, L2, ... or DRAM; `interval` the 95 % one, None below six repeats."""

    name: str
    working_set_B: int
    latency_s: float
    interval: tuple[float, float] | None


def levels(machine: Machine, points: Sequence[FigureResult], cpu: int | None = None) -> tuple[LatencyLevel, ...]:
    """The levels that `points` (figures `load` of one experiment) tell of, from L1 outwards.

    A cache level is told by a set that is at most half of it and at least twice the level below: the largest of those
    that take at most half again as long as the fastest. Memory is told by the largest set of all, if that is four times
    the last-level cache. A level without such a set is left out, and nothing is told of a machine whose caches are
    unknown. `cpu` is the one that loaded; None: the first allowed one.
    """
    sets = sorted(
        ((size, point) for point in points if (size := _working_set_B(point)) is not None), key=lambda entry: entry[0]
    )
    found: list[LatencyLevel] = []
    below_B = 0
    for level, size_B in _data_caches(machine, cpu):
        if level is None or size_B is None:  # what lies beyond does not follow from it
            return tuple(found)
        inside = [entry for entry in sets if below_B * _BEYOND <= entry[0] <= size_B * _WITHIN]
        if inside:
            found.append(_level(f"L{level}", *_plateau(inside)))
        below_B = size_B
    if below_B and sets and sets[-1][0] >= below_B * CACHES_TIMES:
        found.append(_level("DRAM", *sets[-1]))
    return tuple(found)


def _plateau(inside: Sequence[tuple[int, FigureResult]]) -> tuple[int, FigureResult]:
    """The largest set that the level still serves: where others hold part of a shared cache, or a virtual machine gets
    less of it than it is told, larger sets already wait for what lies below."""
    least = min(point.median for _, point in inside)
    return [entry for entry in inside if entry[1].median <= _SAME_LEVEL * least][-1]


def _level(name: str, size_B: int, point: FigureResult) -> LatencyLevel:
    return LatencyLevel(name, size_B, point.median, point.ci95)


def _working_set_B(point: FigureResult) -> int | None:
    size = point.point.get("working_set_B")
    return None if size is None else whole(size)


def _data_caches(machine: Machine, cpu: int | None) -> Iterator[tuple[int | None, int | None]]:
    """(level, size in bytes) of the caches that hold a CPU's data, innermost first; None where it is not reported."""
    if cpu is None:
        cpu = next(iter(machine.allowed_cpus or sorted(machine.pus())), None)
    pu = machine.pus().get(cpu) if cpu is not None else None
    for device in machine.ancestors(pu) if pu is not None else ():
        facts = device.facts
        if device.kind is not DeviceKind.CACHE or facts.text("type") == "instruction":
            continue
        yield facts.integer("level"), facts.integer("size")
