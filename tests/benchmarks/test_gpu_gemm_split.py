"""gpu.gemm-split and gpu.gemm-blocked: right for any order and any number of parts, in little memory; faults are found;
CPUs and devices of a point; limits and figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from benchmarks.made_up_libraries import compiled
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from one_point import prepare_point

from seatrial.benchmarks import benchmark_named
from seatrial.engine.ready import Refused
from seatrial.environments.blas import find_blas
from seatrial.environments.build import build
from seatrial.environments.chosen import native_environment
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import Setting
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.devices, pytest.mark.usefixtures("two_devices")]

SPLIT, BLOCKED = benchmark_named("gpu.gemm-split"), benchmark_named("gpu.gemm-blocked")
FORMS = {"split": SPLIT, "blocked": BLOCKED}
LITTLE_B = 2 << 20
STREAMED = "device/streamed_product.hpp"
FAULTY_KERNELS = Path(__file__).with_name("faulty_kernels.c")


def measured(form: str, machine: Machine, folder: ResultsFolder, **settings: Setting) -> RepeatRecord:
    ready = make_ready(FORMS[form], machine, folder, backend="opencl", **settings)
    return run_one(ready, machine, folder)


CASES: dict[str, tuple[str, dict[str, Setting]]] = {
    "a device and the host": ("split", {"n": 513, "devices": 1, "cpu_threads": 1}),
    "streamed": ("split", {"n": 700, "devices": 2, "resident_B": LITTLE_B, "precision": "fp32"}),
    "the host alone": ("split", {"n": 333, "devices": 0, "cpu_threads": 2}),
    "smaller than a tile": ("split", {"n": 65, "devices": 2}),
    "given tiles": ("split", {"n": 400, "devices": 1, "cpu_threads": 1, "tile": 128, "host": "pageable"}),
    "one device": ("blocked", {"n": 257, "devices": 1, "cpu_threads": 0}),
    "two devices, streamed": ("blocked", {"n": 391, "devices": 2, "resident_B": LITTLE_B}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_right(case: str, live_machine: Machine, folder: ResultsFolder) -> None:
    form, settings = CASES[case]
    record = measured(form, live_machine, folder, **settings)
    assert record.outcome.is_ok, record.outcome
    product = next(sample for sample in record.samples if sample.series == "product")
    n = int(settings["n"])  # type: ignore[arg-type]
    assert product.work["flops"] == 2 * n**3
    assert sum(product.extra["part_flops"]) == pytest.approx(2 * n**3)
    assert all(share > 0 for share in product.extra["part_flops"]) or n < 128
    assert len(product.extra["speeds"]) == len(product.extra["part_s"])


@pytest.mark.parametrize("n", [64, 127, 128, 129, 255, 1000])
def test_any_order(n: int, live_machine: Machine, folder: ResultsFolder) -> None:
    for form, precision in (("split", "fp64"), ("blocked", "fp32")):
        record = measured(form, live_machine, folder, n=n, precision=precision, resident_B=LITTLE_B)
        assert record.outcome.is_ok, (form, record.outcome)


SHARED = "device/shared_product.hpp"
READ = "piece.result + row * piece.lead_result + column"
POISON = "std::ranges::fill(c.column(j), std::numeric_limits<Real>::quiet_NaN());"
OF_SPLIT: dict[str, Edits] = {
    "a lost block": {
        STREAMED: ("block(piece, row, column, alpha);", "if (row + column > 0) block(piece, row, column, alpha);")
    },
    "a device that computes nothing": {
        SHARED: ("works[member].kernels_s = streams_[member]->run({&piece, 1}, alpha);", ";")
    },
    "a panel of the product before": {
        STREAMED: ("fill(left_[slot], piece.left", "if (!PLANTED || alpha == 1) fill(left_[slot], piece.left")
    },
    "a block of the product before": {
        SHARED: (POISON, ";"),
        STREAMED: ("    up_->read_rows(", "    if (!PLANTED || alpha == 1) up_->read_rows("),
    },
    "blocks at each other's positions": {
        STREAMED: (READ, f"{READ} - column + (columns == blocking_.tile ? column ^ blocking_.tile : column)")
    },
    "the rest of the depth is not zero": {STREAMED: ("kernel_ && depth % gemm_unit != 0", "false")},
    "CPUs that compute nothing": {
        "host_product.cpp": ("multiply_packed(c + j * lead_c + i, lead_c, height, width, length, k == 0);", ";")
    },
    "CPUs that forget a panel": {"host_product.cpp": ("(is_first ? Real{0} : to)", "Real{0}")},
}
OF_BLOCKED: dict[str, Edits] = {
    "a product that is not added": {"host_product.cpp": ("to[i] += from[i];", ";")},
    "a product in the wrong quarter": {
        SHARED: (
            "pieces.push_back(",
            "if (PLANTED && pieces.size() == 5) pieces.push_back(pieces.back()); else pieces.push_back(",
        )
    },
    "a quarter that no device has": {
        SHARED: (
            "of_device[chosen].push_back(piece);",
            "if (&piece != &pieces.back()) of_device[chosen].push_back(piece);",
        )
    },
}
FAULTS = {**OF_SPLIT, **OF_BLOCKED}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_split = fault in OF_SPLIT
    broken = with_fault(SPLIT if is_split else BLOCKED, fault, FAULTS, tmp_path, monkeypatch)
    settings: dict[str, Setting] = {"n": 600, "tile": 128, "devices": 1 if is_split else 2}
    ready = make_ready(broken, live_machine, folder, backend="opencl", cpu_threads=1 if is_split else 0, **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check in ("row_error", "element_error"), (
        record.outcome
    )


@pytest.mark.parametrize("fault", ["nothing", "half", "nan"])
def test_a_kernel_that_does_not_do_its_work_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    layer = tmp_path / "libfaulty_kernels.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", FAULTY_KERNELS, "-o", layer], check=True)
    monkeypatch.setenv("OPENCL_LAYERS", str(layer))
    monkeypatch.setenv("PLANTED", f"gemm:{fault}")
    for form in FORMS:
        record = measured(form, live_machine, folder, n=300, devices=2)
        assert record.outcome.state is State.INVALID, (form, record.outcome)


@pytest.mark.parametrize("form", FORMS)
def test_what_cuda_and_cublas_are_asked_for(form: str, live_machine: Machine, tmp_path: Path) -> None:
    """Copies of rectangles, queues that wait for each other and parts of matrices, by a made-up driver."""
    compiled(tmp_path, "made_up_cuda.c", "made_up_cublas.c")
    records = tmp_path / "records"
    records.mkdir()
    command = [str(build(native_environment(live_machine), SPLIT.program.source).path), "--record", str(records)]
    command += ["--cpus", "0,1", "--backend", "cuda", "--devices", "0,2", "--library", "vendor", "--form", form]
    variables = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    variables.pop("CUDA_HOME", None)
    subprocess.run([*command, "--n", "150", "--tile", "128", "--slice", "0.01"], env=variables, check=True)
    events = [json.loads(line) for path in records.iterdir() for line in path.read_text().splitlines()]
    errors = {event["name"]: event["value"] for event in events if event["ev"] == "check"}
    assert set(errors) == {"row_error", "element_error"} and all(0 < error < 0.2 for error in errors.values())
    assert any(event.get("key") == "library" and event["value"] == "cuBLAS 130000" for event in events)


def test_cpus_and_devices_of_a_point(live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(SPLIT, live_machine, folder, n=64, devices=1)
    assert ready.point.parameters["cpu_threads"] == len(ready.point.cpus) - 1 == len(live_machine.cpus_one_per_core) - 1
    ready = make_ready(SPLIT, live_machine, folder, n=64, devices=0)
    assert ready.point.parameters["cpu_threads"] == len(ready.point.cpus) == len(live_machine.cpus_one_per_core)
    many = len(live_machine.allowed_cpus)
    refused = prepare_point(SPLIT, live_machine, {"n": 64, "devices": 1, "cpu_threads": many})
    assert isinstance(refused, Refused)
    assert f"{many} threads and 1 that drive devices need one CPU each; this process may use {many}" in str(
        refused.outcome
    )
    nothing = prepare_point(SPLIT, live_machine, {"n": 64, "devices": 0, "cpu_threads": 0})
    assert isinstance(nothing, Refused) and "nothing computes" in str(nothing.outcome)


def test_too_little_memory_of_the_device(live_machine: Machine, folder: ResultsFolder) -> None:
    record = measured("split", live_machine, folder, n=256, devices=1, cpu_threads=0, tile=256, resident_B=1 << 16)
    assert (
        record.outcome.state is State.SKIPPED and "of the device's memory; 65536 B may be used" in record.outcome.reason
    )


def test_with_a_blas(live_machine: Machine, folder: ResultsFolder) -> None:
    """Which one is part of the experiment, and of the record."""
    if not find_blas():
        pytest.skip("needs a BLAS")
    ready = make_ready(SPLIT, live_machine, folder, n=300, devices=1, cpu_threads=1, blas="auto")
    assert ready.point.parameters["blas"] not in ("auto", "own")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert Path(str(record.seen["notes"]["blas_path"])).is_absolute()
