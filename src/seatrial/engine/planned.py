"""The experiments behind points, for plans: the same ids that a run will use, with nothing measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.engine.costs import MissingBuilds
from seatrial.engine.durations import Durations
from seatrial.engine.environments import Environments
from seatrial.engine.events import Silent
from seatrial.engine.prepare import prepared_points
from seatrial.engine.ready import Refused
from seatrial.model.experiment import Experiment
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Machine
from seatrial.model.machine_identity import machine_identity
from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point


class ExpectedTimes(Frozen):
    """What points are expected to take on this machine, in seconds: `repeat_s` is the time of a repeat by the `id()` of
    its point, `build_s` that of all missing builds together."""

    repeat_s: Mapping[int, float]
    build_s: float


def expected_times(points: Sequence[Point], machine: Machine) -> ExpectedTimes:
    """From what this machine took before, else from what the benchmarks declare. Nothing is built."""
    durations = Durations.of(machine_identity(machine)[:16])
    missing = MissingBuilds(Environments(machine), durations)
    builds = {build: seconds for point in points for build, seconds in missing.of(point).items()}
    return ExpectedTimes({id(point): durations.repeat_s(point) for point in points}, sum(builds.values()))


def planned_experiments(
    points: Sequence[Point], machine: Machine
) -> tuple[tuple[Point, Experiment, Outcome | None], ...]:
    """(point, experiment, why it cannot run) for each point, in their order.

    A program is built only if it loads a library (cpu.gemm) and is not in the cache: the library is part of the
    experiment's identity, and only the program can report it.
    """
    key = machine_identity(machine)[:16]
    prepared = prepared_points(points, Environments(machine), key, Silent(), builds=False)
    return tuple(
        (point, item.experiment, item.outcome if isinstance(item, Refused) else None)
        for point, item in zip(points, prepared, strict=True)
    )
