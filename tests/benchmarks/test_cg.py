"""cpu.cg: what is refused, its figures, the same solution however the grid is divided, and planted faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine
from usual import usually_first

from seatrial.benchmarks.cpu.cg import BENCHMARK
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
SMALL = {"nx": "24", "ny": "16", "nz": "32", "ranks": "1", "oversubscribe": "true"}
"""No length is another, and vectors do not divide the stages."""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"nx": "100"}, "nx=100 is not a multiple of 8: the grid is halved three times"),
        ({"nx": "64", "nz": "60"}, "nz=60 is not a multiple of 8"),
        ({"nx": "256", "ny": "24"}, "a grid of 256 x 24 x 256 is too slim"),
        ({"nx": "1600"}, "a grid of 1600 x 1600 x 1600 has 2^31 points or more"),
        ({"ranks": "40", "threads": "2"}, "40 ranks of 2 threads need 80 CPUs"),
        ({"ranks": "9", "threads": "2", "oversubscribe": "true"}, "oversubscribe=true: several threads of a rank need"),
    ],
)
def test_what_cannot_be_solved_is_skipped(settings: dict[str, str], reason: str) -> None:
    values = {name: [value] for name, value in settings.items()}
    (point,) = plan_points(["cpu.cg"], values, made_up_machine(cores=64))
    assert point.refusal is not None and point.refusal.reason.startswith(reason), point.refusal


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.benchmarks.cpu.cg.memory_size", lambda machine: 8e9)
    (point,) = plan_points(["cpu.cg"], {"nx": ["128"]}, made_up_machine(cores=64))
    assert point.refusal is not None
    assert point.refusal.reason == "64 ranks of 128 x 128 x 128 points need 64.4 GB on each node; it has 8 GB"


def test_a_grid_exceeds_the_caches() -> None:
    machine = made_up_machine(cores=64)
    (point,) = plan_points(["cpu.cg"], {"ranks": ["2"]}, machine)
    (other,) = plan_points(["cpu.cg"], {"ranks": ["64"], "ny": ["128"]}, machine)
    assert point.refusal is None and point.parameters["nx"] == point.parameters["ny"] == point.parameters["nz"]
    assert other.refusal is None and other.parameters["ny"] == 128
    assert 64 <= int(str(other.parameters["nx"])) <= int(str(point.parameters["nx"]))


def test_its_figures_and_their_limits() -> None:
    phases = dict.fromkeys(("spmv", "symgs", "transfer", "vectors", "reduce", "halo"), 0.5)
    work = {"flops": 8e9, "raw_flops": 10e9, "bytes": 40e9, "iterations": 60.0}
    sample = Sample("set", 0, 4.0, work, extra={"setup_s": 10.0, "memory_Bps": 20e9, "phases_s": phases})
    found = {r.figure.name: r for r in readings(BENCHMARK, made_up_machine(), {"ordering": "colours"}, [sample])}
    values = {name: reading.value for name, reading in found.items()}
    shares = {f"{phase}_share": 0.125 for phase in phases}
    expected = {"rate": 2e9, "rating": 1.6e9, "raw_rate": 2.5e9, "bandwidth": 10e9, "iterations": 60.0, **shares}
    assert values == pytest.approx(expected)
    limits = [found[name].limit for name in ("rate", "bandwidth")]
    assert [limit.value for limit in limits if limit is not None] == pytest.approx([4e9, 20e9])
    assert all(limit is not None and limit.basis is Basis.MEASURED for limit in limits)


def measured(folder: ResultsFolder, machine: Machine, mpi: str, **settings: str) -> RepeatRecord:
    ready = make_ready(BENCHMARK, machine, folder, mpi=mpi, **{**SMALL, **settings})
    return run_one(ready, machine, folder)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_it_solves_however_the_grid_is_divided(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    """The residual of each part is compared with the definition; the operations are those of the whole grid."""
    cases = [
        {"ranks": "2"},
        {"ranks": "2", "ordering": "colours"},
        {"ranks": "6", "nx": "16"},
        {"threads": "2", "oversubscribe": "false"},
    ]
    for case in cases if mpi == MPIS[0] else cases[:1]:
        record = measured(folder, live_machine, mpi, **case)
        assert record.outcome.is_ok, record.outcome
        sample = record.samples[0]
        ranks = {"6": (3, 2, 1), "2": (2, 1, 1)}.get(case.get("ranks", "1"), (1, 1, 1))
        lengths = (int(case.get("nx", "24")) * ranks[0], 16 * ranks[1], 32 * ranks[2])
        assert sample.work["flops"] == operations(*lengths)
        assert sample.work["iterations"] == 50 or case.get("ordering") == "colours"
        assert sum(sample.extra["phases_s"].values()) <= sample.elapsed_s * 1.001


def operations(x: int, y: int, z: int) -> float:
    """Of 50 iterations, as HPCG's report counts them."""
    rows = x * y * z
    nonzeros = [(3 * x // 2**i - 2) * (3 * y // 2**i - 2) * (3 * z // 2**i - 2) for i in range(4)]
    preconditioner = 50 * (sum(10 * of_grid for of_grid in nonzeros[:3]) + 4 * nonzeros[3])
    return 2 * (3 * 50 + 1) * 2 * rows + 51 * 2 * nonzeros[0] + preconditioner


def test_operations_as_in_a_report_of_hpcg() -> None:
    """HPCG 3.1 with 2 processes of 64 x 64 x 64: "Total with convergence overhead" is 9.5617e+09."""
    assert operations(128, 64, 64) == pytest.approx(9.5617e9, rel=1e-5)


LEVEL, PART = "multigrid/level.hpp", "multigrid/part.hpp"
FAULTS: dict[str, tuple[Edits, str]] = {
    "one thread does half of its rows": (
        {LEVEL: ("first + count * (member + 1) / members_",
                 "first + count * (2 * member + 1) / (2 * members_)")}, "product_error"),
    "rows of other parts are left out": (
        {LEVEL: ("action(std::size_t{1}, static_cast<std::uint32_t>(padding_) + column - part.rows());",
                 "static_cast<void>(0);")}, "product_error"),
    "points of others are those of before": (
        {"multigrid/rank_halo.hpp": ("buffer_[i] = x[sent_[i]];",
                                     "static int calls = 0; if (i > 0 || calls++ < 3) buffer_[i] = x[sent_[i]];")},
        "preconditioner_error"),
    "no backward sweep": ({LEVEL: ("store(x.data() + at, solved);", "static_cast<void>(solved);")},
                          "preconditioner_error"),
    "a stage too early": ({"multigrid/order.hpp": ("stage = std::max(stage, stages[column] + 1);",
                                                   "stage = std::max(stage, stages[column]);")},
                          "preconditioner_error"),
    "no coarse grid": ({LEVEL: ("coarse.r[coarse_[at + lane]] = residual[lane];",
                                "coarse.r[coarse_[at + lane]] = 0;")}, "preconditioner_error"),
    "another matrix": ({LEVEL: ("kinds[kind]->set(slice, lane, count[kind]++, off_diagonal, column);",
                                "kinds[kind]->set(slice, lane, count[kind]++, 1.001 * off_diagonal, column);")},
                       "product_error"),
    "too few iterations": ({"multigrid/conjugate_gradients.hpp": ("++found.iterations;",
                                                                  "found.iterations += tolerance == 0 ? 2 : 1;")},
                           "reference_error"),
    "x is not advanced": ({"multigrid/solver.hpp": ("store(x + at, load(x + at) + alpha * load(p + at));",
                                                    "static_cast<void>(x);")}, "solution_error"),
}  # fmt: skip
OTHERWISE = {
    "one thread does half of its rows": {"threads": "2", "oversubscribe": "false"},
    "rows of other parts are left out": {"ranks": "2"},
    "points of others are those of before": {"ranks": "2"},
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, folder: ResultsFolder, tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    broken = with_fault(BENCHMARK, fault, {name: edits for name, (edits, _) in FAULTS.items()}, tmp_path, monkeypatch)
    ready = make_ready(broken, live_machine, folder, mpi=MPIS[0], **{**SMALL, **OTHERWISE.get(fault, {})})
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID, record.outcome
    assert record.outcome.reason.startswith(f"{FAULTS[fault][1]}: "), record.outcome
