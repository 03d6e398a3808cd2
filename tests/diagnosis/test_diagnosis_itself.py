"""Diagnoses of calls that take long by themselves, of ranks that waited for CPUs and differ besides, and of many small
writes, on made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import profile, rank
from profiler.made_up_tables import Call

from seatrial.diagnosis.diagnose import diagnose
from seatrial.profiler.cause import Cause, Signal
from seatrial.profiler.profile import Profile
from seatrial.profiler.profile_io import IoTotals, ProfileIo, RankIo
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.remedy_words import remedy

OWN = Call("MPI_Op_create", 1)


def reducing(size: int, leasts_s: tuple[float, float], *more: Call) -> Profile:
    """Two ranks that spend half of their time in 1,000 reductions of 5 ms."""
    return profile(*(rank(k, 2, [Call("MPI_Allreduce", 1000, size, 5e-3, leasts_s[k]), *more]) for k in (0, 1)))


@pytest.mark.parametrize(
    ("size", "leasts_s", "more", "cause", "said"),
    [
        (8, (4.8e-3, 4.9e-3), (OWN,), Cause.SLOW_COLLECTIVE, "MPI_Op_create"),
        (16_000, (4.8e-3, 4.9e-3), (OWN,), Cause.SLOW_COLLECTIVE, "MPI_Op_create"),
        (8, (4.8e-3, 4.9e-3), (), Cause.SLOW_COLLECTIVE, "the cause is unknown"),
        # Each rank is the last one at times, and then waits for nobody.
        (8, (1e-5, 1e-5), (OWN,), Cause.LATE_AT_COLLECTIVE, "may be late each time"),
        (8, (4.8e-3, 1e-5), (OWN,), Cause.LATE_AT_COLLECTIVE, "may be late each time"),
    ],
)
def test_a_collective_that_is_slow_itself(
    size: int, leasts_s: tuple[float, float], more: tuple[Call, ...], cause: Cause, said: str
) -> None:
    found = reducing(size, leasts_s, *more).diagnoses[0]
    assert found.cause is cause and said in sentence(found)
    assert found.share == pytest.approx(0.5, abs=0.02)
    if more and cause is Cause.SLOW_COLLECTIVE:
        assert "MPI_SUM" in remedy(found)


@pytest.mark.parametrize(("delay_s", "is_named"), [(1.2, True), (2.4, True), (4.5, False)])
def test_a_rank_that_computes_longer_and_waits_for_a_cpu_besides(delay_s: float, is_named: bool) -> None:
    """Rank 1 is outside MPI for 9 s, rank 0 for 2 s: 3.5 s more than their mean. Of 10 s it waited `delay_s`."""
    waits, works = [Call("MPI_Allreduce", 1000, 8, 8e-3, 1e-6)], [Call("MPI_Allreduce", 1000, 8, 1e-3, 1e-6)]
    delays = {"cpu_s": 10 - delay_s, "delay_s": delay_s, "busy_s": 20.0}
    made = profile(rank(0, 2, waits), rank(1, 2, works, **delays))
    causes = {one.cause: one for one in made.diagnoses}
    assert causes.keys() & {Cause.NO_CPU, Cause.OTHER_PROCESSES}
    assert (Cause.IMBALANCE in causes) == is_named
    if is_named:
        assert made.diagnoses[0].cause is Cause.IMBALANCE, "its share is larger"
        assert causes[Cause.IMBALANCE].share == pytest.approx((3.5 - 0.9 * delay_s / 2) / 10, abs=0.01)


def test_ranks_that_waited_equally_for_a_cpu_differ_in_work() -> None:
    """Rank 1 is outside MPI for 6.4 s, rank 0 for 4: 1.2 s more than their mean. Each waited for a CPU for 1.2 s."""
    calls = [[Call("MPI_Allreduce", 1000, 8, mean_s, 1e-6)] for mean_s in (6e-3, 3.6e-3)]
    found = profile(*(rank(n, 2, calls[n], 8.8, 1.2, busy_s=20.0) for n in range(2))).diagnoses
    assert Cause.IMBALANCE in {one.cause for one in found}


@pytest.mark.parametrize(("calls", "moved_B", "is_said"), [(1_000_000, 1_000_000, True), (1_000_000, 1 << 30, False)])
def test_many_small_writes(calls: int, moved_B: int, is_said: bool) -> None:
    """Rank 0 writes; rank 1 waited for a CPU, because whoever reads that needs one."""
    made = profile(rank(0, 2, []), rank(1, 2, [Call("MPI_Allreduce", 10, 8)], 8.0, 2.0, busy_s=20.0))
    totals = [IoTotals(0, moved_B, 0, calls, 0, 0, 0), IoTotals(0, 0, 0, 0, 0, 0, 0)]
    io = ProfileIo(0.0, 0, tuple(RankIo(k, "node1", one) for k, one in enumerate(totals)))
    found = diagnose(replace(made, io=io))[0]
    assert found.cause in (Cause.NO_CPU, Cause.OTHER_PROCESSES) and found.rank == 1
    assert (found.value(Signal.SMALL_CALLS_RANK) == 0) == is_said
    assert ("Rank 0 made 1 million reads and writes of 1 B on average" in sentence(found)) == is_said
    assert ("larger pieces" in remedy(found)) == is_said
