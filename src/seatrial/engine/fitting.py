"""Find which experiments fit into a budget, before anything is built or measured."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.durations import Build, Costs
from seatrial.engine.fit import Fit, Item
from seatrial.engine.study_work import family_of, least_alone
from seatrial.model.frozen import Frozen
from seatrial.model.study.study import Study
from seatrial.plan.planned import by_importance
from seatrial.plan.points import Point
from seatrial.plan.study_points import compared_points
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.sequential import least_blocks


class Wanted(Frozen):
    """Points that are only worth measuring together, and the repeats that each needs at least."""

    points: tuple[Point, ...]
    minimum: int


def wanted_of_trial(points: Sequence[Point], costs: Costs) -> list[Wanted]:
    """Each point alone, the most important first."""
    ordered = by_importance(points, lambda point: costs.total_s([point], MINIMUM_REPEATS, set()))
    return [Wanted((point,), MINIMUM_REPEATS) for point in ordered]


def wanted_of_targets(points: Sequence[Point]) -> list[Wanted]:
    """Each point alone, in the order in which the user named them."""
    return [Wanted((point,), MINIMUM_REPEATS) for point in points]


def wanted_of_study(study: Study, points: Sequence[Point]) -> list[Wanted]:
    """The sides of a comparison together, in the order of the study, with the blocks that an interval of the family
    needs; other points alone."""
    if study.compare is None:
        least = least_alone(study, len(points))
        return [Wanted((point,), least) for point in points]
    groups = compared_points(study, points)
    by_benchmark: dict[str, list[tuple[Point, ...]]] = {}
    for group in groups:
        by_benchmark.setdefault(group[0].benchmark.name, []).append(group)
    least_of = {name: least_blocks(family_of(own)) for name, own in by_benchmark.items()}
    compared = {id(point) for group in groups for point in group}
    alone = [Wanted((point,), MINIMUM_REPEATS) for point in points if id(point) not in compared]
    return [*(Wanted(group, least_of[group[0].benchmark.name]) for group in groups), *alone]


def fit_of(
    wanted: Sequence[Wanted], costs: Costs, budget_s: float, start_s: float, *, must_have_all: bool, needs_one: bool
) -> Fit:
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
            taken.append(Item(one.points, one.minimum, least_s))
        else:
            left_out.append(Item(one.points, one.minimum, least_s))
    builds_s = sum(all_builds.values())
    is_empty = not any(item.least_s for item in taken)
    if left_out and (must_have_all or (needs_one and is_empty)):
        everything = tuple(
            Item(one.points, one.minimum, costs.total_s(one.points, one.minimum, set())) for one in wanted
        )
        return Fit(budget_s, everything, (), all_s, all_s, builds_s, holds=False)
    return Fit(budget_s, tuple(taken), tuple(left_out), needed_s, all_s, builds_s)


def _builds(one: Wanted, costs: Costs) -> dict[Build, float]:
    return {build: seconds for point in one.points for build, seconds in costs.builds(point).items()}
