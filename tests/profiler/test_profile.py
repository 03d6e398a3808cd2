"""Tables of many ranks merged: sums, shares, pairs, places, time, and what is missing."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.capture.run import node_folder, on_node
from seatrial.profiler.cause import Frame
from seatrial.profiler.profile import Bound, Pair, RankState
from seatrial.profiler.tables.process_table import parse_table


def merged(*tables: Table, **more):
    return profiles([parse_table(table.data(), len(NAMES)) for table in tables], NAMES, **more)


def ring(size: int, rank: int, count: int = 5, each: int = 1000) -> Thread:
    """Each rank sends to the next and receives of the one before."""
    to, of = (rank + 1) % size, (rank - 1) % size
    row = {to: [0, 0, 0, 0]}
    row.setdefault(of, [0, 0, 0, 0])
    row[to][0] += count
    row[to][1] += count * each
    row[of][2] += count
    row[of][3] += count * each
    calls = [Call("MPI_Send", count, each, 0.1), Call("MPI_Recv", count, each, 0.2), Call("MPI_Allreduce", 4, 8, 0.5)]
    return Thread(calls, {k: tuple(v) for k, v in row.items()}, [0.35] * 10)


def rank(number: int, size: int = 4, **changes) -> Table:
    return Table(rank=number, size=size, threads=(ring(size, number),), pid=100 + number).but(**changes)


def test_sums_go_over_ranks() -> None:
    (found,) = merged(*(rank(k) for k in (2, 0, 3, 1)))
    assert found.ranks == 4 and found.wall_s == pytest.approx(40) and found.elapsed_s == pytest.approx(10)
    assert found.mpi_s == pytest.approx(4 * 3.5) and found.mpi_share == pytest.approx(0.35)
    assert [(one.call, one.count, one.bytes) for one in found.calls] == [
        ("MPI_Allreduce", 16, 128),
        ("MPI_Recv", 20, 20_000),
        ("MPI_Send", 20, 20_000),
    ]
    assert found.calls[0].time_s == pytest.approx(8) and found.calls[0].most_rank_s == pytest.approx(2)
    assert sum(one.time_s for one in found.sizes) == pytest.approx(found.mpi_s)
    assert list(found.matrix) == [Pair(k, (k + 1) % 4, 5, 5000) for k in range(4)]
    assert [(one.rank, one.sent_B, one.received_B, one.collective_B) for one in found.per_rank] == [
        (k, 5000, 5000, 32) for k in range(4)
    ]
    assert found.per_rank[0].compute_s == pytest.approx(6.5)
    assert found.overhead_s == pytest.approx(4 * 14 * 8e-9)
    assert found.trust.is_complete and found.trust.overflow == 0 and found.trust.unmatched_B == 0


def test_threads_of_a_rank_are_one_rank() -> None:
    threads = (
        Thread([Call("MPI_Send", 3, 10)], {0: (3, 30, 0, 0)}),
        Thread([Call("MPI_Recv", 3, 10)], {0: (0, 0, 3, 30)}),
    )
    (found,) = merged(Table(threads=threads))
    assert list(found.matrix) == [Pair(0, 0, 3, 30)] and found.per_rank[0].threads == 2
    assert found.per_rank[0].calls == 6


def test_a_missing_rank_is_reported_and_its_messages_come_from_the_receivers() -> None:
    (found,) = merged(rank(0), rank(1), rank(3))
    assert found.ranks == 4 and found.trust.missing == (2,) and not found.trust.is_complete
    assert Pair(2, 3, 5, 5000) in list(found.matrix) and Pair(1, 2, 5, 5000) in list(found.matrix)
    assert found.trust.unmatched_B == 0


def test_ends_that_disagree_are_reported() -> None:
    sender = rank(1, threads=(Thread([Call("MPI_Send", 5, 1000)], {2: (5, 5100, 0, 0), 0: (0, 0, 5, 5000)}),))
    (found,) = merged(rank(0), sender, rank(2), rank(3))
    assert found.trust.unmatched_B == 100


def test_messages_that_cancel_out_in_the_sum_are_still_reported() -> None:
    """Ten bytes more to one rank and ten less to another."""
    row = {1: (1, 110, 0, 0), 2: (1, 90, 0, 0)}
    tables = [Table(rank=0, size=3, threads=(Thread([Call("MPI_Send")], row),))]
    tables += [Table(rank=k, size=3, threads=(Thread([Call("MPI_Recv")], {0: (0, 0, 1, 100)}),)) for k in (1, 2)]
    (found,) = merged(*tables)
    assert found.trust.unmatched_B == 20


def test_ranks_that_did_not_finish() -> None:
    (found,) = merged(rank(0), rank(1, state=1), rank(2, state=3), rank(3, lost=7, unknown_length=2))
    assert found.trust.unfinished == (1, 2) and found.trust.lost_calls == 7 and found.trust.unknown_length == 2
    assert [one.state for one in found.per_rank][1:3] == [RankState.RUNNING, RankState.ABORTED]
    (whole,) = merged(*(rank(k) for k in range(3)), rank(3, lost=7))
    assert not whole.trust.is_complete and whole.trust.overflow == 7


def test_nothing_that_began_mpi_gives_no_profile() -> None:
    assert merged() == []
    assert merged(Table(rank=-1, size=0, state=0, threads=(), wall_s=0)) == []


def test_ranks_without_a_call() -> None:
    found, other = merged(Table(threads=(), wall_s=0), Table(threads=(), loaded_at_s=1.6e9))
    assert other.wall_s == 0 and other.trust.is_complete
    assert found.calls == () and found.over_time is None and found.mpi_share == 0 and found.others == 1


def test_programs_one_after_another_are_worlds_of_their_own() -> None:
    first = [rank(k, loaded_at_s=1000.0 + k / 10) for k in range(4)]
    second = [rank(k, loaded_at_s=1020.0 + k / 10, wall_s=20.0) for k in range(4)]
    other = [Table(rank=k, size=2, loaded_at_s=1000.05, wall_s=3.0) for k in range(2)]
    found = merged(*second, *first, *other)
    assert [(one.ranks, one.wall_s) for one in found] == [
        (4, pytest.approx(80)),
        (4, pytest.approx(40)),
        (2, pytest.approx(6)),
    ]
    assert all(one.trust.is_complete and one.others == 2 for one in found)


def test_concurrent_programs_are_distinguished_by_their_jobs() -> None:
    """All are loaded in one order, as it comes; hydra's ranks know their parent alone."""
    both = [
        rank(k, loaded_at_s=1000.0 + k / 10 + j / 100, job=f"pmix {j}", wall_s=10.0 + j)
        for k in range(4)
        for j in (1, 2)
    ]
    found = merged(*both)
    assert [(one.ranks, one.wall_s) for one in found] == [(4, pytest.approx(48)), (4, pytest.approx(44))]
    hydra = [
        rank(k, loaded_at_s=1000.0 + k / 10 + j / 100, job=f"parent {j}", wall_s=10.0 + j)
        for k in range(4)
        for j in (1, 2)
    ]
    assert [one.wall_s for one in merged(*(one.but(host="n") for one in hydra))] == [
        pytest.approx(48),
        pytest.approx(44),
    ]
    hosts = [rank(k, host=f"n{k // 2}", job=f"parent {7 + k // 2}") for k in range(4)]
    (one,) = merged(*hosts)
    assert one.trust.is_complete and len({rank.host for rank in one.per_rank}) == 2


def test_an_unknown_library_tells_no_sizes() -> None:
    (found,) = merged(*(rank(k, family=0) for k in range(4)))
    assert not found.trust.has_sizes and found.trust.families == ("unknown",)
    assert {one.bound for one in found.calls} == {Bound.UNKNOWN}


def test_processes_of_an_unknown_library_have_no_rank_and_are_numbered() -> None:
    thread = Thread(calls=[Call("MPI_Send", 5, mean_s=0.1)])
    table = Table(rank=-1, size=0, family=0, threads=(thread,), host="n1")
    tables = [replace(table, pid=20 + k) for k in range(3)]
    (found,) = merged(*tables)
    assert found.ranks == 3 and [one.rank for one in found.per_rank] == [0, 1, 2] and found.trust.is_complete
    assert not found.trust.has_sizes and found.calls[0].count == 15


def test_places_are_the_same_wherever_a_library_was_mapped() -> None:
    def at(begin: int, number: int) -> Table:
        calls = [Call("MPI_Send", 2, 8, 0.1, site=begin + 0x20), Call("MPI_Send", 1, 9, 0.1, site=begin + 0x20)]
        calls += [Call("MPI_Recv", 1, 8, 0.1, site=0x10), Call("MPI_Wait", 1, 0, 0.05, site=begin + 0x99)]
        lines = f"{begin:x} {begin + 0x1000:x} 3000 /opt/app\n{begin + 0x2000:x} {begin + 0x3000:x} 0 /lib/x.so\n"
        return Table(rank=number, size=2, threads=(Thread(calls),), modules=lines)

    asked = {}

    def resolve(module, offsets):
        asked[module] = list(offsets)
        return {0x3020: (Frame("exchange", "app.c", 12), Frame("main", "app.c", 40))}

    (found,) = merged(at(0x10000, 0), at(0x7F0000000, 1), resolve=resolve)
    send, receive, wait = found.callsites
    assert (send.call, send.module, send.offset, send.count, send.ranks) == ("MPI_Send", "/opt/app", 0x3020, 6, 2)
    assert send.bytes == 2 * 25 and send.frames[0] == Frame("exchange", "app.c", 12)
    assert (receive.module, receive.offset, receive.frames) == ("", 0, ())
    assert (wait.offset, wait.frames) == (0x3099, ())
    assert asked == {"/opt/app": [0x3020, 0x3099]}


def test_time_lies_where_it_was_spent() -> None:
    """Rank 1 starts 5 s later and has coarser bins; a call of 3 s is booked in the second in which it ended."""
    first = Thread([Call("MPI_Recv", 1, 8, 3.0)], over_time=[0, 0, 3.0])
    second = Thread([Call("MPI_Recv", 1, 8, 2.0)], over_time=[2.0, 0], bin_s=2.0)
    (found,) = merged(
        Table(rank=0, size=2, threads=(first,), wall_s=10.0),
        Table(rank=1, size=2, threads=(second,), wall_s=5.0, loaded_at_s=1.7e9 + 5),
    )
    time = found.over_time
    assert time.width_s == pytest.approx(2.0) and len(time.mpi_s) == 5
    assert sum(time.mpi_s) == pytest.approx(5.0) and sum(time.wall_s) == pytest.approx(15.0)
    assert time.mpi_s == pytest.approx((2.0, 1.0, 1.0, 1.0, 0.0), abs=1e-6)
    assert [(lane.first, lane.last) for lane in time.lanes] == [(0, 0), (1, 1)]
    assert time.lanes[0].shares == pytest.approx((1.0, 0.5, 0.0, 0.0, 0.0)) and time.lanes[1].shares[0] is None
    assert time.most[0] == pytest.approx(1.0) and time.least[4] == 0.0


def test_what_a_killed_profile_left_in_memory_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.profiler.capture.run._MEMORY", tmp_path)
    ours = node_folder(tmp_path / "a")
    assert ours is not None and ours == node_folder(tmp_path / "a") and ours != node_folder(tmp_path / "b")
    pid = f"-{os.getpid()}-"
    left = tmp_path / ours.name.replace(pid, "-999999999-")
    elsewhere = tmp_path / re.sub(r"^(seatrial-\d+-)[0-9a-f]{8}", r"\g<1>00000000", left.name)  # another node's job
    for folder in (ours, left, elsewhere, tmp_path / "seatrial-other"):
        folder.mkdir()
    (left / "rank.mpi").write_text("x")
    with on_node(node_folder(tmp_path / "b"), tmp_path):
        assert ours.exists() and elsewhere.exists() and not left.exists()
