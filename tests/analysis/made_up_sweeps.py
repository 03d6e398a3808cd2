"""Made-up results of a sweep, with repeats and blocks."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import median

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.stats.interval import median_interval


def figure(
    values: Sequence[float],
    name: str = "time",
    better: Better = Better.LOWER,
    point: Mapping[str, Value] | None = None,
    first: int = 0,
) -> FigureResult:
    """A figure with one value for each repeat, numbered from `first`."""
    repeats = tuple(RepeatValue(first + k, first + k, float(k), value) for k, value in enumerate(values))
    unit = "s" if better is Better.LOWER else "B/s"
    return FigureResult(
        name, point or {}, unit, better, "", median(values), median_interval(values), min(values), max(values),
        len(values), None, repeats,
    )  # fmt: skip


def result(
    *figures: FigureResult,
    benchmark: str = "made.up",
    outcome: Outcome | None = None,
    environment: str = "e",
    machine: str = "m",
    **parameters: Value,
) -> ExperimentResult:
    experiment = Experiment(benchmark, parameters, environment, "p", machine)
    return ExperimentResult(experiment.id, experiment, "", outcome or Outcome.ok(), figures)


def noisy(value: float, n: int, noise: float, source: random.Random) -> list[float]:
    return [value * math.exp(source.gauss(0, noise)) for _ in range(n)]
