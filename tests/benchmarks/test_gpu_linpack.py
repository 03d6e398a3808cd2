"""gpu.linpack on PoCL: solutions of odd sizes on one to four devices and two ranks, of each MPI; and planted faults."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from benchmarks.test_gpu_programs import faulty_kernels as faulty_kernels
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.environments.asking import lacking_gpu
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.benchmark import Params, Value
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

LINPACK = benchmark_named("gpu.linpack")
MPIS = [mpi.name for mpi in find_mpis()]
two_cpus = pytest.mark.skipif(not MPIS or len(os.sched_getaffinity(0)) < 2, reason="two ranks want an MPI and two CPUs")


@pytest.fixture(autouse=True)
def four_devices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, program_cache: Path) -> None:
    if (lack := lacking_gpu()) is not None and request.node.get_closest_marker("real"):
        pytest.skip(f"needs {lack}")
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread pthread pthread")
    monkeypatch.setenv("POCL_CACHE_DIR", str(program_cache / "pocl"))


def run(machine: Machine, folder: ResultsFolder, mpi: str | None = None, **settings: str) -> RepeatRecord:
    """One repeat with a check of its result."""
    ready = make_ready(LINPACK, machine, folder, mpi=mpi, **{"backend": "opencl", "threads": "1", **settings})
    return run_one(ready, machine, folder)


def test_the_grid_is_as_square_as_the_devices_allow() -> None:
    def grid(**settings: Value) -> tuple[Value, Value]:
        params = LINPACK.on_devices({**LINPACK.point({}), "nodes": 1, **settings}, True)
        return params["p"], params["q"]

    assert grid(devices=1) == (1, 1) and grid(devices=2) == (1, 2) and grid(devices=3) == (1, 3)
    assert grid(devices=4) == (2, 2) and grid(devices=8) == (2, 4) and grid(devices=4, p=4) == (4, 1)
    assert grid(devices=4, ranks=8, nodes=2) == (2, 4) and grid(devices=1, ranks=2) == (1, 2)
    unknown = LINPACK.on_devices({**LINPACK.point({}), "nodes": 1}, False)
    assert (unknown["n"], unknown["nb"], unknown["p"]) == (20480, 512, "auto")


def test_threads_are_the_cores_of_a_rank() -> None:
    (point,) = plan_points(["gpu.linpack"], {"ranks": ["2"]}, made_up_machine(cores=8))
    assert point.parameters["threads"] == 4 and len(point.cpus) == 8
    (point,) = plan_points(["gpu.linpack"], {"ranks": ["2"], "threads": ["8"]}, made_up_machine(cores=8))
    assert point.refusal is not None and "16 CPUs" in point.refusal.reason


def peaks(params: Params, **facts: object) -> dict[str, float | None]:
    """The limits of the figures, in Tflop/s, for a solution that took a second."""
    device = {"capability": 80, "compute_units": 100, "clock_Hz": 1e9, "devices": 2, "found": 4, **facts}
    phases = {f"{phase}_s": 0.0 for phase in ("panel", "broadcast", "swap", "update", "copies", "solve")}
    sample = Sample("solution", 0, 1.0, {"flops": 1e12, "copied_B": 1.0}, extra={"device": device, **phases})
    machine = made_up_machine(cores=8)
    found = readings(LINPACK, machine, {**LINPACK.point({}), "nodes": 1, "p": 1, "q": 2, **params}, [sample])
    limits = {one.figure.name: one.figure.limit(machine, params, [sample]) for one in found if one.figure.limit}
    return {name: None if limit.value is None else limit.value / 1e12 for name, limit in limits.items()}


def test_the_rate_has_the_peak_of_its_devices_and_of_the_node() -> None:
    """2 of 4 devices: 100 multiprocessors x 64 multiply-adds of tensor cores x 2 flop x 1 GHz each."""
    cpus = made_up_machine(cores=8).named_limit("cpu.fp64")
    host = 0.0 if cpus is None or cpus.value is None else cpus.value / 1e12
    found = peaks({"precision": "fp64"})
    assert found["rate"] == pytest.approx(2 * 12.8)
    assert found["rate_of_node"] == (pytest.approx(4 * 12.8 + host) if host else None)
    assert peaks({"precision": "mixed"})["rate"] == pytest.approx(2 * 12.8)  # fp32 on vector units
    assert peaks({"precision": "fp64"}, capability=0) == {"rate": None, "rate_of_node": None}


# Odd sizes, blocks that do not divide them, and blocks larger than the matrix.
CASES: list[dict[str, str]] = [
    {"n": "1", "nb": "4", "devices": "1"},
    {"n": "100", "nb": "200", "devices": "1", "depth": "0"},
    {"n": "301", "nb": "37", "devices": "2"},
    {"n": "301", "nb": "32", "devices": "2", "p": "2", "depth": "0"},
    {"n": "257", "nb": "32", "devices": "3", "p": "3"},
    {"n": "333", "nb": "32", "devices": "4", "threads": "2"},
    {"n": "333", "nb": "32", "devices": "4", "precision": "mixed"},
    {"n": "128", "nb": "16", "devices": "2", "p": "2", "precision": "mixed", "depth": "0"},
]
OF_TWO_RANKS: list[dict[str, str]] = [
    {"n": "301", "nb": "37", "devices": "2"},
    {"n": "301", "nb": "32", "devices": "2", "p": "2", "depth": "0"},
    {"n": "333", "nb": "32", "devices": "4", "precision": "mixed"},
    {"n": "255", "nb": "32", "devices": "4", "p": "4"},
    {"n": "200", "nb": "32", "devices": "1", "p": "2"},
]


def name_of(case: dict[str, str]) -> str:
    return "-".join(f"{name}={value}" for name, value in case.items())


@two_cpus
@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_one_rank_solves(case: dict[str, str], live_machine: Machine, folder: ResultsFolder) -> None:
    record = run(live_machine, folder, **case)
    assert record.outcome.is_ok, record.outcome
    sample = next(sample for sample in record.samples if sample.series == "solution")
    n = int(case["n"])
    assert sample.work["flops"] == pytest.approx(2 / 3 * n**3 + 1.5 * n**2)
    phases = [value for name, value in sample.extra.items() if name.endswith("_s")]
    assert len(phases) == 6 and sum(phases) == pytest.approx(sample.elapsed_s, rel=0.05, abs=1e-3)
    assert sample.work["copied_B"] >= 8 * n
    iterations = [sample.work["ops"] for sample in record.samples if sample.series == "iterations"]
    assert all(1 <= count <= 5 for count in iterations) and bool(iterations) == (case.get("precision") == "mixed")


@two_cpus
@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize(
    ("case", "mpi"),
    [
        pytest.param(case, mpi, marks=() if k % len(MPIS) == j else pytest.mark.exhaustive)
        for k, case in enumerate(OF_TWO_RANKS)
        for j, mpi in enumerate(MPIS)
    ],
    ids=lambda value: name_of(value) if isinstance(value, dict) else value,
)
def test_two_ranks_solve(case: dict[str, str], mpi: str, live_machine: Machine, folder: ResultsFolder) -> None:
    record = run(live_machine, folder, mpi, ranks="2", **case)
    assert record.outcome.is_ok, record.outcome


@two_cpus
@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"devices": "3", "ranks": "2"}, "2 ranks of a node cannot share 3 devices evenly"),
        ({"devices": "2", "p": "2", "q": "2"}, "a grid of 2 x 2 needs 4 devices, not 2"),
    ],
)
def test_devices_that_do_not_fit(
    settings: dict[str, str], why: str, live_machine: Machine, folder: ResultsFolder
) -> None:
    outcome = run(live_machine, folder, n="64", nb="16", **settings).outcome
    assert outcome.state is State.SKIPPED and why in outcome.reason, outcome


TWO = {"n": "160", "nb": "16", "devices": "2"}
BY_ROWS = {**TWO, "p": "2"}
MIXED = {**TWO, "precision": "mixed"}
RANKS = {**TWO, "ranks": "2"}
_UPDATE = "  void update(const Step& step, Columns columns) {\n"
_PANEL = "write(*copying_, panel(step), 0, from, std::size_t{rows} * panel_pitch_);"
FAULTS: dict[str, tuple[dict[str, str], Edits]] = {
    "a lost block": (
        TWO,
        {"dense/worker.hpp": (_UPDATE, f"{_UPDATE}    if (PLANTED && step.number == 3 && column_ == 0) return;\n")},
    ),
    "a lost part of a block": (
        TWO,
        {"dense/worker.hpp": ("step.width(),\n             true);", "step.width() - (PLANTED ? 1 : 0),\n true);")},
    ),
    "a device that computes nothing": (
        BY_ROWS,
        {
            "dense/worker.hpp": (
                "    if (blas_) {\n",
                "    if (PLANTED && row_ == 1)\n      return;\n    if (blas_) {\n",
            )
        },
    ),
    "a swapped pivot row": (
        TWO,
        {
            "dense/grid.hpp": (
                "std::swap(holds[j], holds[pivots[j]]);",
                "std::swap(holds[j], holds[j == 3 && pivots[j] + 1 < rows.count() ? pivots[j] + 1 : pivots[j]]);",
            )
        },
    ),
    "a row that stays": (
        TWO,
        {
            "dense/grid.hpp": (
                "put_to[row].push_back(rows.local_of(position));",
                "put_to[row].push_back(rows.local_of(0));",
            )
        },
    ),
    "a stale panel": (TWO, {"dense/worker.hpp": (_PANEL, "if (step.number % 4 != 3) " + _PANEL)}),
    "a stale copy of rows": (
        BY_ROWS,
        {
            "dense/worker.hpp": (
                "write(*queue_, package_, 0, package, count);",
                "if (step.number != 5) write(*queue_, package_, 0, package, count);",
            )
        },
    ),
    "a message that is not sent": (
        RANKS,
        {
            "dense/exchange.hpp": (
                "    const int from = root(step);\n    for",
                "    const int from = root(step);\n    if (PLANTED && step.number == 4) return;\n    for",
            )
        },
    ),
    "a block of the solution": (
        TWO,
        {
            "dense/solver.hpp": (
                "auto known = sums_of(step);",
                "auto known = sums_of(Step(grid_, PLANTED ? 1 : step.number));",
            )
        },
    ),
    "a refinement that does not converge": (
        MIXED,
        {"dense/refinement.hpp": ("solver.solve(false, residual);", "solver.solve(true, residual);")},
    ),
    "a refinement that ends early": (
        MIXED,
        {"dense/refinement.hpp": ("scaled <= 1;", "scaled <= (PLANTED ? 1e30 : 1);")},
    ),
    "NaN for the solution": (
        TWO,
        {"dense/solver.hpp": ("values[row] = is_upper ?", "values[row] = PLANTED ? NAN : is_upper ?")},
    ),
}


@two_cpus
@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edits = {name: of_fault for name, (_, of_fault) in FAULTS.items()}
    broken = with_fault(LINPACK, fault, edits, tmp_path, monkeypatch)
    settings = {"backend": "opencl", "threads": "1", **FAULTS[fault][0]}
    record = run_one(make_ready(broken, live_machine, folder, **settings), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.check in ("residual", "converged"), record.outcome


KERNELS = re.findall(r"^KERNEL (\w+)\(", LINPACK.program.source.with_suffix(".cl").read_text(), re.MULTILINE)
KERNEL_FAULTS = [
    pytest.param(kernel, fault, marks=() if n == 0 or n % 3 == k else pytest.mark.exhaustive)
    for n, kernel in enumerate(KERNELS)
    for k, fault in enumerate(("nothing", "half", "nan"))
]


@two_cpus
@pytest.mark.real
@pytest.mark.devices
@pytest.mark.parametrize(("kernel", "fault"), KERNEL_FAULTS)
def test_a_kernel_that_does_not_do_its_work_is_found(
    kernel: str,
    fault: str,
    live_machine: Machine,
    folder: ResultsFolder,
    faulty_kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENCL_LAYERS", str(faulty_kernels))
    monkeypatch.setenv("PLANTED", f"{kernel}:{fault}")
    record = run(live_machine, folder, **(MIXED if kernel == "multiply_made" else BY_ROWS))
    assert record.outcome.state is State.INVALID, record.outcome
