"""Builds ahead of a run: all programs in all environments that a study needs, each once; a failure stops no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from seatrial.engine.prepare import not_in_a_container
from seatrial.environments.build import Built, Environment, build
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import Containers
from seatrial.places.rank_helpers import make_helpers
from seatrial.plan.points import Point


class BuiltAhead(Frozen):
    """The result for one program in one environment. `benchmarks` are those that it measures; `environment` is an
    error if the chosen environment is not available. `container`: that of the environment, if it has one."""

    benchmarks: tuple[str, ...]
    choice: EnvironmentChoice
    environment: Environment | BuildError
    result: Built | BuildError
    container: Contained | None = None


def build_helpers(points: Sequence[Point], *, with_profiler: bool = False) -> BuildError | None:
    """Build the helper programs for the ranks of these points, and the MPI profiler if a point needs it or
    `with_profiler` is set. Returns the error if that fails."""
    try:
        make_helpers(
            for_ranks=any(point.benchmark.ranks == "mpi" for point in points),
            with_profiler=with_profiler or any(point.is_profiled for point in points),
        )
    except BuildError as problem:
        return problem
    return None


def build_points(
    points: Iterable[Point], environments: Environments, announce: Callable[[str], None]
) -> Iterator[BuiltAhead]:
    """Build the programs of these points, in order; `announce` gets the benchmark's name before a compiler starts.

    Points that cannot run on this machine are built too: another node may run them. Settings and variables do not
    affect builds on the host, and programs installed by the site are not built. In the container of a point its program
    also describes itself, which decides where it is built; ranks are not tried.
    """
    needed: dict[tuple[Path, EnvironmentChoice, bool], dict[str, Point]] = {}
    for point in points:
        source = point.benchmark.program.source
        if source is not None and not_in_a_container(point, runs_in_images=False) is None:
            key = (source, _choice(point), point.benchmark.ranks == "mpi")
            needed.setdefault(key, {}).setdefault(point.benchmark.name, point)
    containers = Containers()
    for (source, choice, _), asked in needed.items():
        first = next(iter(asked.values()))
        yield _built(source, replace(first, environment=choice), tuple(asked), environments, containers, announce)


def _choice(point: Point) -> EnvironmentChoice:
    """What of the environment of a point affects the build of its program."""
    choice = replace(point.environment, mpi_settings=(), vm=None)
    if point.benchmark.ranks != "mpi":
        choice = replace(choice, mpi=None, container_mpi=None)
    if _is_in_a_container(point):
        return choice
    return replace(
        choice,
        variables=(),
        container=None,
        container_runtime=None,
        container_mpi=None,
        container_mounts=None,
        container_devices=None,
        container_build=None,
    )


def _is_in_a_container(point: Point) -> bool:
    starts_it = getattr(point.benchmark.program, "starts_containers", False)
    return point.environment.container is not None and not starts_it


def _built(
    source: Path,
    point: Point,
    names: tuple[str, ...],
    environments: Environments,
    containers: Containers,
    announce: Callable[[str], None],
) -> BuiltAhead:
    """One program, in the environment of the point."""
    choice, building = point.environment, partial(announce, names[0])
    environment = environments.of(choice, with_mpi=point.benchmark.ranks == "mpi")
    try:
        if _is_in_a_container(point):
            fitted = containers.without_ranks(
                point, environment, environments.isa, lambda own, start: build(own, source, building, start)
            )
            return BuiltAhead(names, choice, fitted.environment, fitted.built, fitted.container)
        if isinstance(environment, BuildError):
            return BuiltAhead(names, choice, environment, environment)
        return BuiltAhead(names, choice, environment, build(environment, source, building))
    except BuildError as problem:
        return BuiltAhead(names, choice, environment, problem)
