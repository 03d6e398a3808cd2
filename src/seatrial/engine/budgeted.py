"""A trial or study on a budget for the whole command: what fits is decided before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from seatrial.engine.durations import Build, Costs, Durations
from seatrial.engine.events import Fit, Item
from seatrial.engine.pool import Clock, Pool
from seatrial.engine.prepare import Preparation
from seatrial.engine.ready import Ready, Refused
from seatrial.engine.study_work import Wanted, fit_of
from seatrial.environments.chosen import Environments
from seatrial.model.frozen import Frozen
from seatrial.model.results.outcome import NO_TIME, Outcome
from seatrial.model.results.record import Experiment
from seatrial.model.secrets import masked_parameters
from seatrial.model.units import duration
from seatrial.plan.points import Point
from seatrial.store.folder import ResultsFolder


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
        wanted: Callable[[Costs], Sequence[Wanted]],
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

    fit: Fit
    machine_key: str
    costs: Costs

    def left_out(self) -> dict[int, Refused]:
        """The points that do not fit, by their `id()`."""
        return {id(point): self.refused(point, item) for item in self.fit.left_out for point in item.points}

    def refused(self, point: Point, item: Item) -> Refused:
        """A point that is skipped to keep the budget. If its program is not built, its experiment is known in part."""
        unknown = Experiment(point.benchmark.name, masked_parameters(point.parameters), "", "", self.machine_key)
        why = f"{NO_TIME} of {duration(self.fit.budget_s)}: it needs about {_needs(item)}"
        return Refused(point, self.costs.experiments.get(id(point), unknown), Outcome.skipped(why), is_left_out=True)


class _Builds:
    """How long builds take now, compared with what is expected: other processes may use the CPUs."""

    def __init__(self) -> None:
        self._done: set[Build] = set()
        self._expected_s = self._took_s = 0.0

    def expected_s(self, item: Item, costs: Costs) -> float:
        """The time for those that are missing for an entry, in seconds."""
        declared_s = sum(self._missing(item, costs).values())
        return declared_s * (self._took_s / self._expected_s if self._expected_s else 1.0)

    def took(self, item: Item, costs: Costs, seconds: float) -> None:
        """They were made."""
        missing = self._missing(item, costs)
        if missing:
            self._done |= missing.keys()
            self._expected_s += sum(missing.values())
            self._took_s += seconds

    def _missing(self, item: Item, costs: Costs) -> dict[Build, float]:
        found = {build: seconds for point in item.points for build, seconds in costs.builds(point).items()}
        return {build: seconds for build, seconds in found.items() if build not in self._done}


def _needs(item: Item) -> str:
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
