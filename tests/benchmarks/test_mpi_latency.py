"""mpi.latency: the program for real on each MPI of the machine, its figures, and a planted fault for each check."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import made_up_machine
from usual import usually_first

from seatrial.benchmarks.mpi.latency import BENCHMARK as LATENCY
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")
PARAMETERS = plan_points(["mpi.latency"], {}, made_up_machine())[0].parameters


def trips(series: str, size_B: int, **extra: float) -> Sample:
    """1000 trips there and back in a millisecond."""
    return Sample(series, 0, 1e-3, {"ops": 2000.0}, point={"size_B": size_B}, extra=extra)


def test_the_figures_of_one_sample() -> None:
    samples = [trips("one_way", 8, bounce_s=100e-9), trips("bounces", 8, bounce_s=100e-9)]
    one_way, bounces = readings(LATENCY, made_up_machine(), PARAMETERS, samples)
    assert (one_way.figure.name, one_way.value) == ("one_way", pytest.approx(500e-9))
    assert (bounces.figure.name, bounces.value) == ("bounces", pytest.approx(5.0))
    assert one_way.limit is not None and one_way.limit.basis is Basis.MEASURED
    assert one_way.limit.value == pytest.approx(100e-9)


def test_one_bounce_bounds_what_fits_into_a_line_and_nothing_else() -> None:
    for size_B, is_bounded in ((0, True), (64, True), (128, False)):
        (reading,) = readings(LATENCY, made_up_machine(), PARAMETERS, [trips("one_way", size_B, bounce_s=1e-7)])
        assert reading.limit is not None and (reading.limit.value is not None) is is_bounded


def test_between_nodes_no_cache_line_is_asked_for() -> None:
    between = {**PARAMETERS, "nodes": 2}
    (reading,) = readings(LATENCY, made_up_machine(), between, [trips("one_way", 8)])
    assert reading.limit is not None and reading.limit.value is None
    assert "between nodes" in reading.limit.derivation and "cache line" not in reading.limit.derivation


def test_a_time_that_another_tool_told_is_read_as_it_is() -> None:
    (reading,) = readings(LATENCY, made_up_machine(), PARAMETERS, [Sample("one_way", 0, 2e-7, point={"size_B": 8})])
    assert reading.value == 2e-7 and reading.limit is not None and reading.limit.value is None


def run(folder: ResultsFolder, machine: Machine, mpi: str, **settings: str) -> RepeatRecord:
    record = run_one(make_ready(LATENCY, machine, folder, mpi=mpi, **settings), machine, folder)
    assert record.outcome.is_ok, record.outcome
    return record


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", MPIS)
def test_every_size_has_its_time(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    record = run(folder, live_machine, mpi, largest_B="64KiB")
    found = readings(LATENCY, live_machine, PARAMETERS, record.samples)
    sizes = [2**power for power in range(17)]
    for figure in ("one_way", "bounces"):
        assert [r.point["size_B"] for r in found if r.figure.name == figure] == sizes
    for reading in found:
        if reading.figure.name == "one_way":
            assert 1e-8 < reading.value < 0.1  # between a line from another core and a disk
    assert (record.checks["wrong_bytes"], record.checks["lost_bounces"]) == (0, 0)


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
@pytest.mark.parametrize("settings", [{"size_B": "0"}, {"size_B": "24", "datatype": "MPI_DOUBLE"}])
def test_any_one_size(mpi: str, settings: dict[str, str], folder: ResultsFolder, live_machine: Machine) -> None:
    record = run(folder, live_machine, mpi, **settings)
    assert {sample.point["size_B"] for sample in record.samples} == {int(settings["size_B"])}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_ranks_that_share_a_cpu_get_their_messages(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    lone = replace(live_machine, allowed_cpus=live_machine.allowed_cpus[:1])
    ready = make_ready(LATENCY, lone, folder, mpi=mpi, size_B="8", oversubscribe="true")
    record = run_one(ready, lone, folder)
    assert record.outcome.is_ok, record.outcome
    assert {sample.series for sample in record.samples} == {"one_way"}


FAULTS = {
    "a byte turned over by the receiver": (
        "latency.cpp",
        "    wrong_ += memory_.wrong(",
        "    if (PLANTED && rank_ == 1)\n      memory_.received()[message.bytes / 2] ^= std::byte{1};\n"
        "    wrong_ += memory_.wrong(",
        "wrong_bytes",
    ),
    "a byte less sent": (
        "latency.cpp",
        "MPI_Send(sent, count, type, 1,",
        "MPI_Send(sent, count - (PLANTED ? 1 : 0), type, 1,",
        "wrong_bytes",
    ),
    "the answer is what was sent": (
        "latency.cpp",
        "MPI_Send(sent, count, type, 0,",
        "MPI_Send(PLANTED ? received : sent, count, type, 0,",
        "wrong_bytes",
    ),
    "a turn lost": ("bounce.hpp", "wrong += seen != mine - 1;", "wrong += seen == mine - 1;", "lost_bounces"),
}


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("fault", "mpi"), list(product(FAULTS, MPIS[:1])))
def test_a_planted_fault_is_found(
    fault: str,
    mpi: str,
    folder: ResultsFolder,
    live_machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = FAULTS[fault][3]
    faults = {name: {file: (text, replacement)} for name, (file, text, replacement, _) in FAULTS.items()}
    broken = with_fault(LATENCY, fault, faults, tmp_path, monkeypatch)
    ready = make_ready(broken, live_machine, folder, mpi=mpi, size_B="1")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(f"{check}: ")
