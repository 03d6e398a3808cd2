"""Whether a call waits, or is bound by latency or bandwidth: the rule, and that it reaches the profile."""

from __future__ import annotations

import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.merge.bound import bound_of, is_start, may_wait
from seatrial.profiler.profile import Bound
from seatrial.profiler.tables.process_table import parse_table


@pytest.mark.parametrize(
    ("call", "size", "waiting", "shortest", "best", "small", "expected"),
    [
        ("MPI_Allreduce", 4, 0.2, 0.9, 2e-6, 2e-6, Bound.LATENCY),
        ("MPI_Allreduce", 224, 0.2, 0.9, 2.5e-6, 2e-6, Bound.LATENCY),
        ("MPI_Allreduce", 4096, 0.2, 0.9, 4e-6, 2e-6, Bound.BANDWIDTH),
        ("MPI_Allreduce", 1 << 20, 0.2, 0.9, 3e-6, 2e-6, Bound.LATENCY),  # a fabric that is faster than it is quick
        ("MPI_Send", 8192, 0.0, 1.0, 1e-5, None, Bound.BANDWIDTH),
        ("MPI_Send", 8191, 0.0, 1.0, 1e-5, None, Bound.LATENCY),
        ("MPI_Send", 0, 0.0, 1.0, 1e-6, 1e-6, Bound.LATENCY),
        ("MPI_Send", 8192, 0.0, 1.0, 1e-5, 0.0, Bound.BANDWIDTH),
        ("MPI_Allreduce", 4, 0.75, 0.9, 2e-6, 2e-6, Bound.WAITING),
        ("MPI_Barrier", 0, 0.1, 0.49, 2e-6, 2e-6, Bound.WAITING),
        ("MPI_Init_thread", 0, 0.9, 0.1, 1.0, 1.0, Bound.START),
        ("MPI_Initialized", 0, 0.9, 0.1, 1e-8, 1e-8, Bound.LOCAL),
        ("MPI_Isend", 8, 0.9, 0.1, 1e-6, 1e-6, Bound.LATENCY),
        ("MPI_Isend", 1 << 20, 0.9, 0.1, 1e-4, 1e-6, Bound.BANDWIDTH),
    ],
)
def test_the_rule(call, size, waiting, shortest, best, small, expected) -> None:
    assert bound_of(call, size, 1.0, waiting, shortest, best, small) is expected


WAITS = (
    "Send",
    "Bsend_c",
    "Rsend",
    "Ssend",
    "Recv",
    "Sendrecv_replace",
    "Waitall",
    "Alltoallw",
    "Reduce_scatter_block",
)
WAITS += ("Win_lock_all", "Comm_split", "File_write_at_all", "Neighbor_alltoallv_c", "Allreduce", "Barrier")
WAITS += ("Fetch_and_op", "Compare_and_swap", "Accumulate", "Get_accumulate_c")
LOCAL = (
    "Alloc_mem",
    "Reduce_local",
    "Comm_rank",
    "Type_commit",
    "Info_set",
    "Intercomm",
    "Is_thread_main",
    "Get_count",
)
LOCAL += ("Comm_create_keyval", "Win_create_errhandler", "Neighbor_alltoall_init_c")
BEGINS = ("Isend", "Irecv_c", "Iallreduce", "Start", "Pready_range", "Put", "Rget", "Testall", "Improbe", "Raccumulate")


def test_which_calls_can_wait() -> None:
    assert [name for name in WAITS if not may_wait(f"MPI_{name}")] == []
    assert [name for name in LOCAL + BEGINS if may_wait(f"MPI_{name}")] == []

    def bound(name: str) -> Bound:
        return bound_of(f"MPI_{name}", 8, 1.0, 0.9, 1.0, 1e-6, 1e-6)

    assert {bound(name) for name in WAITS} == {Bound.WAITING}
    assert [name for name in LOCAL if bound(name) is not Bound.LOCAL] == []
    assert [name for name in BEGINS if bound(name) is not Bound.LATENCY] == []


def test_no_time_tells_nothing() -> None:
    assert bound_of("MPI_Send", 8, 0.0, 0.0, 1.0, 0.0, None) is Bound.UNKNOWN
    assert is_start("MPI_Finalize") and not is_start("MPI_Finalized")


def kinds(*calls_of_ranks) -> dict[str, Bound]:
    tables = [
        Table(rank=rank, size=len(calls_of_ranks), threads=(Thread(calls),))
        for rank, calls in enumerate(calls_of_ranks)
    ]
    (found,) = profiles([parse_table(table.data(), len(NAMES)) for table in tables], NAMES)
    return {one.call: one.bound for one in found.calls}


def test_a_rank_that_comes_late_makes_the_others_wait() -> None:
    """All take 2 us at their best; the last to come never waits."""
    early = [Call("MPI_Allreduce", 1000, 8, 20e-6, 2e-6)]
    late = [Call("MPI_Allreduce", 1000, 8, 2.2e-6, 2e-6)]
    assert kinds(early, early, early, late) == {"MPI_Allreduce": Bound.WAITING}


def test_ranks_that_take_turns_at_being_late_wait_too() -> None:
    each = [Call("MPI_Allreduce", 1000, 8, 10e-6, 2e-6)]
    assert kinds(each, each) == {"MPI_Allreduce": Bound.WAITING}


def test_latency_and_bandwidth_are_distinguished_by_the_small_calls_of_the_same_function() -> None:
    calls = [
        Call("MPI_Allreduce", 1000, 4, 3e-6, 2e-6),
        Call("MPI_Bcast", 10, 4, 2e-6),
        Call("MPI_Bcast", 100, 1 << 20, 1e-4),
    ]
    assert kinds(calls, calls) == {"MPI_Allreduce": Bound.LATENCY, "MPI_Bcast": Bound.BANDWIDTH}
