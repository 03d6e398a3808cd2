"""When a group has enough: a single one, many of a study on one budget, comparisons at planned looks."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.engine.group import FigureKey, Figures, Group, Latest, Member, OkRepeat, paired
from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.policy import Alone, ComparedBlocks, Pool, Pooled
from seatrial.engine.ready import Ready
from seatrial.environments.build import Built
from seatrial.model.benchmark.program import Hello
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.plan.points import plan_points
from seatrial.stats.interval import StoppingRule
from seatrial.stats.sequential import LOOKS

MACHINE = made_up_machine()
FMA = ("fma", ())
PROGRAM = NativeProgram(PEAK.program, Built(Path(), "", (), Hello("peak", "", ""), 0.0, True))


def made_up(repeat: int, wall_s: float, block: str, values: Mapping[FigureKey, float]) -> OkRepeat:
    """An ok repeat without a record."""
    return OkRepeat(repeat, wall_s, block, lambda: Figures(values))


def member(values: Sequence[float], wall_s: float = 0.5, first_block: int = 0) -> Member:
    """An experiment with one ok repeat for each value, one in a block."""
    point = plan_points(["cpu.peak"], {}, MACHINE)[0]
    ready = Ready(point, Experiment("cpu.peak", {}, "", "", ""), PROGRAM)
    made = Member(ready, MACHINE)
    made.ok_repeats = [made_up(n, wall_s, f"block:{n + first_block}", {FMA: value}) for n, value in enumerate(values)]
    made.latest = Latest(0, Outcome.ok(), 60.0)
    return made


def noisy(n: int, level: float = 1.0, noise: float = 0.001, seed: int = 1) -> list[float]:
    source = random.Random(seed)
    return [level * source.gauss(1.0, noise) for _ in range(n)]


def test_pairs_come_from_one_block() -> None:
    first, second = member([1.0, 2.0, 3.0]), member([20.0, 30.0], first_block=1)
    assert paired(first, second, FMA) == [(2.0, 20.0), (3.0, 30.0)]
    assert paired(first, member([1.0], first_block=9), FMA) == []


def test_what_only_accompanies_a_figure_decides_nothing() -> None:
    """Context switches may never be precise, or zero."""

    def side(level: float, seed: int) -> Member:
        made = member([], first_block=0)
        made.ready = replace(made.ready, point=plan_points(["command"], {}, MACHINE)[0])
        walls = noisy(LOOKS[0], level, seed=seed)
        switches = [float(n % 3) for n in range(LOOKS[0])]
        made.ok_repeats = [
            made_up(n, 0.5, f"block:{n}", {("wall", ()): wall, ("voluntary_switches", ()): count})
            for n, (wall, count) in enumerate(zip(walls, switches, strict=True))
        ]
        return made

    group = Group([side(1.0, 1), side(1.2, 2)])
    assert ComparedBlocks(Pool(1e9), 0.01, 100).has_enough(group)
    named = ComparedBlocks(Pool(1e9), 0.01, 100, figures=frozenset({"voluntary_switches"}))
    assert not named.has_enough(group)  # a study that asks for it
    assert Pooled(Pool(1e9), 0.01, 100).has_enough(group)


@pytest.mark.parametrize("n", [LOOKS[0] - 1, LOOKS[0], LOOKS[0] + 1])
def test_a_clear_comparison_stops_at_a_planned_look_and_nowhere_else(n: int) -> None:
    policy = ComparedBlocks(Pool(1e9), 0.01, 100)
    group = Group([member(noisy(n)), member(noisy(n, 1.2, seed=2))])
    assert policy.has_enough(group) is (n == LOOKS[0])


def test_every_candidate_must_be_decided() -> None:
    n = LOOKS[0]
    clear, open_ = member(noisy(n, 1.2, seed=2)), member(noisy(n, 1.02, 0.05, seed=3))
    policy = ComparedBlocks(Pool(1e9), 0.01, 100, family=2)
    assert not policy.has_enough(Group([member(noisy(n)), clear, open_]))
    open_.has_failed = True
    assert policy.has_enough(Group([member(noisy(n)), clear, open_]))


def test_without_a_baseline_the_rest_is_measured_until_precise() -> None:
    baseline = member([])
    baseline.has_failed = True
    policy = ComparedBlocks(Pool(1e9), 0.01, 100)
    assert not policy.has_enough(Group([baseline, member(noisy(6))]))
    assert policy.has_enough(Group([baseline, member(noisy(12))]))


def test_no_more_than_the_largest_number_of_repeats_is_made() -> None:
    wild = Group([member(noisy(14, noise=0.3)), member(noisy(14, noise=0.3, seed=2))])
    assert not ComparedBlocks(Pool(1e9), 0.01, 15).has_enough(wild)
    assert ComparedBlocks(Pool(1e9), 0.01, 14).has_enough(wild)


def test_a_block_that_does_not_fit_the_budget_is_not_begun() -> None:
    pool = Pool(10.0)
    policy = Pooled(pool, 0.01, 100)
    group = Group([member([1.0], 3.0), member([1.0], 3.0)])
    assert policy.affords(group)
    policy.made(group.members[0], 4.5)
    assert not policy.affords(group)
    assert policy.remaining_s([group]) == 5.5 and policy.remaining_s([]) == 0.0


def test_policies_of_one_study_share_its_budget_and_others_do_not() -> None:
    pool = Pool(10.0)
    assert Pooled(pool, 0.01, 10).budget_source is ComparedBlocks(pool, 0.01, 10).budget_source
    assert Alone(StoppingRule()).budget_source is not Alone(StoppingRule()).budget_source


def test_a_finished_independent_experiment_is_judged_by_its_recorded_budget() -> None:
    """Its repeats took 60 s, which was the budget: more time that is offered now does not open it again."""
    done = member(noisy(7, noise=0.5), wall_s=60.0 / 7)
    policy = Alone(StoppingRule(budget_s=600.0))
    assert policy.has_enough(Group([done]))
    done.made = 1
    assert not policy.has_enough(Group([done]))


class _Kept:
    """Stands for a record."""


@pytest.mark.parametrize("asks", [lambda repeat: repeat.read_now(), lambda repeat: repeat.figures])
def test_a_repeat_whose_figures_are_known_does_not_keep_its_record(asks: Callable[[OkRepeat], object]) -> None:
    """A study of 2,000 experiments grew by 25 KB with each repeat."""
    kept = _Kept()
    gone = weakref.ref(kept)
    repeat = OkRepeat(0, 1.0, None, lambda kept=kept: Figures({FMA: 1.0}))  # type: ignore[misc]
    del kept
    asks(repeat)
    assert gone() is None and repeat.figures.values == {FMA: 1.0}
