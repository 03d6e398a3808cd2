"""cpu.linebounce for real, and a planted fault for each of its checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_once, tampered

from seatrial.benchmarks.cpu.linebounce import BENCHMARK as LINEBOUNCE
from seatrial.model.machine import Machine
from seatrial.model.outcome import State
from seatrial.model.reading import readings
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    return ResultsFolder.create(tmp_path / "results")


@pytest.fixture(autouse=True)
def two_cores(live_machine: Machine) -> None:
    if len(live_machine.cpus_one_per_core()) < 2:
        pytest.skip("needs two cores")


def test_every_pair_of_cores_has_its_time(live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(LINEBOUNCE, live_machine, folder)
    record = run_once(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    found = readings(LINEBOUNCE, live_machine, ready.point.parameters, record.samples)
    cores = len(ready.point.cpus)
    assert len(found) == cores * (cores - 1) // 2
    assert all(1e-9 < reading.value < 1e-5 for reading in found)  # between a register and a network


@pytest.mark.parametrize(
    ("text", "replacement", "check"),
    [
        ("wrong += seen != mine - 1;", "wrong += seen == mine - 1;", "lost_updates"),
        ("moved[0] = !is_bound_to(cpus[member]);", "moved[0] = is_bound_to(cpus[member]);", "moved_threads"),
    ],
)
def test_a_planted_fault_is_found(
    text: str,
    replacement: str,
    check: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = tampered(LINEBOUNCE, tmp_path, {"linebounce.cpp": (text, replacement)}, monkeypatch)
    record = run_once(make_ready(broken, live_machine, folder), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(f"{check}: ")
