"""From points to experiments that can run: the environment is found, the programs are built, all before any repeat."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.environments import Environments
from seatrial.engine.events import Listener
from seatrial.engine.kinds import KINDS
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Environment
from seatrial.errors import BuildError
from seatrial.model.benchmark import Benchmark
from seatrial.plan.points import Point


def prepare(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener
) -> tuple[Ready | Refused, ...]:
    """Build every program once, in the order of the points; what cannot be built is refused with its reason."""
    return tuple(
        {item.experiment.id: item for item in prepared_points(points, environments, machine_key, listener)}.values()
    )


def prepared_points(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener, *, builds: bool = True
) -> list[Ready | Refused]:
    """The same, one for each point: two points may come out as one experiment (`auto` and what it stands for).

    Without `builds` only those programs are built that tell what identifies their experiments: none can be run.
    """
    kinds = {declared: kind(environments, machine_key, listener, builds) for declared, kind in KINDS.items()}
    return [kinds[type(point.benchmark.program)].identify(point, point.benchmark.program) for point in points]


def lacking(benchmark: Benchmark, environment: Environment | BuildError) -> str | None:
    """What this machine lacks to have a benchmark's program, for people; None where it has it or can build it."""
    kind = KINDS[type(benchmark.program)]
    return kind.missing(benchmark.program, environment, has_ranks=benchmark.ranks == "mpi")
