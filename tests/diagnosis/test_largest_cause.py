"""The first sentence and the remedy come from the largest cause, which has its own remedy; a missing CPU hides nothing
that was counted; what the profiler takes itself qualifies shares. On made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import S, first, profile, rank
from profiler.made_up_extensions import extension
from profiler.made_up_tables import Call, Table, Thread

from seatrial.profiler.cause import Cause, Signal
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.words import headline, next_experiment

FAULTS = 4_000_000
MEMORY_B = 64 << 20


def in_kernel(made: Table, system_s: float, faults: int = 0) -> Table:
    """The same with CPU time in the kernel and page faults that hand out 64 MiB again and again."""
    first_, last = list(made.cpu_first), list(made.cpu_last)
    last[5], last[7] = first_[5] + faults, MEMORY_B
    return replace(
        made, cpu_first=first_, cpu_last=last, extension=extension(kernel=(1, 1 + round(system_s * S), 0, 0))
    )


@pytest.mark.parametrize(
    ("calls", "faults", "said", "todo"),
    [
        # MPI_Init takes 7 % of the time, the kernel 66 %.
        ([Call("MPI_Init", 1, 0, 0.7, 0.7)], 1000, "CPU time in the kernel", "perf top"),
        # MPI_Allreduce takes 10 %.
        ([Call("MPI_Allreduce", 1000, 8, 1e-3, 2e-6)], FAULTS, "page faults", "Allocate large arrays once"),
    ],
)
def test_the_first_sentence_is_about_the_largest_cause(calls: list[Call], faults: int, said: str, todo: str) -> None:
    made = profile(*(in_kernel(rank(n, 2, calls), 8.0, faults) for n in range(2)))
    assert said in headline(made) and "MPI_" not in headline(made)
    assert todo in next_experiment(made)


@pytest.mark.parametrize(
    ("call", "cause", "todo"),
    [
        (Call("MPI_Pack", 5_000_000, 8, 2e-7), Cause.LOCAL_CALLS, "derived datatype"),
        (Call("MPI_Wtime", 20_000_000, 0, 1e-7), Cause.LOCAL_CALLS, "Read the clock less often"),
        (Call("MPI_Win_fence", 1_000_000, 0, 3e-6, 2.9e-6), Cause.LATENCY, "fewer epochs"),
        (Call("MPI_Allreduce", 2_000_000, 8, 2e-6, 1.9e-6), Cause.LATENCY, "several values in one call"),
        (Call("MPI_Send", 20_000_000, 8, 2e-7, 1e-7), Cause.MESSAGE_RATE, "Combine messages"),
    ],
)
def test_each_kind_of_call_has_its_remedy(call: Call, cause: Cause, todo: str) -> None:
    found = first(*(rank(n, 2, [call]) for n in range(2)))
    assert found.cause is cause and todo in remedy(found)


@pytest.mark.parametrize(("requests", "is_named"), [(2048, True), (8, False)])
def test_one_of_many_requests_at_a_time(requests: int, is_named: bool) -> None:
    calls = [Call("MPI_Irecv", 400_000, 8, 1e-7), Call("MPI_Waitany", 400_000, 8, 8e-6, 1e-6)]
    given = extension(waits_for_any=(400_000, 400_000 * requests))
    found = first(*(rank(n, 2, calls).but(extension=given) for n in range(2)))
    assert (found.cause is Cause.MANY_REQUESTS) == is_named
    if is_named:
        assert "with 2048 requests" in sentence(found) and "MPI_Waitsome" in remedy(found)


@pytest.mark.parametrize(("messages", "is_rate"), [(200, True), (2, False)])
def test_a_call_that_completes_many_messages_takes_its_time_for_each(messages: int, is_rate: bool) -> None:
    """MPI_Waitall takes 100 µs, at best 33."""
    starts = [Call(name, 10_000 * messages, 8, 1e-7) for name in ("MPI_Irecv", "MPI_Isend")]
    waits = Call("MPI_Waitall", 40_000, 8, 1e-4, 33e-6, messages=messages)
    found = first(*(rank(n, 2, [waits, *starts]) for n in range(2)))
    assert (found.cause is Cause.MESSAGE_RATE) == is_rate
    if is_rate:
        assert "for 200 messages: their number" in sentence(found) and "fewer, larger" in remedy(found)


def crowded(calls: list[Call], system_s: float = 0.0, faults: int = 0) -> list[Table]:
    """Four ranks on two CPUs, each with half of one."""
    return [in_kernel(rank(n, 4, calls, cpu_s=5.0, delay_s=5.0), system_s, faults) for n in range(4)]


def test_a_missing_cpu_does_not_hide_calls() -> None:
    """Each rank receives 400,000 messages, mostly while it waits for a CPU."""
    made = profile(*crowded([Call("MPI_Recv", 400_000, 8, 15e-6, 2e-7)]))
    assert made.diagnoses[0].cause is Cause.MORE_RANKS_THAN_CPUS
    (calls,) = (one for one in made.diagnoses if one.cause is Cause.MESSAGE_RATE)
    assert calls.value(Signal.CALLS) == 1_600_000 and calls.value(Signal.CPU_SHARE) == pytest.approx(0.08)
    assert "1.6 million times" in sentence(calls) and "up to 8.0 % of the CPU time" in sentence(calls)
    few = profile(*crowded([Call("MPI_Recv", 4_000, 8, 15e-4, 2e-7)]))
    assert all(one.cause is not Cause.MESSAGE_RATE for one in few.diagnoses)


def test_a_missing_cpu_does_not_hide_the_kernel() -> None:
    faults = profile(*crowded([Call("MPI_Allreduce", 100, 8, 60e-3, 2e-6)], 2.0, FAULTS))
    (found,) = (one for one in faults.diagnoses if one.cause is Cause.PAGE_FAULTS)
    assert found.value(Signal.CPU_SHARE) == pytest.approx(0.4) and "40 % of the CPU time" in sentence(found)
    assert faults.diagnoses[0].cause is Cause.MORE_RANKS_THAN_CPUS
    kernel = profile(*crowded([Call("MPI_Allreduce", 100, 8, 1e-3, 2e-6)], 4.0))
    assert Cause.KERNEL_TIME in {one.cause for one in kernel.diagnoses}
    yielding = profile(*crowded([Call("MPI_Allreduce", 100, 8, 90e-3, 2e-6)], 4.0))
    assert Cause.KERNEL_TIME not in {one.cause for one in yielding.diagnoses}, "it may be in MPI"


def test_a_missing_cpu_does_not_hide_small_pieces_of_mpi_io() -> None:
    made = profile(*crowded([Call("MPI_File_write_at", 100_000, 32, 3e-5, 1e-6)]))
    (found,) = (one for one in made.diagnoses if one.cause is Cause.MPI_IO)
    assert found.value(Signal.CPU_SHARE) == pytest.approx(0.3)


def test_a_missing_cpu_does_not_hide_an_operation_of_the_program() -> None:
    made = profile(*crowded([Call("MPI_Allreduce", 1000, 1 << 20, 5e-3, 1e-3), Call("MPI_Op_create", 1)]))
    (found,) = (one for one in made.diagnoses if one.cause is Cause.SLOW_COLLECTIVE)
    assert found.share == pytest.approx(0.1) and found.value(Signal.CPU_SHARE) == pytest.approx(0.2)


def operating(operated_s: list[float], mpi_s: float, function: int = 0) -> list[Table]:
    """Ranks that make 1000 reductions, and are in an operation of the program for so many seconds of it."""
    applied = [
        [] if own_s == 0 else [Call("MPI_Allreduce", 1000, 8, own_s / 1000, own_s / 2000, part=3)]
        for own_s in operated_s
    ]
    return [
        rank(n, len(operated_s), [Call("MPI_Allreduce", 1000, 8, mpi_s / 1000, 2e-6), Call("MPI_Op_create"), *own]).but(
            extension=extension(operations=[(function, 1, 1000, round(operated_s[n] * S))]),
            modules="1000 9000 1000 /opt/app\n",
        )
        for n, own in enumerate(applied)
    ]


def test_a_measured_operation_is_the_cause_with_its_share_and_no_waiting() -> None:
    made = profile(*operating([4.0, 4.0], 4.1, 0x2000))
    assert [one.cause for one in made.diagnoses] == [Cause.OPERATION]
    (found,) = made.diagnoses
    assert found.share == pytest.approx(0.4) and found.sureness == "measured"
    assert "98 % of its time in operations of the program (MPI_Op_create): app+0x2000 was called" in sentence(found)
    assert "MPI_SUM" in remedy(found) and made.calls[0].operated_s == pytest.approx(8.0)
    assert made.calls[0].waiting_s < 0.3 and made.calls[0].bound == "local"
    assert "computing in app+0x2000" in headline(made)


def test_ranks_that_apply_an_operation_less_wait_for_it() -> None:
    (found,) = profile(*operating([4.0, 0.0], 4.0)).diagnoses
    assert found.cause is Cause.OPERATION and found.share == pytest.approx(0.4, rel=0.01)
    assert found.value(Signal.WAITING_SHARE) == pytest.approx(0.2, rel=0.01) and "wait meanwhile" in sentence(found)
    assert "functions of MPI_Op_create" in sentence(found), "those without a row"


def test_a_small_operation_hides_no_waiting() -> None:
    found = profile(*operating([0.2, 0.2], 4.0)).diagnoses
    assert found and found[0].cause is not Cause.OPERATION


def test_threads_together_wait_for_longer_than_the_program_runs() -> None:
    """Two threads of each rank are in the same call nearly all of the time."""
    thread = Thread([Call("MPI_Allreduce", 1000, 8, 9.5e-3, 2e-6)])
    made = profile(*(rank(n, 2, []).but(threads=[thread, thread]) for n in range(2)))
    assert made.mpi_s > made.wall_s and all(one.share <= 1 for one in made.diagnoses)
    assert "takes 190 % of wall time, all threads together" in headline(made)


def test_windows_that_are_made_again_and_again() -> None:
    found = first(*(rank(n, 2, [Call("MPI_Win_create", 50_000, 0, 7e-5, 5e-5)]) for n in range(2)))
    assert (
        found.cause is Cause.COMMUNICATORS and "freeing windows" in sentence(found) and "windows once" in remedy(found)
    )


def test_what_was_counted_comes_before_a_smaller_missing_cpu() -> None:
    tables = [in_kernel(rank(n, 2, [], cpu_s=8.8, delay_s=1.2, busy_s=20.0), 6.0, FAULTS) for n in range(2)]
    made = profile(*(replace(one, threads=rank(0, 2, [Call("MPI_Allreduce", 10)]).threads) for one in tables))
    assert [one.cause for one in made.diagnoses][:2] == [Cause.PAGE_FAULTS, Cause.OTHER_PROCESSES]
    assert headline(made).startswith("60 % of wall time: page faults; rank 0 waited for a CPU 12 % of the time")


@pytest.mark.parametrize(("own_s", "is_said"), [(2.0, True), (0.2, False)])
def test_overhead_qualifies_the_first_sentence(own_s: float, is_said: bool) -> None:
    calls = 10_000_000
    tables = [rank(n, 2, [Call("MPI_Wtime", calls, 0, 4e-8)]).but(own_ticks=own_s * S / calls) for n in range(2)]
    said = headline(profile(*tables))
    assert ("profiling itself takes 20 % of wall time" in said) == is_said


@pytest.mark.parametrize(
    ("call", "leasts_s"),
    [
        (Call("MPI_Allreduce", 200, 1 << 20, 9e-3), (7e-3, 8e-3)),  # beyond what the constants allow
        (Call("MPI_Allreduce", 900, 1 << 20, 2e-3), (1.9e-3, 1.9e-3)),  # within it
        (Call("MPI_Reduce", 400, 1 << 20, 5e-3), (4.8e-3, 3e-3)),
    ],
)
def test_a_reduction_with_an_operation_of_the_program_is_not_called_transfer(
    call: Call, leasts_s: tuple[float, float]
) -> None:
    own = Call("MPI_Op_create", 1)
    ranks = [replace(call, least_s=least_s) for least_s in leasts_s]
    found = profile(*(rank(n, 2, [ranks[n], own]) for n in range(2))).diagnoses
    assert found[0].cause is Cause.SLOW_COLLECTIVE and "MPI_Op_create" in sentence(found[0])
    assert all(one.cause is not Cause.TRANSFER for one in found) and "MPI_SUM" in remedy(found[0])
