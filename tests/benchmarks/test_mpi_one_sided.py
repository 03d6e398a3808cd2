"""mpi.put, mpi.get and mpi.accumulate: for real on each MPI of the machine, and a planted fault for their check."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault

from seatrial.benchmarks import benchmark_named
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

OPERATIONS = ("put", "get", "accumulate")
MPIS = tuple(mpi.name for mpi in find_mpis())
two_cpus = pytest.mark.skipif("len(__import__('os').sched_getaffinity(0)) < 2", reason="two ranks want two CPUs")


def test_one_rank_cannot_reach_into_anothers_memory(live_machine: Machine) -> None:
    for operation in OPERATIONS:
        (point,) = plan_points([f"mpi.{operation}"], {"ranks": ["3"], "oversubscribe": ["true"]}, live_machine)
        assert point.refusal is not None
        assert point.refusal.reason == "one-sided operations are measured between two ranks, not 3"


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize(
    ("operation", "synchronization", "memory"),
    [
        ("put", "flush", "allocate"),
        ("get", "lock", "create"),
        ("accumulate", "fence", "allocate"),
        ("put", "pscw", "create"),
    ],
)
def test_operations_arrive(
    operation: str, synchronization: str, memory: str, mpi: str, live_machine: Machine, tmp_path: Path
) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    benchmark = benchmark_named(f"mpi.{operation}")
    settings = {"synchronization": synchronization, "memory": memory, "size_B": "24"}
    record = run_one(make_ready(benchmark, live_machine, folder, mpi=mpi, **settings), live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.checks["wrong_bytes"] == 0
    assert {(sample.series, sample.point["size_B"]) for sample in record.samples} == {("time", 24), ("bandwidth", 24)}


FAULTS = {
    "another place": (
        "put",
        "MPI_Put(buffer_, count, type, target",
        "MPI_Put(buffer_, count, type, PLANTED ? 0 : target",
    ),
    "a byte beside it": (
        "get",
        "MPI_Get(buffer_, count, type, target, 0,",
        "MPI_Get(buffer_, count, type, target, PLANTED ? 1 : 0,",
    ),
    "one too many": ("accumulate", "i = 0; i < epochs; ++i", "i = 0; i < epochs + (PLANTED ? 1 : 0); ++i"),
    "a maximum": ("accumulate", "type, MPI_SUM,", "type, PLANTED ? MPI_MAX : MPI_SUM,"),
}


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not MPIS, reason="needs an MPI (apt install mpich libmpich-dev)")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {name: {"one_sided.cpp": (text, replacement)} for name, (_, text, replacement) in FAULTS.items()}
    folder = ResultsFolder.create(tmp_path / "results")
    benchmark = with_fault(benchmark_named(f"mpi.{FAULTS[fault][0]}"), fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(benchmark, live_machine, folder, size_B="24"), live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.check == "wrong_bytes"
