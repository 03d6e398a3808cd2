"""From a study's points to groups: experiments to be compared are measured side by side, on one budget. Of a trial or
study on a budget for the whole command, what fits is decided before anything is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from seatrial.engine.durations import Build, Costs, Durations
from seatrial.engine.engine import StudyWork
from seatrial.engine.listener import BudgetFit, PreparedItem
from seatrial.engine.policy import ComparedBlocks, Pooled
from seatrial.engine.pool import Clock, Pool
from seatrial.engine.prepare import Preparation
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.chosen import Environments
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import NO_TIME, Outcome
from seatrial.model.secrets import masked_parameters
from seatrial.model.study.study import SYSTEM, Compare, Study
from seatrial.model.units import duration
from seatrial.plan.planned import by_importance
from seatrial.plan.points import Point, compared_points
from seatrial.stats.interval import MINIMUM_REPEATS, least_repeats
from seatrial.stats.sequential import ALPHA, least_blocks
from seatrial.store.folder import ResultsFolder


def study_work(study: Study, prepared: Sequence[Ready | Refused], pool: Pool | None = None) -> list[StudyWork]:
    """The groups of a study, with one policy per benchmark, since each has its own family of comparisons. `pool` is
    their time (default: the budget of the study, for repeats only).

    With `compare`, points that differ only along that axis form a group, the baseline first. Without, each experiment
    is a separate group: their numbers of repeats then differ by at most one. So they are where systems are compared:
    those cannot be measured side by side.
    """
    pool = pool or Pool(study.repeat.budget_s)
    if study.compare is None or study.compare.along == SYSTEM:
        alone = _unique(prepared)
        policy = Pooled(pool, study.repeat.precision, study.repeat.maximum, minimum=least_alone(study, len(alone)))
        return [StudyWork(tuple((ready,) for ready in alone), policy, study.name)]
    by_benchmark: dict[str, dict[tuple[object, ...], list[Ready]]] = {}
    for item in prepared:
        groups = by_benchmark.setdefault(item.point.benchmark.name, {})
        if isinstance(item, Ready):
            groups.setdefault(study.place(item.point.given, study.compare.along), []).append(item)
    work = []
    for groups in by_benchmark.values():
        compared = [_baseline_first(_unique(group), study.compare) for group in groups.values()]
        family = family_of(compared)
        policy = ComparedBlocks(
            pool,
            study.repeat.precision,
            study.repeat.maximum,
            study.compare.margin,
            family,
            frozenset(study.compare.figures),
            study.compare.asks_equivalence,
            minimum=least_blocks(family),
        )
        work.append(StudyWork(tuple(compared), policy, study.name))
    return work


def family_of(groups: Iterable[Sequence[object]]) -> int:
    """The comparisons of one figure in these groups, each with its baseline; at least 1."""
    return max(1, sum(len(group) - 1 for group in groups))


def least_alone(study: Study, experiments: int) -> int:
    """The repeats that each experiment needs before it may stop: enough to test the contenders of a sweep against the
    winner. The sweep of one point of the other axes has at most all experiments."""
    if study.best_of is None or experiments < 2:
        return MINIMUM_REPEATS
    return least_repeats(ALPHA / (experiments - 1), is_paired=True)


def _unique(items: Iterable[Ready | Refused]) -> tuple[Ready, ...]:
    """Each experiment that can run, once: two points may resolve to the same one."""
    found: dict[str, Ready] = {}
    for item in items:
        if isinstance(item, Ready):
            found.setdefault(item.experiment.id, item)
    return tuple(found.values())


def _baseline_first(group: tuple[Ready, ...], compare: Compare) -> tuple[Ready, ...]:
    return tuple(sorted(group, key=lambda item: item.point.given.get(compare.along) != compare.baseline))


class WantedWork(Frozen):
    """Points that are only worth measuring together, and the repeats that each needs at least."""

    points: tuple[Point, ...]
    minimum: int


def wanted_of_trial(points: Sequence[Point], costs: Costs) -> list[WantedWork]:
    """Each point alone, the most important first."""
    ordered = by_importance(points, lambda point: costs.total_s([point], MINIMUM_REPEATS, set()))
    return [WantedWork((point,), MINIMUM_REPEATS) for point in ordered]


def wanted_of_targets(points: Sequence[Point]) -> list[WantedWork]:
    """Each point alone, in the order in which the user named them."""
    return [WantedWork((point,), MINIMUM_REPEATS) for point in points]


def wanted_of_study(study: Study, points: Sequence[Point]) -> list[WantedWork]:
    """The sides of a comparison together, in the order of the study, with the blocks that an interval of the family
    needs; other points alone."""
    if study.compare is None:
        least = least_alone(study, len(points))
        return [WantedWork((point,), least) for point in points]
    groups = compared_points(study, points)
    by_benchmark: dict[str, list[tuple[Point, ...]]] = {}
    for group in groups:
        by_benchmark.setdefault(group[0].benchmark.name, []).append(group)
    least_of = {name: least_blocks(family_of(own)) for name, own in by_benchmark.items()}
    compared = {id(point) for group in groups for point in group}
    alone = [WantedWork((point,), MINIMUM_REPEATS) for point in points if id(point) not in compared]
    return [*(WantedWork(group, least_of[group[0].benchmark.name]) for group in groups), *alone]


def fit_of(
    wanted: Sequence[WantedWork], costs: Costs, budget_s: float, start_s: float, *, must_have_all: bool, needs_one: bool
) -> BudgetFit:
    """What fits into a budget, in seconds, of which `start_s` are needed before the first repeat.

    Each is taken, in order, if it fits beside those before it; a shorter one may fit where a longer does not. With
    `must_have_all` nothing is left out; with `needs_one`, nothing is if not one of them fits.
    """
    taken, left_out = [], []
    needed_s = all_s = start_s
    built: set[Build] = set()
    all_builds: dict[Build, float] = {}
    for one in wanted:
        all_s += costs.total_s(one.points, one.minimum, all_builds.keys())
        all_builds |= _builds(one, costs)
        least_s = costs.total_s(one.points, one.minimum, built)
        if least_s == 0.0 or needed_s + least_s <= budget_s:
            needed_s += least_s
            built |= _builds(one, costs).keys()
            taken.append(PreparedItem(one.points, one.minimum, least_s))
        else:
            left_out.append(PreparedItem(one.points, one.minimum, least_s))
    builds_s = sum(all_builds.values())
    is_empty = not any(item.least_s for item in taken)
    if left_out and (must_have_all or (needs_one and is_empty)):
        everything = tuple(
            PreparedItem(one.points, one.minimum, costs.total_s(one.points, one.minimum, set())) for one in wanted
        )
        return BudgetFit(budget_s, everything, (), all_s, all_s, builds_s, holds=False)
    return BudgetFit(budget_s, tuple(taken), tuple(left_out), needed_s, all_s, builds_s)


def _builds(one: WantedWork, costs: Costs) -> dict[Build, float]:
    return {build: seconds for point in one.points for build, seconds in costs.builds(point).items()}


class Budget(Frozen):
    """The budget of a whole command, in seconds. `must_have_all`: nothing is left out, since the user named it;
    `needs_one`: nothing is left out either if not one group fits."""

    total_s: float
    clock: Clock
    must_have_all: bool = False
    needs_one: bool = False

    def fit(
        self,
        points: Sequence[Point],
        wanted: Callable[[Costs], Sequence[WantedWork]],
        environments: Environments,
        machine_key: str,
        folder: Callable[[], ResultsFolder],
        *,
        again: bool,
    ) -> Chosen:
        """What fits. The folder is opened only after everything requested was found valid; its repeats count unless
        `again`."""
        durations = Durations.of(machine_key)
        costs = Costs(points, environments, durations)
        if not again:
            costs.count_recorded(folder())
        start_s = max(durations.start_s, self.clock.elapsed_s())
        found = fit_of(
            wanted(costs), costs, self.total_s, start_s, must_have_all=self.must_have_all, needs_one=self.needs_one
        )
        return Chosen(found, machine_key, costs)

    def prepared(self, chosen: Chosen, preparation: Preparation) -> dict[int, Ready | Refused]:
        """The experiments of what fits, by the `id()` of their points, in the order of importance. Builds may take
        longer than expected: what no longer fits when it is its turn is skipped."""
        found: dict[int, Ready | Refused] = {}
        builds = _Builds()
        repeats_s = 0.0
        for item in chosen.fit.fitting:
            build_s = builds.expected_s(item, chosen.costs)
            own_s = sum(chosen.costs.repeats_s(point, item.minimum) for point in item.points)
            may_skip = chosen.fit.holds and item.least_s > 0.0
            if may_skip and self.clock.elapsed_s() + build_s + repeats_s + own_s > self.total_s:
                found |= {id(point): chosen.refused(point, item) for point in item.points}
                continue
            repeats_s += own_s
            since_s = self.clock.elapsed_s()
            found |= {id(point): preparation.of(point) for point in item.points}
            builds.took(item, chosen.costs, self.clock.elapsed_s() - since_s)
        return found

    def pool(self, chosen: Chosen) -> Pool:
        """The time of the command. A study of which not one group fits is measured as far as it goes; if even one round
        does not fit, only repeats count."""
        if self.needs_one and not chosen.fit.holds:
            round_s = sum(chosen.costs.repeats_s(point, 1) for item in chosen.fit.fitting for point in item.points)
            fits = self.clock.elapsed_s() + round_s <= self.total_s
            return Pool(self.total_s, clock=self.clock if fits else None, keeps_minimum=False)
        return Pool(self.total_s, clock=self.clock, may_leave_out=not self.must_have_all)


class Chosen(Frozen):
    """What fits, and what it costs."""

    fit: BudgetFit
    machine_key: str
    costs: Costs

    def left_out(self) -> dict[int, Refused]:
        """The points that do not fit, by their `id()`."""
        return {id(point): self.refused(point, item) for item in self.fit.left_out for point in item.points}

    def refused(self, point: Point, item: PreparedItem) -> Refused:
        """A point that is skipped to keep the budget. If its program is not built, its experiment is known in part."""
        unknown = Experiment(point.benchmark.name, masked_parameters(point.parameters), "", "", self.machine_key)
        why = f"{NO_TIME} of {duration(self.fit.budget_s)}: it needs about {_needs(item)}"
        return Refused(point, self.costs.experiments.get(id(point), unknown), Outcome.skipped(why), is_left_out=True)


class _Builds:
    """How long builds take now, compared with what is expected: other processes may use the CPUs."""

    def __init__(self) -> None:
        self._done: set[Build] = set()
        self._expected_s = self._took_s = 0.0

    def expected_s(self, item: PreparedItem, costs: Costs) -> float:
        """The time for those that are missing for an entry, in seconds."""
        declared_s = sum(self._missing(item, costs).values())
        return declared_s * (self._took_s / self._expected_s if self._expected_s else 1.0)

    def took(self, item: PreparedItem, costs: Costs, seconds: float) -> None:
        """They were made."""
        missing = self._missing(item, costs)
        if missing:
            self._done |= missing.keys()
            self._expected_s += sum(missing.values())
            self._took_s += seconds

    def _missing(self, item: PreparedItem, costs: Costs) -> dict[Build, float]:
        found = {build: seconds for point in item.points for build, seconds in costs.builds(point).items()}
        return {build: seconds for build, seconds in found.items() if build not in self._done}


def _needs(item: PreparedItem) -> str:
    beside = f", with the other {len(item.points) - 1} that it is measured with" if len(item.points) > 1 else ""
    return f"{duration(item.least_s)}{beside}"


def without_time(pool: Pool, items: Iterable[Ready | Refused]) -> list[Ready | Refused]:
    """The experiments of a finished run; those for which the time was over before their first repeat are skipped."""
    late = {member.ready.experiment.id for group in pool.left_out for member in group.members if not member.ok_repeats}
    why = Outcome.skipped(f"the budget of {duration(pool.total_s)} was over before its first repeat")
    return [
        Refused(item.point, item.experiment, why, item.environment, is_left_out=True)
        if item.experiment.id in late
        else item
        for item in items
    ]
