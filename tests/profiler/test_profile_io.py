"""Input and output over time from tables and samples."""

from __future__ import annotations

import pytest
from profiler.made_up_samples import Samples, Series, counters, io_fields
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.profile_io import ProfileIo
from seatrial.profiler.tables.io_samples import parse_io_samples
from seatrial.profiler.tables.process_table import parse_table

CALLS = Thread([Call("MPI_Init", 1, 0, 0.1)], {}, [0.1])
MB = 1_000_000


def of(tables: list[Table], *samples: Samples) -> ProfileIo | None:
    read = [parse_table(one.data(), len(NAMES)) for one in tables]
    return profiles(read, NAMES, samples=[parse_io_samples(one.data()) for one in samples])[0].io


def rank(number: int, end: int, size: int = 2, **changes: object) -> Table:
    """Began MPI after a second with 5 MB read and 3 MB written before; wrote `end` more in ten seconds."""
    return Table(number, size, (CALLS,), pid=100 + number).but(
        io_loaded=io_fields(0.0, counters(MB, 0)),
        io_first=io_fields(1.0, counters(6 * MB, 3 * MB)),
        io_last=io_fields(10.0, counters(8 * MB, 3 * MB + end, MB, end // 2)),
        **changes,
    )


def series(number: int, at: dict[int, int]) -> Series:
    return Series(100 + number, number, {k: counters(6 * MB, 3 * MB + value) for k, value in at.items()})


def test_not_requested() -> None:
    assert of([Table(threads=(CALLS,))]) is None


def test_without_samples_the_totals_are_known() -> None:
    io = of([rank(0, 40 * MB), rank(1, 2 * MB)])
    assert io is not None and io.bins == 0 and io.nodes == ()
    (_, first), (_, second) = io.known
    assert (first.read_B, first.written_B, first.device_read_B) == (2 * MB, 40 * MB, MB)
    assert (first.start_read_B, first.start_written_B, first.is_to_end) == (5 * MB, 3 * MB, True)
    assert second.device_written_B == MB and io.total("written_B") == 42 * MB


def test_over_time_it_adds_up_and_stands_where_it_was() -> None:
    at = [1.0, 3.0, 5.0, 7.0, 9.0]
    node = [(0, 512 * k, 0, 0) if k != 2 else (0, 1024, 2**64 - 1, 2**64 - 1) for k in range(5)]
    samples = Samples(at, node, [series(0, {0: 0, 1: 0, 2: 10 * MB, 3: 10 * MB, 4: 40 * MB})], period_s=2.0)
    io = of([rank(0, 40 * MB), rank(1, 2 * MB)], samples)
    assert io is not None and (io.width_s, io.bins) == (2.0, 5)
    written = io.ranks[0].series
    assert written is not None
    assert list(written.written_B) == pytest.approx([0, 5 * MB, 5 * MB, 15 * MB, 15 * MB])
    assert sum(io.over_time("written_B")) == pytest.approx(42 * MB)
    (one,) = io.nodes
    assert one.disk_written_B is not None and sum(one.disk_written_B) == pytest.approx(512 * 4)
    assert one.nfs_read_B is not None and sum(one.nfs_read_B) == 0


def test_a_rank_that_was_killed_counts_to_its_last_sample() -> None:
    samples = Samples([1.0, 3.0, 5.0], [], [series(0, {0: 0, 1: 7 * MB})], period_s=2.0)
    io = of([rank(0, 0, 1, state=1).but(io_last=())], samples)
    assert io is not None
    ((_, totals),) = io.known
    assert totals.written_B == 7 * MB and not totals.is_to_end and io.nodes[0].disk_read_B is None


def test_what_may_not_be_read_is_null_and_said() -> None:
    unreadable = rank(0, 0).but(io_loaded=(), io_first=(), io_last=(), io_error=13)
    io = of([unreadable, rank(1, 2 * MB)])
    assert io is not None and io.ranks[0].totals is None and io.ranks[0].error == "Permission denied"
    assert [one.rank for one in io.unknown] == [0] and len(io.known) == 1


def test_samples_of_another_program_with_the_same_number_are_none_of_it() -> None:
    other = Samples([1.0, 3.0], [], [series(0, {0: 0, 1: 99 * MB})], period_s=2.0)
    later = other.but(ranks=[Series(100, 0, other.ranks[0].counters, 1.7e9 - 50)])
    io = of([rank(0, 40 * MB, 1)], later)
    assert io is not None and io.known[0][1].written_B == 40 * MB


def test_two_collectors_of_a_node_follow_each_other() -> None:
    first = Samples([1.0, 3.0], [(0, 0, 0, 0), (0, 1000, 0, 0)], period_s=2.0)
    second = Samples([5.0, 7.0], [(0, 3000, 0, 0), (0, 6000, 0, 0)], period_s=2.0)
    io = of([rank(0, 0, 1)], second, first)
    assert io is not None and len(io.nodes) == 1
    assert io.nodes[0].disk_written_B is not None and sum(io.nodes[0].disk_written_B) == pytest.approx(6000)
