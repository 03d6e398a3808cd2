"""Threads of one rank that call MPI at once: every call and message is counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import built, profiler, run

from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler

pytestmark = [pytest.mark.real, pytest.mark.parallel]

PROGRAM = Path(__file__).with_name("mpi_thread_program.c")
LATE = Path(__file__).with_name("mpi_late_mrecv.c")
ROUNDS = 40


@pytest.mark.parametrize("name", FOUR[:2])
def test_a_message_counts_whose_handle_another_thread_has_already(name: str, tmp_path: Path) -> None:
    """MPICH takes the handles of messages and of requests from the same numbers."""
    mpi = library(name)
    late = tmp_path / "late.so"
    command = [*c_compiler(first_compiler()), "-shared", "-fPIC", *mpi.compile_flags, str(LATE), "-o", str(late)]
    subprocess.run([*command, *mpi.link_flags], check=True)
    more = {"LD_PRELOAD": f"{profiler()}:{late}"}
    for one in run(mpi, built(mpi, PROGRAM), tmp_path / "t", 2, str(ROUNDS), more=more):
        messages, received_B = 11 * ROUNDS, (7 + 50) * ROUNDS
        assert one.peers == {1 - one.rank: (messages, received_B, messages, received_B)}
        assert one.calls["MPI_Mrecv"] == (ROUNDS, 7 * ROUNDS) and one.calls["MPI_Waitall"][0] == 10 * ROUNDS
        assert one.calls["MPI_Waitall"][1] == 50 * ROUNDS and (one.lost_calls, one.unknown_length) == (0, 0)
