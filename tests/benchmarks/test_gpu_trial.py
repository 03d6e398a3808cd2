"""The GPU trial of bench/, rehearsed: on PoCL, on a made-up driver, and what `list` says after it was adopted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_trial_steps
import pytest
from benchmarks.made_up_libraries import compiled

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.gpu import device
from seatrial.environments.asking import lacking_gpu

SCRIPT = Path(gpu_trial_steps.__file__).with_name("gpu_trial.py")
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")


def trial(folder: Path, backend: str, *only: str, budget_s: float = 240.0, **variables: str) -> dict[str, Any]:
    """What the script writes when these steps are made."""
    command = [sys.executable, str(SCRIPT), "--backend", backend, "--budget", str(budget_s), "-o", str(folder / "out")]
    for name in only:
        command += ["--only", name]
    environment = {name: value for name, value in os.environ.items() if name != "SEATRIAL_GPU_TRIAL"}
    done = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=500)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    document: dict[str, Any] = json.loads((folder / "out" / "trial.json").read_text())
    assert (folder / "out" / "records.tar.gz").stat().st_size > 0
    return document


def states(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(step["benchmark"], step["state"]) for step in document["steps"]}


@pytest.mark.real
@pytest.mark.parallel
def test_on_a_cpu_steps_are_right_but_verify_nothing(tmp_path: Path, program_cache: Path) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    document = trial(
        tmp_path,
        "opencl",
        "correct gpu.reduction backend=opencl size=1",
        "correct gpu.queue-delay backend=opencl",
        POCL_DEVICES="pthread",
        POCL_CACHE_DIR=str(program_cache / "pocl"),
    )
    assert states(document) == {("gpu.reduction", "ok"), ("gpu.queue-delay", "ok")}, document["steps"]
    assert document["verified"] == {}
    (bandwidth,) = (
        figure
        for step in document["steps"]
        for figure in step["figures"]
        if step["benchmark"] == "gpu.reduction" and figure["figure"] == "bandwidth"
    )
    assert bandwidth["unit"] == "B/s" and bandwidth["value"] > 0


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
def test_on_a_made_up_driver_what_runs_is_verified(tmp_path: Path) -> None:
    """It can copy, but has no kernels: a step that fails does not end the trial."""
    libraries = compiled(tmp_path, "made_up_cuda.c", "made_up_nccl.c")
    document = trial(
        tmp_path,
        "cuda",
        "correct gpu.bus-speed backend=cuda largest_B=1MiB",
        "correct gpu.queue-delay backend=cuda",
        "nccl",
        LD_LIBRARY_PATH=str(libraries),
    )
    by_name = {step["benchmark"]: step for step in document["steps"]}
    assert by_name["gpu.bus-speed"]["state"] == "ok", by_name["gpu.bus-speed"]
    assert by_name["gpu.queue-delay"]["state"] != "ok" and by_name["gpu.queue-delay"]["reason"]
    assert document["verified"]["gpu.bus-speed"]["device"] == "made up"
    assert "gpu.queue-delay" not in document["verified"]


def test_no_step_begins_without_time_for_it(tmp_path: Path) -> None:
    document = trial(tmp_path, "opencl", "correct gpu.queue-delay backend=opencl", budget_s=0.0)
    assert document["steps"] == [] and document["left_out"] == ["correct gpu.queue-delay backend=opencl"]


def test_all_benchmarks_of_devices_have_a_step_and_settings_that_they_accept() -> None:
    own = gpu_trial_steps.of_devices()
    steps = list(gpu_trial_steps.steps("cuda"))
    assert {step.benchmark.name for step in steps if step.group == "correct"} == own.keys()
    for step in steps:
        names = {parameter.name for parameter in step.benchmark.parameters}
        assert step.settings.keys() <= names, step.name


def step_of(name: str, state: str, *, cpu: bool = False) -> dict[str, Any]:
    device = {"name": "NVIDIA H200", "driver": "CUDA 13.0", "cpu": cpu}
    return {"benchmark": name, "state": state, "devices": [device]}


def test_what_is_adopted_is_what_list_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        *(step_of("gpu.scan", state) for state in ("ok", "unsupported", "ok")),
        *(step_of("gpu.sort", state) for state in ("ok", "invalid")),
        step_of("gpu.fft", "ok", cpu=True),
    ]
    document = {"provenance": {"date": "2026-12-01 10:00 UTC"}, "steps": steps}
    found = gpu_trial_steps.verified(document)
    assert found == {"gpu.scan": {"device": "NVIDIA H200", "driver": "CUDA 13.0", "date": "2026-12-01"}}
    table, result = tmp_path / "verified.json", tmp_path / "trial.json"
    table.write_text('{"gpu.md": {"device": "A100", "driver": "CUDA 12.4", "date": "2026-01-01"}}')
    result.write_text(json.dumps({**document, "verified": found}))
    monkeypatch.setattr(gpu_trial_steps, "VERIFIED", table)
    assert gpu_trial_steps.adopt(result) == 0
    monkeypatch.setattr(device, "VERIFIED", table)
    device._verified.cache_clear()
    try:
        assert device.is_verified("gpu.scan") and device.is_verified("gpu.md")
        assert device.evidence("gpu.scan") == "checked on NVIDIA H200, CUDA 13.0, 2026-12-01"
        assert not device.is_verified("gpu.sort") and device.evidence("gpu.sort") == ""
    finally:
        device._verified.cache_clear()
    assert not benchmark_named("gpu.scan").verified or benchmark_named("gpu.scan").evidence
