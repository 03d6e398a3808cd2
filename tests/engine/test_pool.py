"""The time that experiments share: the minimum of all comes first, and what does not fit is left out."""

from __future__ import annotations

from engine.test_policy import member

from seatrial.engine.group import Group
from seatrial.engine.policy import Shared
from seatrial.engine.pool import Clock, Pool


class Watch(Clock):
    """A clock that is set by hand."""

    now_s: float = 0.0

    def elapsed_s(self) -> float:
        return self.now_s


def groups(policy: Shared, *repeats: int, wall_s: float = 1.0) -> list[Group]:
    made = [Group([member([1.0] * n, wall_s)]) for n in repeats]
    for group in made:
        group.members[0].made = 1
        policy.begins(group)
    return made


def shared(total_s: float, clock: Clock, *, may_leave_out: bool = True) -> Shared:
    return Shared(Pool(total_s, clock=clock, may_leave_out=may_leave_out), 0.01, 40)


def test_more_than_the_minimum_uses_only_time_that_nobody_needs() -> None:
    watch = Watch()
    policy = shared(10.0, watch)
    enough, short = groups(policy, 6, 1)
    watch.now_s = 3.0
    assert policy.affords(short) and policy.affords(enough), "3 s, 5 s for the other, 1 s for one more"
    watch.now_s = 4.5
    assert policy.affords(short) and not policy.affords(enough)


def test_the_last_groups_are_left_out_if_time_runs_short() -> None:
    watch = Watch()
    policy = shared(20.0, watch)
    first, second, third = groups(policy, 1, 1, 1)
    assert all(map(policy.affords, (first, second, third)))
    watch.now_s = 8.0
    assert policy.affords(first) and policy.affords(second) and not policy.affords(third)
    assert policy.pool.left_out == [third]
    third.is_finished = True  # as the engine notes it
    for group in (first, second):
        group.members[0].ok_repeats *= 6
        policy.changed(group)
    assert not third.is_finished and policy.affords(third), "the others took no time: it fits after all"


def test_nothing_that_the_user_named_is_left_out() -> None:
    watch = Watch()
    policy = shared(1.0, watch, may_leave_out=False)
    short, enough = groups(policy, 1, 6)
    watch.now_s = 100.0
    assert policy.affords(short) and not policy.affords(enough)


def test_the_time_around_repeats_counts_with_a_clock_only() -> None:
    watch = Watch()
    watch.now_s = 5.0
    policy = shared(10.0, watch)
    policy.made(member([]), 2.0)
    assert (policy.pool.spent_s, policy.outside_s) == (5.0, 3.0)
    without = Pool(10.0)
    without.made(2.0)
    assert (without.spent_s, without.outside_s) == (2.0, 0.0)


def test_what_an_earlier_run_gave_its_minimum_is_finished() -> None:
    policy = shared(10.0, Watch())
    wild = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert policy.has_enough(Group([member(wild)])) and not policy.has_enough(Group([member(wild[:5])]))
    going_on = member(wild)
    going_on.made = 1
    assert not policy.has_enough(Group([going_on]))


def test_waits_do_not_count() -> None:
    clock = Clock()
    with clock.waiting():
        clock._began_s -= 1000.0  # as if the wait had been long
    assert clock.elapsed_s() > 900.0
    clock._waited_s += 1000.0
    assert clock.elapsed_s() < 100.0


def test_what_is_measured_in_any_case_is_still_to_come_after_the_budget() -> None:
    watch = Watch()
    policy = shared(12.0, watch, may_leave_out=False)
    (short,) = groups(policy, 2, wall_s=14.0)
    watch.now_s = 28.0
    assert policy.affords(short) and policy.remaining_s([short]) == 4 * 14.0
