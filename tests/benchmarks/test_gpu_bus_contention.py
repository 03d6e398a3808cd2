"""gpu.bus-contention: ranks that pass messages and copy, for real on each MPI and PoCL, and planted faults."""

from __future__ import annotations

import os
from itertools import cycle
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.engine.kinds.native import with_devices
from seatrial.environments.asking import Gpu, Gpus
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.power import is_of_power
from seatrial.model.benchmark.program import layout_of
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

CONTENTION = benchmark_named("gpu.bus-contention")
MPIS = [mpi.name for mpi in find_mpis()]
SMALL = {"backend": "opencl", "copy_B": "65536", "stream_B": "65536"}
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")


def test_ranks_keep_their_cpus_whatever_devices_there_are() -> None:
    (point,) = plan_points(["gpu.bus-contention"], {"threads": ["2"]}, made_up_machine(cores=8))
    gpus = Gpus(tuple(Gpu("cuda", n, "a GPU", "CUDA 13.0", {}, frozenset({7})) for n in range(3)), {})
    resolved, identities = with_devices(point, gpus)
    assert resolved.cpus == point.cpus and len(resolved.cpus) == 4 and len(identities) == 3
    assert resolved.parameters["devices"] == 3
    assert [len(cpus) for cpus in layout_of(resolved.parameters, resolved.cpus).cpus] == [2, 2]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"ranks": "3"}, "must be even, not 3"),
        ({"threads": "3"}, "1 thread, or 2 with one only for copies"),
        ({"ranks": "4", "threads": "2"}, "need 8 CPUs"),
        ({"nodes": "2"}, "several nodes"),
    ],
)
def test_points_that_mean_nothing(settings: dict[str, str], why: str) -> None:
    given = {name: [value] for name, value in settings.items()}
    (point,) = plan_points(["gpu.bus-contention"], given, made_up_machine(cores=4))
    assert point.refusal is not None and why in point.refusal.reason


def test_ranks_that_share_cpus_are_bound_to_none() -> None:
    given = {"ranks": ["4"], "threads": ["2"], "oversubscribe": ["true"]}
    (point,) = plan_points(["gpu.bus-contention"], given, made_up_machine(cores=4))
    assert point.refusal is None and point.cpus == () and point.parameters["oversubscribe"] is True


def test_what_is_kept_of_a_rate() -> None:
    (point,) = plan_points(["gpu.bus-contention"], {}, made_up_machine(cores=4))
    sample = Sample("download_kept", 0, 4e-3, {"bytes": 4e6}, extra={"alone_s": 3e-3})
    (reading,) = readings(CONTENTION, made_up_machine(cores=4), point.parameters, [sample])
    assert reading.value == pytest.approx(0.75)
    spoken = reading.figure.customary
    assert spoken is not None and spoken({}, 0.75) == "25 % lost" and spoken({}, 1.01) == "no loss"


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize(
    ("threads", "mpi"),
    [
        pytest.param(threads, mpi, marks=() if (k - j) % 2 == 0 else pytest.mark.exhaustive)
        for k, threads in enumerate(("1", "2"))
        for j, mpi in enumerate(MPIS)
    ],
)
def test_it_measures(threads: str, mpi: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path) -> None:
    """On a busy machine one side may end before the other has begun, which its check says: the next repeat may do."""
    settings = {**SMALL, "threads": threads, "oversubscribe": "true"}  # of two threads where CPUs are too few
    ready = make_ready(CONTENTION, live_machine, folder, mpi=mpi, **settings)
    for attempt in range(3):
        own = ResultsFolder.create(tmp_path / f"{attempt}")
        record = run_one(ready, live_machine, own, has_few_samples=False)
        if record.outcome.check != "loaded_samples":
            break
    assert record.outcome.is_ok, record.outcome
    own = {figure.series for figure in CONTENTION.figures if not is_of_power(figure)}
    assert own == {sample.series for sample in record.samples}
    for sample in record.samples:
        if sample.series.startswith(("download", "readback")):
            assert sample.work["bytes"] % (2 * 65536) == 0  # of two ranks
        if sample.series.startswith("bandwidth"):
            assert sample.work["bytes"] % (2 * 4 * 65536) == 0  # a window of each


FAULTS = {
    "a copy to the device that is left out": (
        "error",
        "device/checked_copies.hpp",
        "queue_->write(*in_, 0, sent_.data(), bytes_);",
        "queue_->flush();",
    ),
    "a copy from the device that is left out": (
        "error",
        "device/checked_copies.hpp",
        "queue_->read(received_.data(), *out_, 0, bytes_);",
        "queue_->flush();",
    ),
    "a copy beside messages that is left out": (
        "error",
        "bus_contention.cpp",
        "      copies_.begin(copy, copies);\n      if (messages > 0)",
        "      copies_.begin(copy, PLANTED && messages > 0 ? 0 : copies);\n      if (messages > 0)",
    ),
    "messages that never leave": (
        "wrong_bytes",
        "bus_contention.cpp",
        "exchange_.run(other_, times);",
        "exchange_.run(other_, 0 * times);",
    ),
    "a ping-pong of a rank with nobody": (
        "wrong_bytes",
        "bus_contention.cpp",
        "for (std::uint64_t i = 0; i < times; ++i) {\n      if (leads_)",
        "for (std::uint64_t i = 0; i < (PLANTED ? 0 : times); ++i) {\n      if (leads_)",
    ),
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
    check = FAULTS[fault][0]
    faults = {name: {file: (text, replacement)} for name, (_, file, text, replacement) in FAULTS.items()}
    broken = with_fault(CONTENTION, fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, mpi=mpi, **SMALL), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check == check, record.outcome
