"""gpu.cg on one to four devices of PoCL: grids of any shape, what is refused, and planted faults of the program.

test_gpu_programs.py plants those of its kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine

from seatrial.benchmarks.gpu.cg import BENCHMARK
from seatrial.environments.asking import lacking_gpu
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch, program_cache: Path) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread pthread pthread")
    monkeypatch.setenv("POCL_CACHE_DIR", str(program_cache / "pocl"))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"nx": "60"}, "nx=60 is not a multiple of 8: the grid is halved three times"),
        ({"ny": "60"}, "ny=60 is not a multiple of 8"),
        ({"nx": "16", "ny": "256"}, "a grid of 16 x 256 x 16 is too slim"),
        ({"mode": "S", "devices": "2"}, "mode=S uses one device, not 2"),
    ],
)
def test_what_cannot_be_solved_is_skipped(settings: dict[str, str], reason: str) -> None:
    values = {name: [value] for name, value in settings.items()}
    (point,) = plan_points(["gpu.cg"], values, made_up_machine())
    assert point.refusal is not None and point.refusal.reason.startswith(reason), point.refusal


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (1, {"nx": "24", "ny": "16", "nz": "32", "ordering": "levels"}),
        (2, {"nx": "24", "ny": "16", "nz": "32"}),
        pytest.param(3, {"nx": "16"}, marks=pytest.mark.exhaustive),
        pytest.param(4, {"nx": "16", "ny": "24"}, marks=pytest.mark.exhaustive),
    ],
)
def test_it_solves_however_the_grid_is_divided(
    count: int, settings: dict[str, str], live_machine: Machine, folder: ResultsFolder
) -> None:
    if count > len(live_machine.allowed_cpus):
        pytest.skip(f"{count} devices need {count} CPUs")
    mode = "S" if count == 1 else "TP"
    ready = make_ready(BENCHMARK, live_machine, folder, backend="opencl", mode=mode, devices=str(count), **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    sample = record.samples[0]
    assert sample.work["iterations"] == 50 or settings.get("ordering") != "levels"
    assert sum(sample.extra["phases_s"].values()) <= sample.elapsed_s * 1.001


SOLVER = "multigrid/device_solver.hpp"
FAULTS: dict[str, tuple[Edits, str]] = {
    "stale points of others": (
        {SOLVER: ("queue_.write(x.memory(), first * sizeof(double), from, neighbour.count * sizeof(double));",
                  "static thread_local int calls = 0; if (calls++ < 1) queue_.write(x.memory(), first * sizeof(double),"
                  " from, neighbour.count * sizeof(double));")}, "preconditioner_error"),
    "a device that computes nothing": (
        {"multigrid/device_level.hpp": (
            "kernels_.multiply(queue_, grid(size_), bounds_, values_, indices_, diagonal_, from, to, size_);",
            "static_cast<void>(from);")}, "product_error"),
    "sums of one device alone": (
        {SOLVER: ("std::accumulate(all.begin(), all.end(), 0.0)", "all.front()")}, "product_asymmetry"),
    "too few iterations": (
        {"multigrid/conjugate_gradients.hpp": ("++found.iterations;",
                                               "found.iterations += tolerance == 0 ? 2 : 1;")}, "reference_error"),
}  # fmt: skip


@pytest.mark.real
@pytest.mark.devices
@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, folder: ResultsFolder, tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_fault(BENCHMARK, fault, {name: edits for name, (edits, _) in FAULTS.items()}, tmp_path, monkeypatch)
    ready = make_ready(
        broken, live_machine, folder, backend="opencl", mode="TP", devices="2", nx="16", ordering="levels"
    )
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID, record.outcome
    assert record.outcome.reason.startswith(f"{FAULTS[fault][1]}: "), record.outcome
