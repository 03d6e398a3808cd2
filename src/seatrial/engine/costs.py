"""What points still cost on this machine: builds that are missing, and repeats."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from seatrial.engine.durations import Durations
from seatrial.engine.events import Silent
from seatrial.engine.prepare import prepared_points
from seatrial.engine.ready import Refused
from seatrial.environments.build import Environment, is_built
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError
from seatrial.model.experiment import Experiment
from seatrial.plan.points import Point
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads

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
        prepared = prepared_points(known, environments, durations.machine_key, Silent(), builds=False)
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
