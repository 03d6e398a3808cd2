"""Waiting separated from transfer by barriers of the profiler, clocks, and calls that fail or are very large."""

from __future__ import annotations

from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import run, seen, traffic_program
from usual import usually, usually_first

from seatrial.profiler.tables.header import ProcessState

pytestmark = pytest.mark.real

WAITED, TRANSFERRED = 1, 2
LATE_S = 0.02
REDUCE = "MPI_Allreduce"


@pytest.mark.quiet
@pytest.mark.parametrize("name", usually(FOUR, lambda name: name in FOUR[:2]))
def test_waiting_for_a_late_rank_is_separated_from_transfer(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    found = run(mpi, traffic_program(mpi), tmp_path / "late", 2, "late", more={"SEATRIAL_PROFILE_WAIT": "3"})
    early, late = found
    for one in found:
        assert one.calls[REDUCE] == (23, 12 * 8 + 11 * 24) and "MPI_Barrier" not in one.calls
        # Of 15 on the world the 1st, 4th, 7th, 10th and 13th; of 3 on the copy the first; on itself none.
        assert one.parts[REDUCE, WAITED][0] == one.parts[REDUCE, TRANSFERRED][0] == 6
        assert abs(one.over_time_s / one.mpi_s - 1) < 1e-9, "a barrier's time is the call's"
    waited, transferred = (early.parts[REDUCE, part][1] for part in (WAITED, TRANSFERRED))
    # Of a rank that loses its processor to others the transfer takes longer too, so it need not be far below.
    assert waited > 0.9 * 4 * LATE_S and transferred < 0.75 * waited and late.parts[REDUCE, WAITED][1] < 0.75 * waited
    assert early.mpi_s > 0.9 * 12 * LATE_S, "what is waited without a barrier is in the calls themselves"


@pytest.mark.parallel
@pytest.mark.parametrize("name", FOUR[:2])
def test_every_collective_of_all_ranks_may_have_a_barrier_and_none_is_changed(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    whole = run(mpi, traffic_program(mpi), tmp_path / "without", 3, "collectives")
    split = run(mpi, traffic_program(mpi), tmp_path / "with", 3, "collectives", more={"SEATRIAL_PROFILE_WAIT": "1"})
    for before, after in zip(whole, split, strict=True):
        assert before.calls == after.calls and before.sizes == after.sizes and not before.parts
        sampled = {call for call, _ in after.parts}
        assert {"MPI_Bcast", "MPI_Reduce", "MPI_Alltoallw", "MPI_Scan", "MPI_Gatherv", REDUCE} <= sampled
        assert not {call for call in sampled if "MPI_I" in call or "Neighbor" in call or "Wait" in call}
    between = run(
        mpi, traffic_program(mpi), tmp_path / "inter", 3, "between_groups", more={"SEATRIAL_PROFILE_WAIT": "1"}
    )
    assert all(not one.parts for one in between), "an intercommunicator has none"


@pytest.mark.parallel
@pytest.mark.parametrize("name", FOUR[:2])
def test_threads_and_fortran_rules_hold_with_barriers(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    for one in run(mpi, traffic_program(mpi), tmp_path / "t", 2, "threads", more={"SEATRIAL_PROFILE_WAIT": "1"}):
        assert one.calls["MPI_Send"] == one.calls["MPI_Wait"] == (2000, 500 * 4 * (1 + 2 + 3 + 4))


@pytest.mark.parallel
@pytest.mark.parametrize("name", FOUR[:2])
def test_a_rank_that_cannot_record_keeps_all_from_barriers(name: str, tmp_path: Path) -> None:
    """Each rank has a folder of its own, one of which is not there."""
    mpi = library(name)
    program = tmp_path / "program"
    script = 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; SEATRIAL_PROFILE_DIR="$1/$rank" exec "$2" collectives'
    program.write_text(f"#!/bin/sh\nset -- '{tmp_path}/own' '{traffic_program(mpi)}'\n{script}\n", encoding="ascii")
    program.chmod(0o755)
    (tmp_path / "own" / "0").mkdir(parents=True)
    run(mpi, program, tmp_path / "unused", 2, more={"SEATRIAL_PROFILE_WAIT": "1"})
    (table,) = (tmp_path / "own" / "0").glob("*.mpi")
    assert not seen(table).parts


@pytest.mark.parallel
@pytest.mark.parametrize("name", FOUR[:2])
def test_the_systems_clock_takes_the_place_of_a_counter_that_is_not_constant(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    for one in run(mpi, traffic_program(mpi), tmp_path / "c", 2, "late", more={"SEATRIAL_PROFILE_CLOCK": "monotonic"}):
        assert one.state is ProcessState.FINALIZED and one.ticks_per_s == 1e9
        assert 12 * LATE_S < one.wall_s < 60 and 0 < one.mpi_s <= one.wall_s
        assert abs(one.over_time_s / one.mpi_s - 1) < 1e-9


@pytest.mark.parallel
@pytest.mark.parametrize("name", usually(FOUR, lambda name: name in FOUR[:2]))
def test_of_requests_that_fail_together_those_that_arrived_are_counted(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    for r, one in enumerate(run(mpi, traffic_program(mpi), tmp_path / "failing", 2, "failing")):
        assert one.calls["MPI_Waitall"][1] == 24 and one.calls["MPI_Isend"] == (2, 56)
        assert one.peers == {1 - r: (2, 56, 1, 24)} and one.unknown_length == one.lost_calls == 0


@pytest.mark.parallel
@pytest.mark.parametrize("name", usually_first(FOUR[1::2]))
def test_messages_of_more_than_2_GiB(name: str, tmp_path: Path) -> None:
    available = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    if int(available.split()[1]) < 4 << 20:
        pytest.skip("needs 4 GiB of free memory")
    mpi = library(name)
    (one,) = run(mpi, traffic_program(mpi), tmp_path / "huge", 1, "huge")
    assert one.calls["MPI_Sendrecv_c"] == (1, 2049 << 20) and one.calls["MPI_Bcast_c"] == (1, 3 << 30)
    assert one.peers == {0: (1, 2049 << 20, 1, 2049 << 20)}
