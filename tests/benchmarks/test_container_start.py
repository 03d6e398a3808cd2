"""container.start: real containers warm, cold and at once, what it cannot do, and a planted fault for its check."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from one_point import prepare_point
from places.host_root import make_small_root

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import STATUS, timed_program
from seatrial.places.rank_helpers import inside_probe
from seatrial.store.folder import ResultsFolder

IMAGE, RUNTIME = "environment.container", "environment.container_runtime"
IN_MEMORY = Path("/dev/shm")
START = benchmark_named("container.start")
FAULTS: dict[str, Edits] = {
    "late": {"start.cpp": ("std::chrono::seconds(read.seconds)", "std::chrono::seconds(read.seconds + 1)")},
    "read again": {
        "page_cache.hpp": (
            "POSIX_FADV_DONTNEED);\n",
            "PLANTED && !writes_first ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);\n",
        )
    },
}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image") / "root"
    make_small_root(root, [inside_probe()])
    return root


def measured(
    image: Path,
    machine: Machine,
    results: Path,
    benchmark: Benchmark = START,
    runtime: str = "bubblewrap",
    **settings: str,
) -> RepeatRecord:
    if RUNTIMES[runtime].path() is None:
        pytest.skip(f"needs {RUNTIMES[runtime].package}")
    folder = ResultsFolder.create(results)
    ready = make_ready(benchmark, machine, folder, **{IMAGE: str(image), RUNTIME: runtime}, **settings)
    return run_one(ready, machine, folder)


def figures(record: RepeatRecord, machine: Machine) -> dict[str, float]:
    assert record.outcome.is_ok, record.outcome
    return {r.figure.name: r.value for r in readings(START, machine, {}, record.samples)}


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_the_program_writes_the_time_of_its_first_instruction(
    processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = [] if processor == platform.machine() else [f"qemu-{processor}"]
    if emulator and shutil.which(emulator[0]) is None:
        pytest.skip(f"needs {emulator[0]} (apt install qemu-user)")
    monkeypatch.setattr(platform, "machine", lambda: processor)
    program = timed_program()
    assert program is not None
    path = tmp_path / "started"
    path.write_bytes(program)
    path.chmod(0o755)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    done = subprocess.run([*emulator, path], capture_output=True, check=False)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    seconds, rest = (int.from_bytes(done.stdout[at : at + 8], "little") for at in (0, 8))
    assert done.returncode == STATUS and len(done.stdout) == 16
    assert before < seconds * 1_000_000_000 + rest < after


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("runtime", ["charliecloud", "bubblewrap", "podman", "nspawn"])
def test_a_start(image: Path, runtime: str, live_machine: Machine, tmp_path: Path) -> None:
    if runtime == "nspawn" and os.geteuid() != 0:
        pytest.skip("nspawn needs root")
    record = measured(image, live_machine, tmp_path / "r", runtime=runtime)
    found = figures(record, live_machine)
    assert 0 < found["bare_start"] < found["start"] < record.wall_s
    assert record.seen["container"]["runtime"] == RUNTIMES[runtime].title
    assert RUNTIMES[runtime].command in record.seen["command"], "it is started by the program, which is outside"


@pytest.mark.real
@pytest.mark.parallel
def test_several_at_once(image: Path, live_machine: Machine, tmp_path: Path) -> None:
    record = measured(image, live_machine, tmp_path / "r", runtime="charliecloud", at_once="20")
    assert 0 < figures(record, live_machine)["start"] < record.wall_s


@pytest.mark.real
@pytest.mark.parallel
def test_cold(image: Path, live_machine: Machine, tmp_path: Path) -> None:
    record = measured(image, live_machine, tmp_path / "r", cache="cold")
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    figures(record, live_machine)
    assert all(0 <= float(sample.extra["image_in_memory"]) <= 0.1 for sample in record.samples)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not os.access(IN_MEMORY, os.W_OK), reason=f"needs {IN_MEMORY}")
def test_an_image_that_stays_in_memory(live_machine: Machine, tmp_path: Path) -> None:
    root = IN_MEMORY / f"seatrial-test-{os.getpid()}"
    try:
        make_small_root(root, [inside_probe()])
        record = measured(root, live_machine, tmp_path / "r", cache="cold")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    assert record.outcome.state is State.SKIPPED
    assert f"pages of {root} in memory" in record.outcome.reason


def test_without_a_container(live_machine: Machine) -> None:
    refused = prepare_point(START, live_machine, {})
    assert refused.outcome.state is State.SKIPPED and "set environment.container" in refused.outcome.reason


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("fault", "seen"), [("late", "clock_in_order: 0"), ("read again", "image_in_memory: ")])
def test_a_planted_fault_is_found(
    fault: str, seen: str, image: Path, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = with_fault(START, fault, FAULTS, tmp_path, monkeypatch)
    record = measured(image, live_machine, tmp_path / "r", faulty, cache="cold")
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(seen)
