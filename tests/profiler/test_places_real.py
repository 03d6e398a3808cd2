"""Places of real programs: lines of Python, call paths, and the rows that the places with most time keep."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, built, profiler

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import profiler_variables
from seatrial.profiler.cause import CallSite
from seatrial.profiler.profile import Profile
from seatrial.profiler.symbols.symbols import Symbols
from seatrial.profiler.tables.header import SLOTS
from seatrial.profiler.tables.process_table import read_table

pytestmark = [pytest.mark.real, pytest.mark.parallel]

PATHS = Path(__file__).with_name("mpi_places_program.c")
x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 processor")


def profiled(
    mpi: Mpi, folder: Path, command: list[str], *, paths: int = 0, rows: int = 0, more: Mapping[str, str] | None = None
) -> Profile:
    """The profile of one rank without a launcher."""
    tables = folder / "tables"
    tables.mkdir()
    around = {**os.environ, **ROOT_MAY, **dict(mpi.variables), **(more or {})}
    around |= profiler_variables(profiler(), tables, around, path_frames=paths, rows=rows)
    done = subprocess.run(command, env=around, check=False, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    names = function_names()
    read = [read_table(path, len(names)) for path in tables.glob("*.mpi")]
    (one,) = profiles(read, names, Symbols.of_this_machine().frames)
    return one


def functions(site: CallSite) -> list[str]:
    return [one.frames[0].function if one.frames else "?" for one in site.path]


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
@x86_64
def test_paths_without_frame_pointers(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    found = profiled(mpi, tmp_path, [str(built(mpi, PATHS)), "paths"], paths=4)
    sites = {tuple(functions(site)[:3]): site for site in found.callsites if site.call == "MPI_Allreduce"}
    assert sites[("leaf", "with_array", "main")].count == 1000
    assert sites[("leaf", "without_array", "main")].count == 2000
    assert sites[("leaf", "with_alloca", "main")].count == 500
    assert all(site.frames[0].function == "leaf" for site in sites.values())
    assert found.trust.without_path == 0


@pytest.mark.parametrize("part", ["destroyed", "tiny", "signal", "fiber"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
@x86_64
def test_stacks_that_cannot_be_followed_harm_nothing(name: str, part: str, tmp_path: Path) -> None:
    mpi = library(name)
    found = profiled(mpi, tmp_path, [str(built(mpi, PATHS)), part], paths=8)
    (total,) = (one.count for one in found.calls if one.call == "MPI_Allreduce")
    assert total == 100
    assert all(site.frames[0].function == "leaf" for site in found.callsites if site.call == "MPI_Allreduce")


@x86_64
def test_places_with_most_time_have_rows_however_many_came_before(tmp_path: Path) -> None:
    mpi = library("openmpi")
    found = profiled(mpi, tmp_path, [str(built(mpi, PATHS)), "many"])
    barriers = [site for site in found.callsites if site.call == "MPI_Barrier"]
    assert sum(site.count for site in barriers) == 10_000 + 20 * 5000, "none is lost, none is counted twice"
    hot = [site for site in barriers if site.count >= 4900 and site.offset == 0]
    assert found.trust.without_site > 6000 and found.trust.lost_calls == 0
    tables = [read_table(path, len(function_names())) for path in (tmp_path / "tables").glob("*.mpi")]
    rows = tables[0].threads[0].slots
    hot_rows = rows[(rows["site"] != 0) & (rows["count"] > 4900)]
    assert len(hot_rows) == 20, hot


@x86_64
def test_more_rows_on_request(tmp_path: Path) -> None:
    mpi = library("openmpi")
    found = profiled(mpi, tmp_path, [str(built(mpi, PATHS)), "many"], rows=4 * SLOTS)
    assert found.trust.overflow == 0
    assert sum(site.count for site in found.callsites if site.call == "MPI_Barrier") == 10_000 + 20 * 5000


SCRIPT = """
from mpi4py import MPI
import numpy

def exchange(times):
    for _ in range(times):
        MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, numbers)

class Solver:
    def step(self):
        MPI.COMM_WORLD.Barrier()

numbers = numpy.zeros(4)
exchange(10)
[Solver().step() for _ in range(3)]
MPI.COMM_WORLD.Barrier()
"""
PYTHONS = [sys.executable, *os.environ.get("SEATRIAL_TEST_PYTHONS", "").split()]
"""Further interpreters with mpi4py and numpy, separated by blanks."""


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="needs a Python from 3.9 to 3.13")
@pytest.mark.parametrize("python", PYTHONS)
def test_calls_of_mpi4py_are_at_lines_of_the_script(python: str, tmp_path: Path) -> None:
    script = tmp_path / "solvér.py"
    script.write_text(SCRIPT)
    mpi = library("openmpi")
    found = profiled(mpi, tmp_path, [python, str(script)], more={"MPI4PY_MPIABI": "openmpi"})
    places = {(site.call, site.frames[0].line): site for site in found.callsites if site.frames}
    reduced = places["MPI_Allreduce", 7]
    assert reduced.count == 10 and reduced.frames[0].file == str(script)
    assert reduced.frames[0].function == "exchange"
    assert places["MPI_Barrier", 11].count == 3 and places["MPI_Barrier", 16].count == 1
    assert places["MPI_Init_thread", 2].frames[0].function == "<module>"


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="needs a Python from 3.9 to 3.13")
def test_paths_of_python_are_lines_of_python(tmp_path: Path) -> None:
    script = tmp_path / "solver.py"
    script.write_text(SCRIPT)
    found = profiled(
        library("openmpi"), tmp_path, [sys.executable, str(script)], paths=3, more={"MPI4PY_MPIABI": "openmpi"}
    )
    reduced = next(site for site in found.callsites if site.call == "MPI_Allreduce")
    assert reduced.frames[0].line == 7
    lines = [one.frames[0].line for one in reduced.path if not one.module]
    assert lines == [7, 14]
