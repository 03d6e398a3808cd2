"""gpu.transfer and gpu.p2p: what the test of all benchmarks of devices cannot tell. On two devices of PoCL, and what
CUDA is asked for on four made-up GPUs, since its copies from one to another cannot run without any."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from benchmarks.made_up_libraries import compiled
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.engine.kinds.native import with_devices
from seatrial.engine.ready import Ready
from seatrial.environments.asking import Gpu, Gpus, lacking_gpu, local_cpus
from seatrial.environments.build import build
from seatrial.environments.chosen import native_environment
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

TRANSFER = benchmark_named("gpu.transfer")
WAYS = ("h2d", "d2h", "both")
COPYING_DEVICES = pytest.mark.quiet
"""Each device copies until the last one has its samples: beside other tests, that takes ten times the CPU time."""


@pytest.fixture(autouse=True)
def two_devices(monkeypatch: pytest.MonkeyPatch, program_cache: Path) -> None:
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    monkeypatch.setenv("POCL_CACHE_DIR", str(program_cache / "pocl"))


def on_pocl(name: str, machine: Machine, folder: ResultsFolder, **settings: str) -> RepeatRecord:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    ready = make_ready(benchmark_named(name), machine, folder, backend="opencl", **settings)
    return run_one(ready, machine, folder)


def gpu(index: int, cpus: set[int]) -> Gpu:
    return Gpu("cuda", index, "a GPU", "CUDA 13.0", {}, frozenset(cpus))


@pytest.mark.parametrize(
    ("local", "chosen"),
    [
        (({4, 5, 6, 7}, {0, 1, 2, 3}), (4, 0)),
        ((set(), {0, 1}), (1, 0)),  # who has no place of its own leaves others theirs
        (({6}, {6}), (6, 0)),  # two that want the same one
        (({70}, {71}), (0, 1)),  # places that we may not use
    ],
)
def test_a_device_is_driven_from_a_cpu_next_to_it(local: tuple[set[int], ...], chosen: tuple[int, ...]) -> None:
    (point,) = plan_points(["gpu.transfer"], {}, made_up_machine(cores=8))
    gpus = Gpus(tuple(gpu(index, cpus) for index, cpus in enumerate(local)), {})
    point, _ = with_devices(point, gpus)
    assert point.cpus == chosen and point.parameters["devices"] == 2


def test_the_cpus_that_sysfs_calls_local(tmp_path: Path) -> None:
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0" / "local_cpulist").write_text("0-3,8\n")
    assert local_cpus("00000000:3B:00.0", tmp_path) == {0, 1, 2, 3, 8}
    assert local_cpus("0000:5e:00.0", tmp_path) == local_cpus("", tmp_path) == frozenset()


def test_sizes_are_whole_words_up_to_a_gibibyte() -> None:
    points = plan_points(["gpu.transfer"], {"largest_B": ["1025", "1GiB", "1025MiB"]}, made_up_machine())
    assert [point.parameters["largest_B"] for point in points[:2]] == [1032, 1 << 30]
    assert points[2].refusal is not None and "1 GiB" in points[2].refusal.reason


def test_a_node_that_is_not_there() -> None:
    (point,) = plan_points(["gpu.transfer"], {"numa_node": ["9"]}, made_up_machine())
    assert point.refusal is not None and "no NUMA node 9" in point.refusal.reason


@pytest.mark.real
@COPYING_DEVICES
def test_each_device_alone_and_all_at_once(live_machine: Machine, folder: ResultsFolder) -> None:
    record = on_pocl("gpu.transfer", live_machine, folder, largest_B="4096")
    assert record.outcome.is_ok, record.outcome
    found = {(sample.series, sample.point.get("device"), sample.point["size_B"]) for sample in record.samples}
    alone = {(way, device, size) for way in WAYS for device in (0, 1) for size in (1024, 4096)}
    together = {(f"{way}_together", device, size) for way, device, size in alone}
    assert found == alone | together | {(f"{way}_all", None, size) for way, _, size in alone}
    for whole in (sample for sample in record.samples if sample.series.endswith("_all")):
        parts = [
            sample.work["bytes"] / sample.elapsed_s
            for sample in record.samples
            if sample.series == whole.series.replace("_all", "_together")
            and (sample.i, sample.point["size_B"]) == (whole.i, whole.point["size_B"])
        ]
        assert len(parts) == 2 and whole.work["bytes"] / whole.elapsed_s == pytest.approx(sum(parts))


@pytest.mark.real
@pytest.mark.devices
def test_one_device_has_nothing_to_share(live_machine: Machine, folder: ResultsFolder) -> None:
    record = on_pocl("gpu.transfer", live_machine, folder, largest_B="1024", device="1", devices="1")
    assert record.outcome.is_ok, record.outcome
    assert {(sample.series, sample.point["device"]) for sample in record.samples} == {(way, 1) for way in WAYS}


@pytest.mark.real
@COPYING_DEVICES
@pytest.mark.parametrize("host", ["pinned", "pageable"])
def test_memory_of_a_node_that_is_asked_for(host: str, live_machine: Machine, folder: ResultsFolder) -> None:
    node = live_machine.pus[live_machine.allowed_cpus[0]].numa
    if node is None:
        pytest.skip("needs a kernel that tells of NUMA nodes")
    record = on_pocl("gpu.transfer", live_machine, folder, host=host, largest_B="4096", numa_node=str(node))
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    assert record.outcome.is_ok, record.outcome
    assert all(sample.extra["pages_astray"] == 0 for sample in record.samples)


ELSEWHERE = "pages on another node"
TRANSFER_FAULTS = {
    "a copy to the device that is left out": (
        "down_->write(in_.memory(), 0, sent_.data(), size);",
        "down_->flush();",
    ),
    "a copy from the device that is left out": (
        "up_->read(received_.data(), out_.memory(), 0, size);",
        "up_->flush();",
    ),
    "the last byte of a copy": (
        "up_->read(received_.data(), out_.memory(), 0, size);",
        "up_->read(received_.data(), out_.memory(), 0, size - 1);",
    ),
    "only one direction of both": (
        "if (step.way != Way::h2d)\n          enqueue_up",
        "if (PLANTED ? step.way == Way::d2h : step.way != Way::h2d)\n          enqueue_up",
    ),
    "nothing goes when all copy": (
        "step.way != Way::d2h)\n          enqueue_down",
        "PLANTED ? !step.is_together : step.way != Way::d2h)\n          enqueue_down",
    ),
    ELSEWHERE: ("wanted ? wanted : own_node()", "std::optional<int>(77 + wanted.value_or(0))"),
}


def broken_transfer(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    faults = {name: {"transfer.cpp": edit} for name, edit in TRANSFER_FAULTS.items()}
    return with_fault(TRANSFER, fault, faults, folder, monkeypatch)


@pytest.fixture
def broken(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ready:
    """The program with this fault, built while the machine need not be quiet."""
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    benchmark = broken_transfer(fault, tmp_path, monkeypatch)
    return make_ready(benchmark, live_machine, folder, backend="opencl", largest_B="4096")


@pytest.mark.real
@COPYING_DEVICES
@pytest.mark.parametrize("fault", [fault for fault in TRANSFER_FAULTS if fault != ELSEWHERE])
def test_a_fault_of_transfers_is_found(broken: Ready, live_machine: Machine, folder: ResultsFolder) -> None:
    record = run_one(broken, live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("error: "), record.outcome


@pytest.mark.real
@pytest.mark.devices
def test_pages_on_another_node_are_found(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    broken = broken_transfer(ELSEWHERE, tmp_path, monkeypatch)
    ready = make_ready(broken, live_machine, folder, backend="opencl", largest_B="65536", devices="1")
    record = run_one(ready, live_machine, folder)
    if record.outcome.is_ok and all(sample.extra["pages_looked_at"] == 0 for sample in record.samples):
        pytest.skip("needs move_pages(2), which this container forbids")
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("pages_astray: 1"), record.outcome


P2P = benchmark_named("gpu.p2p")
PAIRS = {(a, b) for a in (0, 1) for b in (0, 1)}


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("p2p", ["on", "off"])
def test_every_pair_and_the_way_that_its_data_took(p2p: str, live_machine: Machine, folder: ResultsFolder) -> None:
    record = on_pocl("gpu.p2p", live_machine, folder, p2p=p2p, size_B="9437185", latency_B="1")
    assert record.outcome.is_ok, record.outcome
    for series in ("bandwidth", "both", "latency"):
        own = [sample for sample in record.samples if sample.series == series]
        assert {(sample.point["source"], sample.point["target"]) for sample in own} == PAIRS
        for sample in own:
            is_own = sample.point["source"] == sample.point["target"]
            assert sample.extra["path"] == ("own" if is_own else "host")
            assert len(sample.extra["device"]["pci"]) == 2
            if series != "latency":
                assert sample.work["bytes"] % (9437185 * (2 if is_own or series == "both" else 1)) == 0


@pytest.mark.real
@pytest.mark.devices
def test_a_device_that_is_alone(live_machine: Machine, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCL_DEVICES", "pthread")
    record = on_pocl("gpu.p2p", live_machine, folder)
    assert record.outcome.state is State.UNSUPPORTED
    assert record.outcome.reason.startswith("devices: "), record.outcome
    (point,) = plan_points(["gpu.p2p"], {"devices": ["1"]}, live_machine)
    assert point.refusal is not None and point.refusal.state is State.SKIPPED


P2P_FAULTS = {
    "a piece that is not handed on": (
        "device/peers.hpp",
        "step_ > 0 && step_ <= pieces_",
        "step_ > 0 && step_ < pieces_",
    ),
    "a copy within a device": (
        "p2p.cpp",
        "source.sending->copy(*target.inbox, 0, *source.data, 0, size);",
        "source.sending->flush();",
    ),
    "only one direction of both": ("p2p.cpp", "what == What::both ? copies : 0", "0 * copies"),
}


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("fault", P2P_FAULTS)
def test_a_fault_of_copies_between_devices_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    faults = {name: {file: (text, replacement)} for name, (file, text, replacement) in P2P_FAULTS.items()}
    broken = with_fault(P2P, fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, backend="opencl", size_B="65536"), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("error: "), record.outcome


def on_made_up_gpus(
    name: str, machine: Machine, folder: Path, *arguments: str
) -> tuple[list[dict[str, Any]], dict[tuple[int, int], tuple[bool, bool]]]:
    """What a program records of four made-up GPUs, and (source, target) -> whether copies went there without peer
    access, and with it."""
    cpus = machine.allowed_cpus
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    compiled(folder, "made_up_cuda.c")
    records, ways = folder / "records", folder / "ways"
    records.mkdir()
    program = build(native_environment(machine), benchmark_named(name).program.source).path
    command = [str(program), "--record", str(records), "--backend", "cuda", *arguments]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "MADE_UP_WAYS": str(ways)}
    subprocess.run(command, env=environment, check=True)
    lines = (records / "rank-000000.jsonl").read_text().splitlines()
    rows = [tuple(map(int, line.split())) for line in ways.read_text().splitlines()]
    return [json.loads(line) for line in lines], {(a, b): (bool(c), bool(d)) for a, b, c, d in rows}


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize(("devices", "is_near"), [("2,3", True), ("1,2", False)])
def test_peer_access_is_had_where_it_can_be_and_is_wanted(
    devices: str, is_near: bool, is_on: bool, live_machine: Machine, tmp_path: Path
) -> None:
    cpus = ",".join(map(str, live_machine.allowed_cpus[:2]))
    arguments = ("--cpus", cpus, "--devices", devices, "--size", "65536", "--p2p", str(int(is_on)), "--slice", "0.01")
    events, ways = on_made_up_gpus("gpu.p2p", live_machine, tmp_path, *arguments)
    a, b = map(int, devices.split(","))
    is_direct = is_near and is_on
    assert ways[a, b] == ways[b, a] == (not is_direct, is_direct)
    paths = {(e["point"]["source"], e["point"]["target"]): e["path"] for e in events if e["ev"] == "sample"}
    across = "peer" if is_direct else "driver"
    assert paths == {(a, a): "own", (b, b): "own", (a, b): across, (b, a): across}
    assert [e["value"] for e in events if e["ev"] == "check"] == [0]
    sample = next(e for e in events if e["ev"] == "sample" and (e["point"]["source"], e["point"]["target"]) == (a, b))
    assert sample["device"]["pci"] == [f"0000:0{a + 1}:00.0", f"0000:0{b + 1}:00.0"]


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("host", ["pinned", "pageable"])
def test_transfers_of_made_up_gpus(host: str, live_machine: Machine, tmp_path: Path) -> None:
    cpus = ",".join(map(str, live_machine.allowed_cpus[:2]))
    arguments = ("--cpus", cpus, "--devices", "0,3", "--host", host, "--largest", "1024", "--slice", "0.01")
    events, _ = on_made_up_gpus("gpu.transfer", live_machine, tmp_path, *arguments)
    assert [e["value"] for e in events if e["ev"] == "check"] == [0]
    assert {e["point"]["device"] for e in events if e["ev"] == "sample" and "device" in e["point"]} == {0, 3}
