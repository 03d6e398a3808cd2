"""Builds ahead of a run: every program of every environment that points need, each once, whatever becomes of others."""

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
    """What came of one program in one environment. `benchmarks` are those that it measures; `environment` is the error
    that says why where there is none as chosen."""

    benchmarks: tuple[str, ...]
    choice: EnvironmentChoice
    environment: Environment | BuildError
    result: Built | BuildError


def build_helpers(points: Sequence[Point], *, with_profiler: bool = False) -> BuildError | None:
    """Build the helper programs for the ranks of these points, and what is loaded beside them where they are to be
    profiled, or in any case; why that failed, if it did."""
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
    """Build the programs of these points, in their order; `announce` is told the benchmark before a compiler starts.

    Points that this machine refuses are built as well: another node may run them. Settings and variables change no
    build, and what is installed by the site has nothing to build.
    """
    needed: dict[tuple[Path, EnvironmentChoice, bool], dict[str, None]] = {}
    for point in points:
        source = point.benchmark.program.source
        if source is not None:
            has_ranks = point.benchmark.ranks == "mpi"
            choice = replace(
                point.environment, variables=(), mpi_settings=(), mpi=point.environment.mpi if has_ranks else None
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
