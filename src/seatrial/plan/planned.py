"""A study with its experiments before anything runs: the expected time, and what is compared with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import NonNegative, OneOrMore, Positive, Text, key, published
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import SYSTEM, Study
from seatrial.plan.points import Point, SameSides, compared_points
from seatrial.stats import interval, sequential
from seatrial.stats.interval import LOOKS, MINIMUM_REPEATS, StoppingRule


class PlannedExperiment(Frozen):
    """One experiment of a plan. `id` is the one that a run uses; `refusal` is the reason if it cannot run here;
    `expected_s` is the time of a repeat as this machine took it, in seconds (None: as the benchmark declares it).
    `is_open`: it would run on other nodes, and may run there although it cannot here."""

    point: Point
    experiment: Experiment
    id: str
    refusal: Outcome | None
    expected_s: float | None = None
    is_open: bool = False

    @property
    def may_run(self) -> bool:
        """Whether it can run here, or may where it would."""
        return self.refusal is None or self.is_open

    @property
    def repeat_s(self) -> float:
        """The expected time of one repeat, in seconds; 0 if it cannot run here."""
        if self.refusal is not None:
            return 0.0
        return self.point.estimate_s or 0.0 if self.expected_s is None else self.expected_s


@published("Linked")
class LinkedProgram(Frozen):
    """An installed program, and the MPI library that it is linked with."""

    benchmark: str
    program: Annotated[Text, "its path"]
    library: Annotated[Text, "the name in the program's file"]
    path: Annotated[str, "where the loader finds the library; empty: it does not"]
    mpi: Annotated[str | None, "its name in environment.mpi; null: not a known library"]


class PlannedStudy(Frozen, dict=True):
    """The experiments in the order of the study, each once.

    `combinations` is the number that the axes make; several may resolve to the same experiment. `same` are the sides of
    comparisons that do. `linked` are the installed programs with MPI. `build_s` is the time to build what is missing.
    """

    study: Study
    points: tuple[Point, ...]
    experiments: tuple[PlannedExperiment, ...]
    combinations: int
    same: tuple[SameSides, ...] = ()
    linked: tuple[LinkedProgram, ...] = ()
    build_s: float = 0.0

    @property
    def first_look(self) -> int:
        """Repeats of an experiment before the first test whether they are enough: at least what an interval needs, at
        most what the study allows."""
        compare = self.study.compare
        is_interleaved = compare is not None and compare.along != SYSTEM
        first = sequential.LOOKS[0] if is_interleaved else interval.LOOKS[0]
        return max(MINIMUM_REPEATS, min(first, self.study.repeat.maximum))

    @cached_property
    def round_s(self) -> float:
        """The expected time of one repeat of each experiment, in seconds."""
        return sum(experiment.repeat_s for experiment in self.experiments)

    @property
    def least_s(self) -> float:
        """The expected time, in seconds, of the repeats that an interval needs, whatever the budget."""
        return MINIMUM_REPEATS * self.round_s

    @property
    def estimate_s(self) -> float:
        """The expected time, in seconds: every experiment up to the first planned look, at most the budget. If
        figures are not precise enough or comparisons undecided by then, the study continues up to the budget."""
        return min(self.first_look * self.round_s, self.study.repeat.budget_s)

    @property
    def affordable(self) -> int:
        """Repeats of each experiment that fit into the budget."""
        if self.round_s == 0:
            return self.study.repeat.maximum
        return min(int(self.study.repeat.budget_s / self.round_s), self.study.repeat.maximum)

    @property
    def is_short_of_time(self) -> bool:
        """Whether the budget is too small for the repeats that an interval needs."""
        return self.least_s > self.study.repeat.budget_s

    @cached_property
    def compared(self) -> tuple[tuple[PlannedExperiment, ...], ...]:
        """The groups to compare, the baseline first, without experiments that cannot run here."""
        by_point = {id(experiment.point): experiment for experiment in self.experiments}
        groups = (
            [by_point[id(point)] for point in group if id(point) in by_point]
            for group in compared_points(self.study, self.points)
        )
        running = ([item for item in group if item.may_run] for group in groups if group)
        return tuple(tuple(group) for group in running if len(group) > 1 and self._is_baseline(group[0]))

    def _is_baseline(self, experiment: PlannedExperiment) -> bool:
        """Whether an experiment is at the baseline value of the comparison."""
        compare = self.study.compare
        return compare is not None and experiment.point.given.get(compare.along) == compare.baseline


def joined_plans(study: Study, parts: Sequence[PlannedStudy]) -> PlannedStudy:
    """The plan of a study from those of its parts, each on its own system."""
    return PlannedStudy(
        study,
        tuple(point for part in parts for point in part.points),
        tuple(experiment for part in parts for experiment in part.experiments),
        sum(part.combinations for part in parts),
        linked=tuple(dict.fromkeys(linked for part in parts for linked in part.linked)),
        build_s=sum(part.build_s for part in parts),
    )


class PlannedTrial(Frozen):
    """The experiments of the standard trial, or of benchmarks (`is_named`), each once. `rule` stops each; `build_s` is
    the time to build what is missing, `budget_s` that of all (None: no limit), in seconds."""

    experiments: tuple[PlannedExperiment, ...]
    rule: StoppingRule
    build_s: float = 0.0
    is_named: bool = False
    budget_s: float | None = None

    def estimate_of(self, experiment: PlannedExperiment) -> float:
        """The time until an experiment stops at the first look, in seconds, if it is precise then."""
        return self._until(LOOKS[0], experiment)

    def most_of(self, experiment: PlannedExperiment) -> float:
        """The time if it is never precise: to the end of its budget or the maximum of repeats, in seconds."""
        return self._until(self.rule.maximum, experiment)

    @property
    def estimate_s(self) -> float:
        """The expected time of all repeats, in seconds."""
        return self._within(sum(map(self.estimate_of, self.experiments)))

    @property
    def most_s(self) -> float:
        """The longest expected time of all repeats, in seconds."""
        return self._within(sum(map(self.most_of, self.experiments)))

    def _within(self, time_s: float) -> float:
        return time_s if self.budget_s is None else min(time_s, self.budget_s)

    def _until(self, repeats: int, experiment: PlannedExperiment) -> float:
        least_s = self.rule.minimum * experiment.repeat_s
        return max(least_s, min(repeats * experiment.repeat_s, self.rule.budget_s))


@published("Job")
class PlannedJob(Frozen):
    """One job of a batch system."""

    system: Annotated[str, "where it is submitted to: NAME:PARTITION"]
    benchmarks: tuple[str, ...]
    nodes: OneOrMore
    expected_s: Annotated[NonNegative, "its time with few repeats"]
    limit_s: Annotated[Positive, "its time limit"]
    script: Annotated[str, "what is submitted, with JOB in place of the job's id"]

    @property
    @key
    def node_hours(self) -> NonNegative:
        """What it takes at most."""
        return self.nodes * self.limit_s / 3600.0


class PlannedJobs(Frozen):
    """All jobs of a command, and where they would go (`NAME:PARTITION`, several joined by commas).
    `machine_is_of_nodes`: the plan is for machines that earlier jobs found there; else for the one that the plan was
    made on."""

    system: str
    jobs: tuple[PlannedJob, ...]
    machine_is_of_nodes: bool

    @property
    def node_hours(self) -> float:
        """What all take at most."""
        return sum(job.node_hours for job in self.jobs)


def by_importance(points: Sequence[Point], least_s: Callable[[Point], float]) -> list[Point]:
    """Breadth first: the first point of each benchmark before the second of any. Benchmarks with a figure that others
    are compared with (a role, such as memory bandwidth) come first, of those alike the shorter, by the time `least_s`
    in seconds."""
    seen: Counter[str] = Counter()
    keys = {}
    for point in points:
        has_role = any(figure.role is not None for figure in point.benchmark.figures)
        keys[id(point)] = (seen[point.benchmark.name], not has_role, least_s(point))
        seen[point.benchmark.name] += 1
    return sorted(points, key=lambda point: keys[id(point)])
