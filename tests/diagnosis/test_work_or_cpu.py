"""Whether the rank that computes longest has more work or a slower CPU; what the ranks start belongs to them; and their
own threads. On made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import REDUCE, S, first, profile, rank
from profiler.made_up_extensions import extension
from profiler.made_up_tables import Call, Table
from published_schemas import check

from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.profiler.profile import Profile
from seatrial.report.profile.diagnosis_words import sentence, short_words
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.words import headline

PROMPT = [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]
LOOP_NS = 20_000


def speed(factor: float, loops: int = 100) -> bytes:
    """A loop that takes so many times 20 µs."""
    return extension(loops=(loops, round(loops * LOOP_NS * factor), round(LOOP_NS * min(factor, 1.0))))


def uneven(*extensions: bytes) -> Profile:
    """Rank 1 computes for 10 s, rank 0 for 7: 18 % above the mean."""
    made = (rank(n, 2, PROMPT if n else REDUCE) for n in range(2))
    return profile(*(table.but(extension=data) for table, data in zip(made, extensions, strict=True)))


@pytest.mark.parametrize(
    ("slower", "cause", "said", "todo"),
    [
        (
            1.0,
            Cause.IMBALANCE,
            "it has more work, or slower access to memory: that loop uses none.",
            "Exchange the ranks",
        ),
        (1.4, Cause.SLOW_CPU, "its CPU is slower.", "its clock"),
        (1.14, Cause.IMBALANCE, "it has more work, and its CPU is slower.", "ranks on other CPUs"),
    ],
)
def test_a_loop_on_each_rank_separates_more_work_from_a_slower_cpu(
    slower: float, cause: Cause, said: str, todo: str
) -> None:
    made = uneven(speed(1.0), speed(slower))
    found = made.diagnoses[0]
    assert found.cause is cause and found.rank == 1 and said in sentence(found) and todo in remedy(found)
    assert short_words(found) in headline(made)
    check(profile_document(made, 0), "profile-1")


def test_a_rank_that_computes_far_longer_has_more_work() -> None:
    """Rank 1 computes for 10 s, rank 0 for 4: 43 % above the mean, more than slower memory is thought to cost."""
    calls = [[Call("MPI_Allreduce", 1000, 8, 6e-3, 2e-6)], PROMPT]
    made = profile(*(rank(n, 2, calls[n]).but(extension=speed(1.0)) for n in range(2)))
    found = made.diagnoses[0]
    assert headline(made).endswith("waiting for rank 1 on node1, which has more work")
    assert "it has more work." in sentence(found) and remedy(found).startswith("Distribute the work")


@pytest.mark.parametrize("loops", [0, 3])
def test_without_such_a_loop_both_are_said(loops: int) -> None:
    data = b"" if not loops else speed(1.4, loops)
    found = uneven(data, data).diagnoses[0]
    assert found.cause is Cause.IMBALANCE and "more work or a slower CPU" in short_words(found)
    assert "was not measured" in sentence(found) and "ranks on other CPUs" in remedy(found)


def instructions(number: int) -> bytes:
    counters = [(2, 0, number, 10 * S, 10 * S)]
    return extension(counters=counters, split=(S, S, 100, 0), in_mpi=[(0, S, S)], loops=(100, 2_000_000, 20_000))


@pytest.mark.parametrize(("more", "cause"), [(1.43, Cause.IMBALANCE), (1.0, Cause.SLOW_CPU)])
def test_instructions_come_before_the_loop(more: float, cause: Cause) -> None:
    found = uneven(instructions(10**10), instructions(round(more * 10**10))).diagnoses[0]
    assert found.cause is cause and "instructions than the mean" in sentence(found)


@pytest.mark.parametrize(
    ("varies", "said"),
    [
        (1.0, "because its work varies: the speed"),
        (1.5, "its CPU is slower at that time (a short loop varied by 50 %)"),
    ],
)
def test_another_rank_is_late_each_time_for_its_work_or_its_cpu(varies: float, said: str) -> None:
    calls = [Call("MPI_Allreduce", 1000, 8, 2e-3, 2e-6)]
    found = first(*(rank(n, 2, calls).but(extension=speed(varies)) for n in range(2)))
    assert found.cause is Cause.LATE_AT_COLLECTIVE and said in sentence(found)
    unknown = first(*(rank(n, 2, calls) for n in range(2)))
    assert "its work varies or its CPU is slower at that time." in sentence(unknown)


def with_children(children_s: float, busy_s: float) -> Diagnosis:
    """Two ranks on two CPUs, which wait for one for 4 of 10 s."""
    data = extension(kernel=(1, 1, 0, 0), children=(5, 5 + round(children_s / 2 * S)))
    return first(*(rank(n, 2, REDUCE, 6.0, 4.0, busy_s=busy_s).but(extension=data) for n in range(2)))


def test_what_ranks_start_is_no_other_process() -> None:
    """8 s of the CPUs are not the ranks' own: all of it, or none, is of the programs that they started."""
    own = with_children(8.0, 20.0)
    assert own.cause is Cause.CHILD_PROCESSES and own.value(Signal.CHILDREN_CPUS) == pytest.approx(0.8)
    assert "programs that the ranks started" in sentence(own) and "Stop the other" not in remedy(own)
    assert with_children(0.0, 20.0).cause is Cause.OTHER_PROCESSES
    assert with_children(1.0, 20.0).cause is Cause.OTHER_PROCESSES


def blocked(table: Table, threads: tuple[int, int]) -> Table:
    return replace(table, system_uses={}, extension=extension(threads=threads))


def test_own_threads_that_wait_are_named() -> None:
    """Rank 0 neither runs nor is ready to run for 6 s, 5 of which it waits for its threads."""
    made = profile(
        blocked(rank(0, 2, PROMPT, cpu_s=4.0), (300, 5 * S)),
        blocked(rank(1, 2, [Call("MPI_Allreduce", 1000, 8, 5e-3, 2e-6)]), (0, 0)),
    )
    found = made.diagnoses[0]
    assert found.cause is Cause.BLOCKED_RANK and found.value(Signal.THREAD_TIME) == pytest.approx(5.0)
    assert "waits for its own threads" in sentence(found) and "share the work of the threads" in remedy(found)
