"""Time in calls that enter the kernel is counted outside MPI only, by real programs with each library."""

from __future__ import annotations

from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import built, run

from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.tables.process_table import read_table

pytestmark = [pytest.mark.real, pytest.mark.parallel]

PROGRAM = Path(__file__).with_name("mpi_system_program.c")


@pytest.mark.parametrize("name", FOUR[:2])
def test_calls_on_files_are_counted_outside_mpi(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    run(mpi, built(mpi, PROGRAM), tmp_path / "tables", 2, str(tmp_path / "file"), more={"SEATRIAL_PROFILE_IO": "0.2"})
    tables = [read_table(path, len(function_names())) for path in (tmp_path / "tables").glob("*.mpi")]
    assert sorted(table.rank or 0 for table in tables) == [0, 1]
    for table in tables:
        assert table.system_uses is not None and table.initialized_s is not None
        assert table.noncontiguous_B == 2 * 4 * 8, "bytes of a datatype with gaps"
        used = {use.kind.value: use for use in table.system_uses}
        assert used["sync"].calls == (20 if table.rank == 0 else 0)
        assert used["open"].calls == 22 and used["close"].calls == 22, "with fopen and fclose"
        assert used["lock"].calls == 2, "fcntl(F_SETLK) does not wait"
        assert used["thread"].calls == 1, "pthread_join"
        assert table.extension is not None
        kernel = table.extension.kernel
        assert kernel.loops >= 64 and kernel.least_loop_ns > 0, "the loop that shows how fast the CPU is"
        assert kernel.children_ns is not None and kernel.children_ns > 0, "of system()"
        assert used["metadata"].calls == 20 and used["sleep"].calls == 1 and used["child"].calls == 1
        assert 20 * 4096 <= used["write"].bytes < 21 * 4096 and used["sleep"].time_s >= 0.02
        assert all(use.time_s > 0 for use in table.system_uses if use.calls)


def test_nothing_is_timed_without_io(tmp_path: Path) -> None:
    mpi = library(FOUR[0])
    run(mpi, built(mpi, PROGRAM), tmp_path / "tables", 2, str(tmp_path / "file"))
    tables = [read_table(path, len(function_names())) for path in (tmp_path / "tables").glob("*.mpi")]
    assert len(tables) == 2 and all(table.system_uses is None for table in tables)
