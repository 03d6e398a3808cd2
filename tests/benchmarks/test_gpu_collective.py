"""gpu.collective: through the host on PoCL with each MPI, for real; by a made-up NCCL on a made-up driver; planted
faults of both."""

from __future__ import annotations

import os
from itertools import cycle
from pathlib import Path

import pytest
from benchmarks.made_up_libraries import compiled
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine
from msgspec.structs import replace

from seatrial.benchmarks import benchmark_named
from seatrial.engine import repeat
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

COLLECTIVE = benchmark_named("gpu.collective")
MPIS = [mpi.name for mpi in find_mpis()]
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv")
STAGED = {"library": "mpi", "buffers": "staged", "backend": "opencl", "largest_B": "64"}
NCCL = {"backend": "cuda", "largest_B": "64"}
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")
on_both = pytest.mark.parametrize(("op", "mpi"), list(zip(OPERATIONS, cycle(MPIS), strict=False)))


@pytest.fixture(scope="module")
def made_up_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "made_up_cuda.c", "made_up_nccl.c")


@pytest.fixture
def made_up_gpus(made_up_libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(made_up_libraries))


def test_one_rank_per_gpu() -> None:
    (alone,) = plan_points(["gpu.collective"], {}, made_up_machine(cores=8))
    assert alone.parameters["ranks"] == 2
    bare = made_up_machine(cores=8)
    gpus = replace(bare, devices=(*bare.devices, *(Device(f"gpu-{n}", DeviceKind.GPU, "a GPU") for n in range(4))))
    (point,) = plan_points(["gpu.collective"], {}, gpus)
    assert point.parameters["ranks"] == 4 and len(point.cpus) == 4


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"buffers": "staged"}, "is for library=mpi"),
        ({"size_B": "1001"}, "use a multiple of 4 B"),
        ({"size_B": "12", "op": "all_gather"}, "use a multiple of 8 B"),
        ({"largest_B": "8", "op": "alltoall", "datatype": "double"}, r"too small for one element of each rank (16 B)"),
        ({"nodes": "2"}, "several nodes"),
        ({"ranks": "16"}, "16 ranks need 16 CPUs"),
    ],
)
def test_points_that_mean_nothing(settings: dict[str, str], why: str) -> None:
    given = {name: [value] for name, value in settings.items()}
    (point,) = plan_points(["gpu.collective"], given, made_up_machine(cores=4))
    assert point.refusal is not None and why in point.refusal.reason


def bus_share(record: RepeatRecord) -> float:
    """Bus bandwidth over algorithm bandwidth, the same in all samples."""
    (share,) = {sample.work["bus_bytes"] / sample.work["bytes"] for sample in record.samples}
    return share


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("two_devices")
@on_both
def test_through_the_host(op: str, mpi: str, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(COLLECTIVE, live_machine, folder, mpi=mpi, op=op, **STAGED)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert bus_share(record) == (0.5 if op in ("all_gather", "reduce_scatter", "alltoall") else 1.0)
    assert {sample.point["in_place"] for sample in record.samples} == {False}
    figures = {
        reading.figure.name for reading in readings(COLLECTIVE, live_machine, ready.point.parameters, record.samples)
    }
    assert {"time", "algbw", "busbw", "arrival_spread"} <= figures


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("made_up_gpus")
@on_both
def test_by_nccl(op: str, mpi: str, live_machine: Machine, folder: ResultsFolder) -> None:
    datatype = {"all_reduce": "double", "reduce": "int8", "reduce_scatter": "int64"}.get(op, "float")
    ready = make_ready(COLLECTIVE, live_machine, folder, mpi=mpi, op=op, datatype=datatype, **NCCL)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["notes"]["library"] == "NCCL 2.28.9"
    assert {sample.point["in_place"] for sample in record.samples} == (
        {False} if op in ("alltoall", "sendrecv") else {False, True}
    )


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("made_up_gpus")
@pytest.mark.parametrize(
    ("fault", "op"),
    [
        ("nothing", "all_reduce"),
        ("half", "all_reduce"),
        ("nothing", "sendrecv"),
        ("half", "alltoall"),
        ("wrong-rank", "all_gather"),
        ("wrong-rank", "reduce_scatter"),
        ("nothing", "broadcast"),
    ],
)
def test_a_library_that_computes_something_else_is_found(
    fault: str, op: str, live_machine: Machine, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_UP_NCCL", fault)
    monkeypatch.setenv("MADE_UP_RANK", "1")
    record = run_one(make_ready(COLLECTIVE, live_machine, folder, op=op, **NCCL), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check == "wrong_data", record.outcome


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("made_up_gpus")
def test_a_rank_that_arrives_late_is_no_slow_link(
    live_machine: Machine, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 100 ms are the spread of arrivals, not the time of the operation."""
    monkeypatch.setenv("MADE_UP_NCCL", "late")
    monkeypatch.setenv("MADE_UP_RANK", "1")
    settings = {"backend": "cuda", "size_B": "64"}
    record = run_one(make_ready(COLLECTIVE, live_machine, folder, **settings), live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    late = record.seen["notes"]["arrivals"]
    assert isinstance(late, dict) and late["rank"] == 1 and late["times"] == late["samples"]
    assert 0.1 <= late["apart_s"] < 0.2
    assert all(sample.elapsed_s < sample.work["ops"] * 0.05 + 0.05 for sample in record.samples)


@pytest.mark.usefixtures("made_up_gpus")
@pytest.mark.real
def test_an_mpi_that_does_not_know_devices_says_so(live_machine: Machine, folder: ResultsFolder) -> None:
    """Before it is killed by the first message: Debian's are built without."""
    for mpi in MPIS:
        settings = {"library": "mpi", "backend": "cuda", "size_B": "64"}
        record = run_one(make_ready(COLLECTIVE, live_machine, folder, mpi=mpi, **settings), live_machine, folder)
        assert record.outcome.state is State.UNSUPPORTED and record.outcome.reason.startswith("mpi: rank 0: ")
        assert "buffers=staged" in record.outcome.reason


@pytest.mark.usefixtures("two_devices")
@pytest.mark.real
def test_what_opencl_cannot_do_is_said(live_machine: Machine, folder: ResultsFolder) -> None:
    for library, need in (("nccl", "library: "), ("mpi", "buffers: ")):
        settings = {"library": library, "backend": "opencl", "size_B": "64"}
        record = run_one(make_ready(COLLECTIVE, live_machine, folder, **settings), live_machine, folder)
        assert record.outcome.state is State.UNSUPPORTED and record.outcome.reason.startswith(need), record.outcome
        assert "staged" in record.outcome.reason


FAULTS: dict[str, Edits] = {
    "results that stay on the host": {
        "mpi/mpi_communicator.hpp": (
            "queue_.write(*operation.receive.memory, operation.receive.at, receive_->host(), received);",
            "queue_.flush();",
        )
    },
    "old data sent": {
        "mpi/mpi_communicator.hpp": (
            "queue_.read(send_->host(), *operation.send.memory, operation.send.at, sent);",
            "queue_.flush();",
        )
    },
    "the last part left out": {
        "mpi/mpi_communicator.hpp": (
            "    const int whole = count_of(operation.shape.size / each);",
            "    const int whole = count_of(operation.shape.size / each) - (PLANTED ? 1 : 0);",
        )
    },
}


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize(("fault", "mpi"), list(zip(FAULTS, cycle(MPIS), strict=False)))
def test_a_planted_fault_is_found(
    fault: str,
    mpi: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = with_fault(COLLECTIVE, fault, FAULTS, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, mpi=mpi, **STAGED), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check == "wrong_data", record.outcome


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("made_up_gpus")
@pytest.mark.parametrize("mpi", MPIS)
def test_an_operation_that_hangs_is_ended_and_its_rank_named(
    mpi: str, live_machine: Machine, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeat, "_LEAST_LIMIT_S", 5.0)
    monkeypatch.setattr(repeat, "_LIMIT_TIMES", 0.0)
    monkeypatch.setenv("MADE_UP_NCCL", "hang")
    monkeypatch.setenv("MADE_UP_RANK", "1")
    settings = {"backend": "cuda", "size_B": "64"}
    record = run_one(make_ready(COLLECTIVE, live_machine, folder, mpi=mpi, **settings), live_machine, folder)
    assert record.outcome.state is State.TIMED_OUT
    assert 'rank 1 at "warm-up, all_reduce, 64 B", outside of MPI' in record.outcome.reason
    assert 'rank 0 at "in the operation: warm-up, all_reduce, 64 B", outside of MPI' in record.outcome.reason
