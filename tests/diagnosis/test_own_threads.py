"""Ranks whose thread that calls MPI waits for other threads of the rank, and what a missing CPU hides of that, of other
blocks and of threads that wait for their team. On made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import S, profile, rank
from diagnosis.test_diagnosis_work import PROMPT, Uses, busy
from profiler.made_up_extensions import extension
from profiler.made_up_tables import Call, Table

from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.profiler.profile import Profile
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.words import headline

WAITS = extension(threads=(100, 9 * S))
"""Nine of ten seconds in pthread_join, ..."""
SEMAPHORES = extension(kernel=(1, 1, 100, 9 * S))
"""... and in sem_wait."""


def alone(waits: bytes, cpu_s: float) -> Profile:
    """One rank on two CPUs."""
    return profile(rank(0, 1, PROMPT, cpu_s=cpu_s).but(system_uses={}, extension=waits))


def blocked(made: Profile) -> Diagnosis | None:
    return next((one for one in made.diagnoses if one.cause is Cause.BLOCKED), None)


def test_a_thread_that_waits_for_workers_on_all_cpus_is_no_loss() -> None:
    """Two workers compute on two CPUs meanwhile."""
    assert blocked(alone(WAITS, cpu_s=19.0)) is None
    assert blocked(alone(WAITS, cpu_s=17.0)) is None


def test_workers_that_do_not_use_the_cpus_are_named_by_what_is_lost() -> None:
    """Two threads that hold one lock in turn use one CPU of two."""
    made = alone(WAITS, cpu_s=10.0)
    found = blocked(made)
    assert found is not None and found.share == pytest.approx(0.45) and found.value(Signal.THREADS_CPUS) == 1.0
    assert "its own threads used 1.00 of 2 CPUs" in sentence(found) and "neither ran" not in sentence(found)
    assert headline(made) == "45 % of the time of the CPUs is not used: rank 0 on node1 waits for its own threads"
    assert "share the work of the threads" in remedy(found)


def test_semaphores_while_own_threads_run_are_no_locks_of_files() -> None:
    """Thread.join of Python waits for a semaphore."""
    found = blocked(alone(SEMAPHORES, cpu_s=9.5))
    assert found is not None and found.share == pytest.approx(0.9 * (1 - 8.5 / 9 / 2))
    assert "it may wait for these" in sentence(found) and "a file for each rank" not in remedy(found)
    others = blocked(alone(SEMAPHORES, cpu_s=1.0))
    assert others is not None and others.share == pytest.approx(0.9) and "a file for each rank" in remedy(others)


def test_ranks_with_busy_workers_differ_in_work() -> None:
    """The rank that others wait for waits for its worker, which computes: it is not blocked."""
    reduces = [Call("MPI_Allreduce", 1000, 8, 3e-3, 2e-6)]
    made = profile(busy(0, 2, PROMPT).but(extension=WAITS), busy(1, 2, reduces))
    assert Cause.BLOCKED_RANK not in {one.cause for one in made.diagnoses}
    assert made.diagnoses[0].cause is Cause.IMBALANCE and made.diagnoses[0].rank == 0


def delayed(sleep_s: float) -> list[Table]:
    """Two ranks that other processes kept from a CPU for 1.5 of ten seconds, and that sleep."""
    sleep: Uses = {"sleep": (1000, sleep_s, 0)}
    return [rank(n, 2, PROMPT, 8.5 - sleep_s, 1.5, busy_s=19.5).but(system_uses=sleep) for n in range(2)]


def test_a_missing_cpu_comes_after_longer_sleep() -> None:
    made = profile(*delayed(5.0))
    assert [one.cause for one in made.diagnoses] == [Cause.BLOCKED, Cause.OTHER_PROCESSES]
    assert "rank 0 waited for a CPU 15 % of the time" in headline(made)
    made = profile(*delayed(1.0))
    assert [one.cause for one in made.diagnoses] == [Cause.OTHER_PROCESSES, Cause.BLOCKED]


@pytest.mark.parametrize(("delay_s", "is_named"), [(1.2, True), (3.0, False)])
def test_a_missing_cpu_does_not_hide_threads_that_wait_for_their_team(delay_s: float, is_named: bool) -> None:
    """Of 9 s in parallel regions the second thread computes for 1 s: 4 s are lost."""
    ticks = [9 * S, 10 * S, 9 * S, 18 * S]
    regions = extension(openmp=(1, 0, 9 * S), parallel=[(0x10200, 100, 2, ticks[0], 200, *ticks[1:], 0, 0)])
    made = profile(replace(rank(0, 1, PROMPT, 18.0, delay_s, busy_s=19.9), extension=regions))
    assert {one.cause for one in made.diagnoses} & {Cause.OTHER_PROCESSES, Cause.NO_CPU}
    found = next((one for one in made.diagnoses if one.cause is Cause.THREAD_IMBALANCE), None)
    assert (found is not None) == is_named
    if found is not None:
        assert found is made.diagnoses[0] and found.share == pytest.approx((4.0 - delay_s) / 10)
