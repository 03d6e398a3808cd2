"""Builds ahead of a run: all programs in all environments that a study needs, each once; a failure stops no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from seatrial.engine.environments import Environments
from seatrial.engine.rank_helpers import make_helpers
from seatrial.environments.build import Built, Environment, build
from seatrial.errors import BuildError
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class BuiltAhead:
    """The result for one program in one environment. `benchmarks` are those that it measures; `environment` is an
    error if the chosen environment is not available."""

    benchmarks: tuple[str, ...]
    choice: EnvironmentChoice
    environment: Environment | BuildError
    result: Built | BuildError


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
    affect builds, and programs installed by the site are not built.
    """
    needed: dict[tuple[Path, EnvironmentChoice, bool], dict[str, None]] = {}
    for point in points:
        source = point.benchmark.program.source
        if source is not None:
            has_ranks = point.benchmark.ranks == "mpi"
            choice = replace(
                point.environment,
                variables=(),
                mpi_settings=(),
                mpi=point.environment.mpi if has_ranks else None,
                container=None,
                container_runtime=None,
                container_mpi=None,
                container_mounts=None,
                container_devices=None,
                container_build=None,
                vm=None,
            )
            needed.setdefault((source, choice, has_ranks), {})[point.benchmark.name] = None
    for (source, choice, has_ranks), names in needed.items():
        environment = environments.of(choice, with_mpi=has_ranks)
        result: Built | BuildError
        if isinstance(environment, BuildError):
            result = environment
        else:
            try:
                result = build(environment, source, partial(announce, next(iter(names))))
            except BuildError as problem:
                result = problem
        yield BuiltAhead(tuple(names), choice, environment, result)
