"""How long experiments and builds took on this machine, and what points still cost.

A file of the user's cache for each machine. It may be removed at any time, and what is not understood in it is ignored:
an estimate is then made of what the benchmarks declare. The latest entries are kept.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import ClassVar, Literal

from msgspec import Struct

from seatrial.engine.listener import Listener
from seatrial.engine.prepare import prepared_points
from seatrial.engine.ready import Refused
from seatrial.environments.build import Environment, is_built
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.json_object import json_of, plain, record_of
from seatrial.model.json_shape import NonNegative, Positive, Text
from seatrial.model.results.record import Experiment, content_key
from seatrial.model.secrets import masked_parameters
from seatrial.plan.points import Point
from seatrial.store.cache import cache_folder, make_folder, own_cache
from seatrial.store.files import write_once
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads

BUILD_S = 8.0
"""A program whose build was never timed."""
START_S = 3.0
"""From the start of a command to its first repeat, without builds, if that was never timed."""

_FOLDER = "durations"
_MOST = 4000
_LONGEST_B = 4 << 20
_MOST_SLOWER = 1.25
_FACTORS = (0.05, 50.0)
"""How far an estimate may be from what the benchmark declares because other parameters were."""


class RepeatTime(Frozen):
    """The mean time of the last repeats of an experiment, and what its benchmark declares."""

    benchmark: Text
    repeat_s: Positive
    declared_s: NonNegative
    at_s: NonNegative


class BuildTime(Frozen):
    """The time to build a program."""

    build_s: NonNegative
    at_s: NonNegative


class DurationsFile(Frozen):
    """The file. Times in seconds, `at_s` since the epoch."""

    v: ClassVar[Literal[1]] = 1
    repeats: Mapping[str, RepeatTime]
    builds: Mapping[str, BuildTime]
    start_s: NonNegative | None


class Durations(Struct):
    """What is known of one machine."""

    machine_key: str
    repeats: dict[str, RepeatTime] = {}
    builds: dict[str, BuildTime] = {}
    own_start_s: float | None = None
    _factors: dict[str, float] | None = None

    @classmethod
    def of(cls, machine_key: str) -> Durations:
        """Those of a machine; none if the file is missing, damaged, or may have been written by somebody else."""
        found = cls(machine_key)
        with suppress(OSError, ValueError, UsageError, BuildError):
            data = own_cache().read(_FOLDER, f"{machine_key}.json")
            if data is not None and len(data) <= _LONGEST_B:
                kept = record_of(DurationsFile, parse_json(data))
                found.repeats, found.builds, found.own_start_s = dict(kept.repeats), dict(kept.builds), kept.start_s
        return found

    def repeat_s(self, point: Point) -> float:
        """The expected time of one repeat, in seconds; 0 if it cannot run. As it was measured with the same parameters,
        else as declared, corrected by how far other parameters of the benchmark were from what is declared."""
        declared_s = point.estimate_s
        if declared_s is None:
            return 0.0
        known = self.repeats.get(_key(point))
        return known.repeat_s if known is not None else declared_s * self._factor(point.benchmark.name)

    def build_s(self, program: str) -> float:
        """The expected time to build a program, in seconds; of an unknown one, as long as the others took."""
        known = self.builds.get(program)
        if known is not None:
            return known.build_s
        return median(one.build_s for one in self.builds.values()) if self.builds else BUILD_S

    @property
    def start_s(self) -> float:
        """The expected time from the start of a command to its first repeat, without builds, in seconds."""
        return START_S if self.own_start_s is None else self.own_start_s

    def _factor(self, benchmark: str) -> float:
        if self._factors is None:
            by_name: dict[str, list[float]] = {}
            for one in self.repeats.values():
                if one.declared_s > 0.0:
                    by_name.setdefault(one.benchmark, []).append(one.repeat_s / one.declared_s)
            low, high = _FACTORS
            self._factors = {name: min(max(median(own), low), high) for name, own in by_name.items()}
        return self._factors.get(benchmark, 1.0)


def learn(
    machine_key: str,
    repeats: Iterable[tuple[Point, float]] = (),
    builds: Mapping[str, float] | None = None,
    start_s: float | None = None,
) -> None:
    """Add the mean times of repeats, the times of builds and the time of a start, in seconds; the oldest entries of a
    full file go. A cache that cannot be written is not an error: the next estimate is less exact."""
    found, now_s = Durations.of(machine_key), time.time()
    for point, repeat_s in repeats:
        if repeat_s > 0.0:
            declared_s = point.estimate_s or 0.0
            found.repeats[_key(point)] = RepeatTime(point.benchmark.name, repeat_s, declared_s, now_s)
    for program, build_s in (builds or {}).items():
        found.builds[program] = BuildTime(build_s, now_s)
    kept = DurationsFile(
        dict(sorted(found.repeats.items(), key=lambda entry: -entry[1].at_s)[:_MOST]),
        dict(sorted(found.builds.items(), key=lambda entry: -entry[1].at_s)[:_MOST]),
        _slower_by_steps(found.own_start_s, start_s),
    )
    with suppress(OSError, UsageError, BuildError):
        make_folder(cache_folder() / _FOLDER)
        write_once(cache_folder(), _FOLDER, f"{machine_key}.json", data=json_of(plain(kept)).encode())


def _slower_by_steps(before_s: float | None, now_s: float | None) -> float | None:
    """The time of a start that is kept: one that other processes slowed down must not make later budgets hold less."""
    if before_s is None or now_s is None:
        return before_s if now_s is None else now_s
    return min(now_s, _MOST_SLOWER * before_s)


def _key(point: Point) -> str:
    there = {"vm": point.environment.vm} if point.environment.vm is not None else {}
    return content_key({"benchmark": point.benchmark.name, "parameters": masked_parameters(point.parameters), **there})


Build = tuple[str, Path]
"""The key of an environment, and the source of a program."""


class MissingBuilds:
    """The programs that must be built for points, and the expected time for each, in seconds."""

    def __init__(self, environments: Environments, durations: Durations) -> None:
        self._environments = environments
        self._durations = durations
        self._are_built: dict[Build, bool] = {}

    def of(self, point: Point) -> Mapping[Build, float]:
        """Those of a point; none if it cannot run."""
        source = point.benchmark.program.source
        if source is None or point.refusal is not None:
            return {}
        environment = self._environments.of(point.environment, with_mpi=point.benchmark.ranks == "mpi")
        if isinstance(environment, BuildError) or self._is_built(environment, source):
            return {}
        return {(environment.key, source): self._durations.build_s(source.stem)}

    def _is_built(self, environment: Environment, source: Path) -> bool:
        key = (environment.key, source)
        if key not in self._are_built:
            self._are_built[key] = is_built(environment, source)
        return self._are_built[key]


class Costs:
    """The expected times of points, in seconds. Nothing is built for them."""

    def __init__(self, points: Sequence[Point], environments: Environments, durations: Durations) -> None:
        self._durations = durations
        self._missing = MissingBuilds(environments, durations)
        self._made: dict[int, tuple[int, float]] = {}
        self.experiments: dict[int, Experiment] = {}
        """By the `id()` of its point; only of points that nothing must be built for to know it."""
        self._refused: set[int] = set()
        known = [point for point in points if not self.builds(point)]
        prepared = prepared_points(known, environments, durations.machine_key, Listener(), builds=False)
        for point, item in zip(known, prepared, strict=True):
            self.experiments[id(point)] = item.experiment
            if isinstance(item, Refused):
                self._refused.add(id(point))

    def count_recorded(self, folder: ResultsFolder) -> None:
        """Take the recorded repeats off."""
        heads = read_heads(folder, {experiment.id for experiment in self.experiments.values()})
        for key, experiment in self.experiments.items():
            own = [head.wall_s for head in heads[experiment.id] if head.outcome.is_ok]
            if own:
                self._made[key] = (len(own), sum(own) / len(own))

    def builds(self, point: Point) -> Mapping[Build, float]:
        """The programs that must be built for a point, and the time for each."""
        return self._missing.of(point)

    def repeats_s(self, point: Point, minimum: int) -> float:
        """The time of the repeats that are missing up to the minimum; 0 if it cannot run."""
        if id(point) in self._refused:
            return 0.0
        made, repeat_s = self._made.get(id(point), (0, self._durations.repeat_s(point)))
        return max(0, minimum - made) * repeat_s

    def total_s(self, points: Iterable[Point], minimum: int, built: Container[Build]) -> float:
        """The time of the missing builds, but for those in `built`, and repeats of these points."""
        builds: dict[Build, float] = {}
        repeats_s = 0.0
        for point in points:
            builds |= self.builds(point)
            repeats_s += self.repeats_s(point, minimum)
        return repeats_s + sum(seconds for build, seconds in builds.items() if build not in built)
