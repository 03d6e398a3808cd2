"""mpi.init: for real on each MPI of the machine, and a planted fault for its check."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_one, tampered

from seatrial.benchmarks import benchmark_named
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import State
from seatrial.store.folder import ResultsFolder

MPIS = tuple(mpi.name for mpi in find_mpis())
two_cpus = pytest.mark.skipif("len(__import__('os').sched_getaffinity(0)) < 2", reason="two ranks want two CPUs")


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", MPIS)
def test_time_and_memory_of_two_ranks(mpi: str, live_machine: Machine, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(benchmark_named("mpi.init"), live_machine, folder, mpi=mpi, ranks="2")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(ready.point.benchmark, live_machine, {}, record.samples)}
    assert 0 < found["time_mean"] <= found["time_max"] < record.wall_s
    for name in ("memory", "memory_connected"):
        assert 100_000 < found[f"{name}_mean"] <= found[f"{name}_max"]


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not MPIS, reason="needs an MPI (apt install mpich libmpich-dev)")
def test_a_planted_fault_is_found(live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    edits = {"init.cpp": ("&sent[static_cast<std::size_t>(to)]", "&sent[0]")}
    benchmark = tampered(benchmark_named("mpi.init"), tmp_path, edits, monkeypatch)
    record = run_one(make_ready(benchmark, live_machine, folder, ranks="2"), live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.check == "wrong_bytes"
