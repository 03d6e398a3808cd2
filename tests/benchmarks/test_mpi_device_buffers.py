"""mpi.latency and mpi.bandwidth with messages in the memory of devices: by a made-up driver, and an MPI that is said to
take its memory."""

from __future__ import annotations

import os
from itertools import cycle
from pathlib import Path

import pytest
from benchmarks.made_up_libraries import compiled
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.environments.mpi import find_mpis
from seatrial.errors import UsageError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
LATENCY = benchmark_named("mpi.latency")
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")
pytestmark = [pytest.mark.real, pytest.mark.parallel, two_cpus]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "made_up_cuda.c", "made_up_cuda_mpi.c")


@pytest.fixture
def gpus(libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))


@pytest.fixture
def aware_mpi(gpus: None, libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(libraries / "cuda-mpi.so"))


@pytest.mark.usefixtures("aware_mpi")
@pytest.mark.parametrize(
    ("name", "buffers", "devices", "named", "mpi"),
    [
        (*case, mpi)
        for case, mpi in zip(
            [
                ("mpi.latency", "device", "auto", ["made up at 0000:01:00.0", "made up at 0000:02:00.0"]),
                ("mpi.latency", "host-managed", "3:1", ["", "made up at 0000:02:00.0"]),
                ("mpi.bandwidth", "device", "3", ["made up at 0000:04:00.0"] * 2),
                ("mpi.bidirectional", "device-host", "auto", ["made up at 0000:01:00.0", ""]),
            ],
            cycle(MPIS),
            strict=False,
        )
    ],
)
def test_messages_in_devices(
    name: str,
    buffers: str,
    devices: str,
    named: list[str],
    mpi: str,
    live_machine: Machine,
    folder: ResultsFolder,
) -> None:
    settings = {"buffers": buffers, "message_devices": devices, "size_B": "4096"}
    ready = make_ready(benchmark_named(name), live_machine, folder, mpi=mpi, **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["notes"]["message_devices"] == named
    assert not [sample for sample in record.samples if sample.series == "bounces"]


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("mpi", MPIS)
def test_an_mpi_that_does_not_know_devices_says_so(mpi: str, live_machine: Machine, folder: ResultsFolder) -> None:
    """Before it is killed by the first message: Debian's are built without. One rank alone has a device here."""
    settings = {"buffers": "host-device", "size_B": "64"}
    record = run_one(make_ready(LATENCY, live_machine, folder, mpi=mpi, **settings), live_machine, folder)
    assert record.outcome.state is State.UNSUPPORTED and record.outcome.reason.startswith("mpi: rank 1: ")


@pytest.mark.usefixtures("aware_mpi")
def test_a_device_that_is_not_there(live_machine: Machine, folder: ResultsFolder) -> None:
    settings = {"buffers": "device", "message_devices": "0:7", "size_B": "64"}
    record = run_one(make_ready(LATENCY, live_machine, folder, **settings), live_machine, folder)
    assert record.outcome.state is State.UNSUPPORTED
    assert record.outcome.reason == "device: rank 1: no device 7: the CUDA driver has 4"


FAULTS: dict[str, Edits] = {
    "messages that stay in the host's memory": {
        "mpi/message_memory.cpp": ("device_->write(address_, mirror_, bytes);", "static_cast<void>(bytes);")
    },
}


@pytest.mark.usefixtures("aware_mpi")
@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_planted_fault_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_fault(LATENCY, fault, FAULTS, tmp_path, monkeypatch)
    settings = {"buffers": "device", "size_B": "4096"}
    record = run_one(make_ready(broken, live_machine, folder, **settings), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check == "wrong_bytes", record.outcome


@pytest.mark.parametrize("devices", ["x", "0,1", "0:", "-1", "99999"])
def test_devices_that_mean_nothing(devices: str) -> None:
    with pytest.raises(UsageError, match="does not name devices"):
        plan_points(["mpi.latency"], {"message_devices": [devices]}, made_up_machine(cores=4))


def test_collectives_name_the_benchmark_of_devices() -> None:
    (point,) = plan_points(["mpi.allreduce"], {"buffers": ["device"]}, made_up_machine(cores=4))
    assert point.refusal is not None and "see `seatrial list gpu`" in point.refusal.reason
