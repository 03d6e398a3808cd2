"""Diagnoses of calls that take long by themselves, of ranks that waited for CPUs and differ besides, and of many small
writes, on made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import profile, rank
from profiler.made_up_tables import Call

from seatrial.diagnosis.diagnose import diagnose
from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.profiler.profile import Profile
from seatrial.profiler.profile_io import IoTotals, ProfileIo, RankIo
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.words import headline

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


SENT = ({1: (50_000, 2_400_000, 50_000, 2_400_000)}, {0: (50_000, 2_400_000, 50_000, 2_400_000)})


def exchanging(mean_s: float, best_s: float, size: int = 48, barrier_s: float = 1e-6, number: int = 50_000) -> Profile:
    """Two ranks that receive many messages, and meet at a barrier now and then."""
    calls = [Call("MPI_Recv", number, size, mean_s, best_s), Call("MPI_Isend", number, size, 2e-8)]
    return profile(*(rank(k, 2, [*calls, Call("MPI_Barrier", 10, 0, barrier_s)], peers=SENT[k]) for k in (0, 1)))


@pytest.mark.parametrize("barrier_s", [1e-6, 2e-3])
def test_receives_of_small_messages_that_take_long_although_no_rank_is_late(barrier_s: float) -> None:
    """9.5 of 10 s in receives: no partner is outside MPI for long enough. It is the same whether they meet or not."""
    made = exchanging(190e-6, 3e-8, barrier_s=barrier_s)
    found = made.diagnoses[0]
    assert found.cause is Cause.SLOW_RECEIVES and found.share == pytest.approx(0.95, abs=0.01)
    assert headline(made) == (
        "MPI_Recv (48 B) takes 95 % of wall time: receives that take long, although no rank is late"
    )
    assert "100000 times and takes 190 µs each time, 30.0 ns at best" in sentence(found)
    assert "in the order of sending" in remedy(found)


@pytest.mark.parametrize(("delay_s", "is_named"), [(1.5, True), (6.0, False)])
def test_a_missing_cpu_does_not_hide_receives_that_take_long(delay_s: float, is_named: bool) -> None:
    """Each rank waits for a CPU for `delay_s` of 10 s, and is in receives for 9.5."""
    calls = [Call("MPI_Recv", 50_000, 48, 190e-6, 3e-8), Call("MPI_Isend", 50_000, 48, 2e-8)]
    more = {"cpu_s": 10 - delay_s, "delay_s": delay_s, "busy_s": 20.0}
    found = profile(*(rank(k, 2, calls, peers=SENT[k], **more) for k in (0, 1))).diagnoses
    assert (found[0].cause is Cause.SLOW_RECEIVES) == is_named
    assert found[0].share <= 0.95 - delay_s / 10 + 0.01 or not is_named


@pytest.mark.parametrize(
    "made",
    [
        exchanging(100e-6, 3e-8),  # half of the time, the partner is outside MPI
        exchanging(190e-6, 90e-6),  # each message takes long
        exchanging(190e-6, 3e-8, size=1 << 20),  # data
        exchanging(9.5e-3, 3e-8, number=1000),
    ],
)
def test_receives_that_take_long_for_another_reason(made: Profile) -> None:
    assert Cause.SLOW_RECEIVES not in {one.cause for one in made.diagnoses}


def fencing(mean_s: float, puts: int) -> tuple[Diagnosis, ...]:
    fences = 1_000_000
    calls = [Call("MPI_Win_fence", fences, 0, mean_s, 1e-6), Call("MPI_Put", fences * puts, 8, 5e-8 / puts)]
    return profile(*(rank(k, 2, calls) for k in (0, 1))).diagnoses


def test_a_fence_for_each_access_is_named_by_the_number_of_epochs() -> None:
    """Waiting in fences of some microseconds cannot be told from what they take."""
    found = fencing(3e-6, puts=1)
    assert [one.cause for one in found] == [Cause.MESSAGE_RATE] and found[0].share == pytest.approx(0.305, abs=0.01)
    assert "2 million times" in sentence(found[0]) and "with 1 access in each epoch" in sentence(found[0])
    assert "Use fewer epochs" in remedy(found[0])
    assert Cause.MESSAGE_RATE not in {one.cause for one in fencing(3e-6, puts=64)}, "each epoch has many"
    assert fencing(9e-6, puts=1)[0].cause is not Cause.MESSAGE_RATE, "a rank is late"
