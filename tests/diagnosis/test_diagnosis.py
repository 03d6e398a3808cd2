"""Diagnoses of made-up profiles: each cause, and a control that differs in the decisive signal only."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.cause import NO_CPU_CAUSES, Cause, Diagnosis, Signal
from seatrial.profiler.merge.bound import BETWEEN_HOSTS, ON_ONE_HOST
from seatrial.profiler.profile import Profile
from seatrial.profiler.tables.process_table import parse_table

S = 10**9
NONE = 2**64 - 1
WALL_S = 10


def sample(
    at_s: float,
    cpu_s: float = 0.0,
    delay_s: float = 0.0,
    throttled: tuple[float, int, int] | None = None,
    busy_s: float = 0.0,
    steal_s: float = 0.0,
) -> tuple[int, ...]:
    """The fields of `struct seatrial_cpu_use`. `throttled`: seconds, throttled periods, periods."""
    quota = (NONE,) * 3 if throttled is None else (round(throttled[0] * S), *throttled[1:])
    times = (round(one * S) for one in (at_s, cpu_s, delay_s))
    return (*times, 10, 20, 30, 0, 1 << 20, *quota, round(busy_s * S), round(steal_s * S))


def rank(
    number: int,
    ranks: int,
    calls: Sequence[Call],
    cpu_s: float = WALL_S,
    delay_s: float = 0.0,
    *,
    host: str = "node1",
    cpus: Sequence[int] = (0, 1),
    online: int = 2,
    quota: float = 0.0,
    throttled: tuple[float, int, int] | None = None,
    busy_s: float | None = None,
    steal_s: float = 0.0,
    peers: dict[int, tuple[int, int, int, int]] | None = None,
    start: float = 100.0,
) -> Table:
    busy = cpu_s * ranks if busy_s is None else busy_s
    return Table(
        number,
        ranks,
        [Thread(calls, peers or {})],
        host,
        wall_s=WALL_S,
        pid=100 + number,
        cpu_first=sample(start, throttled=None if throttled is None else (0.0, 0, 0)),
        cpu_last=sample(start + WALL_S, cpu_s, delay_s, throttled, busy, steal_s),
        cpus=cpus,
        online=online,
        quota=quota,
    )


def profile(*tables: Table) -> Profile:
    return profiles([parse_table(table.data(), len(NAMES)) for table in tables], NAMES)[0]


def first(*tables: Table) -> Diagnosis:
    return profile(*tables).diagnoses[0]


REDUCE = [Call("MPI_Allreduce", 1000, 8, 3e-3, 2e-6)]
"""Three of ten seconds are waiting."""


def test_more_ranks_than_cpus() -> None:
    found = first(*(rank(n, 4, REDUCE, cpu_s=4.9, delay_s=5.0) for n in range(4)))
    assert found.cause is Cause.MORE_RANKS_THAN_CPUS and found.share == pytest.approx(0.5)
    assert found.value(Signal.RANKS_ON_NODE) == 4 and found.value(Signal.CPUS) == 2


def test_threads_that_share_the_cpus() -> None:
    """Two ranks with four busy threads each on four CPUs."""
    found = first(*(rank(n, 2, REDUCE, 19.0, 20.0, cpus=range(4), online=4, busy_s=38.0) for n in range(2)))
    assert found.cause is Cause.MORE_RANKS_THAN_CPUS and found.share == 1.0


def test_threads_that_other_processes_keep_waiting() -> None:
    """The same with more time for other processes than for the ranks, whose delay is theirs."""
    found = first(*(rank(n, 2, REDUCE, 9.0, 31.0, cpus=range(4), online=4, busy_s=38.0) for n in range(2)))
    assert found.cause is Cause.OTHER_PROCESSES and found.value(Signal.OTHERS_CPUS) == pytest.approx(2.0)


def test_ranks_on_the_same_cpu() -> None:
    found = first(*(rank(n, 2, REDUCE, 5.0, 4.9, cpus=[0], online=8) for n in range(2)))
    assert found.cause is Cause.SAME_CPUS and found.value(Signal.CPUS) == 1
    both = [rank(n, 4, REDUCE, 5.0, 4.9, cpus=[0], online=8) for n in range(2)]
    alone = [rank(n, 4, REDUCE, 10.0, cpus=[n], online=8) for n in (2, 3)]
    found = first(*both, *alone)
    assert found.cause is Cause.SAME_CPUS and found.rank in (0, 1) and found.value(Signal.RANKS_ON_NODE) == 2


@pytest.mark.parametrize("delay_s", [4.6, 0.0])
def test_a_quota(delay_s: float) -> None:
    """The kernel counts throttled time as delay in most versions."""
    more = {"quota": 0.3, "throttled": (4.6, 46, 50)}
    found = first(*(rank(n, 2, REDUCE, 1.5, delay_s, **more) for n in range(2)))
    assert found.cause is Cause.CPU_QUOTA and found.share == pytest.approx(0.46)
    assert found.value(Signal.QUOTA) == 0.3 and found.value(Signal.THROTTLED) == pytest.approx(0.92)
    unused = {"quota": 2.0, "throttled": (0.0, 0, 50)}
    assert first(*(rank(n, 2, REDUCE, 10.0, 0.0, **unused) for n in range(2))).cause not in NO_CPU_CAUSES


def test_other_processes() -> None:
    """A spinner on the CPU of rank 1."""
    found = first(rank(0, 2, REDUCE, 10.0, cpus=[0], busy_s=20.0), rank(1, 2, [], 5.0, 5.0, cpus=[1], busy_s=20.0))
    assert found.cause is Cause.OTHER_PROCESSES and found.rank == 1 and found.value(Signal.OTHERS_CPUS) == 0.5


def test_steal() -> None:
    found = first(*(rank(n, 2, REDUCE, 5.0, 5.0, busy_s=10.0, steal_s=9.0) for n in range(2)))
    assert found.cause is Cause.STEAL and found.value(Signal.STEAL_SHARE) == pytest.approx(0.9)


def test_a_cpu_that_was_missing_for_no_known_reason() -> None:
    found = first(*(rank(n, 2, REDUCE, 8.0, 2.0, cpus=range(8), online=8, busy_s=16.0) for n in range(2)))
    assert found.cause is Cause.NO_CPU


def test_processes_on_idle_cpus_are_no_cause() -> None:
    """Ten others run on a node of 64 CPUs; those of the ranks are not known to be theirs."""
    found = first(*(rank(n, 2, REDUCE, 8.0, 2.0, cpus=[n], online=64, busy_s=116.0) for n in range(2)))
    assert found.cause is Cause.NO_CPU and found.value(Signal.OTHERS_CPUS) == pytest.approx(10.0)


@pytest.mark.parametrize("delay_s", [0.0, 0.5])
def test_a_short_delay_is_no_cause(delay_s: float) -> None:
    assert first(*(rank(n, 2, REDUCE, 9.0, delay_s, busy_s=20.0) for n in range(2))).cause not in NO_CPU_CAUSES


def test_without_counters_of_the_kernel_no_cpu_is_said_to_be_missing() -> None:
    tables = [rank(n, 4, REDUCE).but(cpu_first=(), cpu_last=(), online=0) for n in range(4)]
    made = profile(*tables)
    assert made.nodes == () and all(one.cpu is None for one in made.per_rank)
    assert made.diagnoses[0].cause not in NO_CPU_CAUSES


def test_imbalance_and_its_rank() -> None:
    """Rank 1 computes for ten seconds, the others for seven and wait for three."""
    waits, works = REDUCE, [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]
    found = first(*(rank(n, 4, works if n == 1 else waits, cpus=range(4), online=4) for n in range(4)))
    assert found.cause is Cause.IMBALANCE and found.rank == 1
    assert found.value(Signal.WAITING_EXPLAINED) == pytest.approx(1.0, abs=0.01)
    assert found.share == pytest.approx(0.225, abs=0.01)


def test_a_rank_that_is_blocked_does_not_compute() -> None:
    waits, sleeps = REDUCE, [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]
    found = first(rank(0, 2, waits), rank(1, 2, sleeps, cpu_s=4.0, busy_s=14.0))
    assert found.cause is Cause.BLOCKED_RANK and found.rank == 1
    assert found.value(Signal.BLOCKED) == pytest.approx(0.6)


def test_no_imbalance_is_named_if_it_does_not_explain_the_waiting() -> None:
    """Rank 1 computes 0.6 % more, and waits for messages as long as rank 0."""
    calls = [
        [Call("MPI_Recv", 1000, 8192, mean, 2e-3), Call("MPI_Send", 1000, 8192, 3e-6, 2e-6)] for mean in (4e-3, 3.97e-3)
    ]
    peers = [{1: (1000, 8192_000, 1000, 8192_000)}, {0: (1000, 8192_000, 1000, 8192_000)}]
    found = first(*(rank(n, 2, calls[n], peers=peers[n]) for n in range(2)))
    assert found.cause is Cause.LATE_SENDER and found.share == pytest.approx(0.4, abs=0.01) and found.rank is None


def test_every_receive_waits_even_at_its_best() -> None:
    """8 KiB in 2 ms at best are not transferred for 2 ms."""
    calls = [[Call("MPI_Send", 1000, 8192, 3e-6, 2e-6)], [Call("MPI_Recv", 1000, 8192, 4e-3, 2e-3)]]
    even = Call("MPI_Allreduce", 1000, 8, 4e-3, 3.9e-3)
    peers = [{1: (1000, 8192_000, 0, 0)}, {0: (0, 0, 1000, 8192_000)}]
    made = profile(rank(0, 2, [*calls[0], even], peers=peers[0]), rank(1, 2, calls[1], peers=peers[1]))
    (receive,) = (one for one in made.sizes if one.call == "MPI_Recv")
    assert receive.prompt_s < 60e-6 and receive.waiting_s == pytest.approx(4.0, rel=0.02)
    assert receive.bound == "waiting"


def test_a_late_receiver() -> None:
    calls = [
        [Call("MPI_Send", 1000, 1 << 20, 4e-3, 1e-4)],
        [Call("MPI_Recv", 1000, 1 << 20, 1e-4, 1e-4), Call("MPI_Wait", 1, 0, 3.6, 1e-6)],
    ]
    peers = [{1: (1000, 1000 << 20, 0, 0)}, {0: (0, 0, 1000, 1000 << 20)}]
    found = first(*(rank(n, 2, calls[n], peers=peers[n]) for n in range(2)))
    assert found.cause is Cause.LATE_RECEIVER and found.rank == 1


def test_ranks_that_are_late_in_turn() -> None:
    found = first(*(rank(n, 2, [Call("MPI_Allreduce", 1000, 8, 2e-3, 2e-6)]) for n in range(2)))
    assert found.cause is Cause.LATE_AT_COLLECTIVE and found.call == "MPI_Allreduce"
    measured = [
        Call("MPI_Allreduce", 1000, 8, 2e-3, 2e-6),
        Call("MPI_Allreduce", 100, 8, 1.9e-3, part=1),
        Call("MPI_Allreduce", 100, 8, 0.1e-3, part=2),
    ]
    found = first(*(rank(n, 2, measured) for n in range(2)))
    assert found.cause is Cause.LATE_AT_COLLECTIVE and found.sureness == "measured"


def test_many_short_calls_are_no_waiting() -> None:
    """38 ns at best, 400 ns on average: their number is what costs."""
    calls = [[Call("MPI_Send", 10_000_000, 8, 4e-7, 3.8e-8)], [Call("MPI_Recv", 10_000_000, 8, 4e-7, 3.8e-8)]]
    found = first(*(rank(n, 2, calls[n]) for n in range(2)))
    assert found.cause is Cause.MESSAGE_RATE and found.value(Signal.CALLS) == 10_000_000


def test_transfer_and_latency() -> None:
    large = [Call("MPI_Sendrecv" if "MPI_Sendrecv" in NAMES else "MPI_Bcast", 1000, 4 << 20, 2.1e-3, 2e-3)]
    assert first(*(rank(n, 2, large) for n in range(2))).cause is Cause.TRANSFER
    small = [Call("MPI_Allreduce", 1000_000, 8, 2.2e-6, 2e-6)]
    assert first(*(rank(n, 2, small) for n in range(2))).cause is Cause.LATENCY


def test_a_program_that_computes() -> None:
    found = profile(*(rank(n, 2, [Call("MPI_Allreduce", 10, 8, 3e-3, 2e-6)]) for n in range(2))).diagnoses
    assert [one.cause for one in found] == [Cause.COMPUTATION] and found[0].share == pytest.approx(0.997)


def test_two_causes_are_both_named_largest_first() -> None:
    """Rank 1 computes longer, and startup takes a second."""
    start = Call("MPI_Init", 1, 0, 1.0)
    calls = [[start, *REDUCE], [start, Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]]
    made = profile(*(rank(n, 2, calls[n]) for n in range(2))).diagnoses
    assert [one.cause for one in made] == [Cause.IMBALANCE, Cause.STARTUP]


def test_an_unknown_library_has_no_known_cause() -> None:
    tables = [rank(n, 2, [Call("MPI_Send", 1000, 0, 3e-3)]).but(family=0) for n in range(2)]
    found = first(*tables)
    assert found.cause is Cause.NOT_KNOWN and found.value(Signal.CALL_SHARE) == pytest.approx(0.3)


def test_damaged_samples_are_refused_and_shrinking_counters_unreported() -> None:
    from seatrial.errors import ParseError

    table = rank(0, 1, REDUCE)
    with pytest.raises(ParseError, match="the last sample of CPU time is before the first"):
        parse_table(table.but(cpu_last=sample(1.0)).data(), len(NAMES))
    with pytest.raises(ParseError, match="invalid CPU quota"):
        parse_table(table.but(quota=float("nan")).data(), len(NAMES))
    with pytest.raises(ParseError, match="CPUs"):
        parse_table(table.but(online=1 << 40).data(), len(NAMES))
    read = parse_table(table.but(cpu_first=sample(100.0, cpu_s=99.0)).data(), len(NAMES))
    assert read.cpu_use is not None and read.cpu_use.cpu_s is None and read.cpu_use.delay_s == 0.0


def test_the_reference_of_a_call() -> None:
    assert ON_ONE_HOST.most_s("MPI_Recv", 8192, 2) == pytest.approx(12.2e-6, rel=0.01)
    assert ON_ONE_HOST.most_s("MPI_Allreduce", 8, 1024) == pytest.approx(20 * 4.008e-6, rel=0.01)
    assert ON_ONE_HOST.most_s("MPI_Alltoall", 1 << 20, 4) > ON_ONE_HOST.most_s("MPI_Recv", 1 << 20, 4)
    assert BETWEEN_HOSTS.most_s("MPI_Allgather", 1 << 20, 16) > 15 * BETWEEN_HOSTS.most_s("MPI_Recv", 1 << 19, 2)


def test_asking_between_pieces_of_work_is_no_waiting() -> None:
    """Ten million tests of one request, of 0.3 µs each: at once after another, or with work between."""

    def tests(pause_s: float) -> Diagnosis:
        calls = [Call("MPI_Irecv", 1, 64, 1e-6), Call("MPI_Test", 10_000_000, 0, 3e-7, 2e-7, pause_s=pause_s)]
        return first(*(rank(n, 2, calls) for n in range(2)))

    assert tests(5e-8).cause is Cause.LATE_SENDER
    asking = tests(3e-7)
    assert asking.cause is Cause.POLLING and asking.call == "MPI_Test" and asking.share == pytest.approx(0.3)


def test_what_a_late_receiver_takes_bounds_what_its_sender_needs() -> None:
    """Every send waits for its receiver, also the shortest; the receiver takes the data in 1 ms."""
    size = 4 << 20
    sends = [Call("MPI_Send", 300, size, 8e-3, 4.1e-3)]

    def judged(receive_s: float) -> Diagnosis:
        return first(rank(0, 2, sends), rank(1, 2, [Call("MPI_Recv", 300, size, receive_s)]))

    late = judged(1e-3)
    assert late.cause in (Cause.LATE_RECEIVER, Cause.IMBALANCE) and late.share > 0.05
    assert judged(4e-3).cause is Cause.TRANSFER, "the receiver takes as long: that is the transfer"
    far = [rank(0, 2, sends), rank(1, 2, [Call("MPI_Recv", 300, size, 1e-3)], host="node2")]
    assert all(one.cause is not Cause.LATE_RECEIVER for one in profile(*far).diagnoses), "it may have arrived before"


def test_many_short_waits_are_no_late_ranks() -> None:
    """A million sums that differ by half a microsecond, and ten thousand that differ by 50."""
    often = [Call("MPI_Allreduce", 1_000_000, 8, 1.1e-6, 5e-7)]
    assert first(*(rank(n, 2, often) for n in range(2))).cause is Cause.LATENCY
    late = [Call("MPI_Allreduce", 20_000, 8, 55e-6, 5e-7)]
    assert first(*(rank(n, 2, late) for n in range(2))).cause is Cause.LATE_AT_COLLECTIVE


def test_startup_comes_after_what_the_program_does() -> None:
    calls = [Call("MPI_Init", 1, 0, 4.0, 4.0), *REDUCE]
    causes = [one.cause for one in profile(*(rank(n, 2, calls) for n in range(2))).diagnoses]
    assert causes == [Cause.LATE_AT_COLLECTIVE, Cause.STARTUP]
    short = [Call("MPI_Init", 1, 0, 0.8, 0.8)]
    assert first(*(rank(n, 2, short) for n in range(2))).cause is Cause.COMPUTATION, "every run has a little"


def test_access_to_a_window_needs_no_rank_to_come() -> None:
    """Rank 0 has more to do, but that is not why rank 1 waits for its window."""
    found = first(
        rank(0, 2, [Call("MPI_Win_unlock", 100, 0, 1e-5)]), rank(1, 2, [Call("MPI_Win_unlock", 100, 0, 5e-2, 1e-5)])
    )
    assert found.cause is Cause.WINDOW_WAIT and found.share == pytest.approx(0.25, abs=0.01)
