"""gpu.gemm by a tuned library: CLBlast on PoCL, for real; and what cuBLAS is asked for, by a made-up one, since it
cannot run without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest
from benchmarks.made_up_libraries import compiled
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault

from seatrial.benchmarks import benchmark_named
from seatrial.environments.asking import lacking_gpu
from seatrial.environments.build import build
from seatrial.environments.chosen import native_environment
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real

GEMM = benchmark_named("gpu.gemm")
VENDOR = {"backend": "opencl", "size": "1", "library": "vendor"}


@pytest.fixture
def pocl(monkeypatch: pytest.MonkeyPatch, program_cache: Path) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    monkeypatch.setenv("POCL_DEVICES", "pthread")
    monkeypatch.setenv("POCL_CACHE_DIR", str(program_cache / "pocl"))


ELSEWHERE = "a library that is not there"
FAULTS: dict[str, Edits] = {
    ELSEWHERE: {"device/clblast.hpp": ('"libclblast.so.1"', '"libclblast-is-not-here.so.1"')},
    "nothing": {"device/clblast.hpp": ("    gemm(constant::in_rows", "    if (!PLANTED) gemm(constant::in_rows")},
    "half": {"device/clblast.hpp": ("product.rows,", "PLANTED ? product.rows / 2 : product.rows,")},
    "one product less": {"device/clblast.hpp": ("product.depth,", "PLANTED ? product.depth - 1 : product.depth,")},
    "the wrong matrix": {"device/clblast.hpp": ("product.is_transposed", "!product.is_transposed")},
}


@pytest.mark.usefixtures("pocl")
def test_a_library_that_is_not_there(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is missing and how to get it."""
    elsewhere = with_fault(GEMM, ELSEWHERE, FAULTS, tmp_path, monkeypatch)
    ready = make_ready(elsewhere, live_machine, folder, **VENDOR)
    outcome = run_one(ready, live_machine, folder).outcome
    assert outcome.state is State.UNSUPPORTED and outcome.reason.startswith("library: libclblast-is-not-here.so.1")
    assert "Debian: libclblast1" in outcome.reason


@pytest.mark.usefixtures("pocl")
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != ELSEWHERE])
def test_a_product_that_is_not_right_is_found(
    fault: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if find_library("clblast") is None:
        pytest.skip("needs CLBlast (Debian: libclblast1)")
    broken = with_fault(GEMM, fault, FAULTS, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, **VENDOR), live_machine, folder)
    assert record.outcome.state is State.INVALID, record.outcome


@pytest.mark.usefixtures("pocl")
@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_precisions_of_tensor_cores(precision: str, live_machine: Machine, folder: ResultsFolder) -> None:
    """OpenCL has none, and our own kernel does without."""
    (plain,) = plan_points(["gpu.gemm"], {"precision": [precision], "library": ["portable"]}, live_machine)
    assert plain.refusal is not None and "library=vendor" in str(plain.refusal)
    if find_library("clblast") is None:
        pytest.skip("needs CLBlast (Debian: libclblast1)")
    ready = make_ready(GEMM, live_machine, folder, **VENDOR, precision=precision)
    outcome = run_one(ready, live_machine, folder).outcome
    assert outcome.state is State.UNSUPPORTED and outcome.reason.startswith("precision: "), outcome
    assert "backend=cuda" in outcome.reason


def of_cublas(machine: Machine, folder: Path, precision: str, **variables: str) -> list[dict[str, Any]]:
    """What gpu.gemm records with a made-up driver and cuBLAS."""
    compiled(folder, "made_up_cuda.c", "made_up_cublas.c")
    records = folder / "records"
    records.mkdir()
    command = [str(build(native_environment(machine), GEMM.program.source).path), "--record", str(records)]
    command += ["--cpus", "0", "--backend", "cuda", "--library", "vendor", "--order", "128", "--precision", precision]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **variables}
    environment.pop("CUDA_HOME", None)
    subprocess.run(command, env=environment, check=True)
    return [json.loads(line) for path in records.iterdir() for line in path.read_text().splitlines()]


@pytest.mark.parametrize("precision", ["fp32", "fp64", "tf32", "fp16", "bf16"])
def test_what_cublas_is_asked_for(precision: str, live_machine: Machine, tmp_path: Path) -> None:
    """Matrices, their types and the kind of computation give the product that the program expects."""
    record = of_cublas(live_machine, tmp_path, precision)
    (error,) = (event["value"] for event in record if event["ev"] == "check")
    assert error < (1e-15 if precision == "fp64" else 1e-7)
    assert any(event.get("key") == "library" and event["value"] == "cuBLAS 130000" for event in record)


def test_a_device_without_room(live_machine: Machine, tmp_path: Path) -> None:
    record = of_cublas(live_machine, tmp_path, "fp32", MADE_UP_MEMORY="1000")
    (skip,) = (event for event in record if event["ev"] == "skip")
    assert skip["reason"] == "made up cannot allocate 64 KiB more; it has 1024 MiB in total"


def test_cublas_before_tensor_cores_of_wide_exponents(live_machine: Machine, tmp_path: Path) -> None:
    record = of_cublas(live_machine, tmp_path, "bf16", MADE_UP_CAPABILITY="70")
    (skip,) = (event for event in record if event["ev"] == "skip")
    assert skip["need"] == "precision" and "A100" in skip["reason"]
