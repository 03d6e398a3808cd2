from __future__ import annotations

from seatrial.stats.interval import Timed, alternating_sessions


def _run(start: float, *values: float) -> list[Timed]:
    return [Timed(start + n, n, value) for n, value in enumerate(values)]


def test_runs_of_one_side_in_a_row_are_one_session() -> None:
    baseline = [*_run(0, 1, 2, 3), *_run(10, 4, 5), *_run(40, 6)]
    candidate = [*_run(20, 7, 8, 9), *_run(50, 10), *_run(60, 12)]
    for is_one_machine in (True, False):
        assert alternating_sessions(baseline, candidate, is_one_machine=is_one_machine) == [(3, 8), (6, 11)]


def test_a_run_that_alternates_makes_sessions_on_one_machine_but_two_machines_at_once_do_not() -> None:
    baseline = [Timed(float(n), n, 1.0) for n in range(0, 12, 2)]
    candidate = [Timed(float(n), n, 2.0) for n in range(1, 12, 2)]
    assert alternating_sessions(baseline, candidate, is_one_machine=True) == [(1.0, 2.0)] * 6
    assert alternating_sessions(baseline, candidate, is_one_machine=False) == [(1.0, 2.0)]


def test_a_session_more_on_one_side_is_in_no_pair() -> None:
    assert alternating_sessions([*_run(0, 1), *_run(20, 3)], _run(10, 2), is_one_machine=True) == [(1, 2)]
    assert alternating_sessions(_run(0, 1), [], is_one_machine=True) == []
