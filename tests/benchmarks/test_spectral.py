"""apps.spectral: what is refused, its figures, the same flow however it is divided, and planted faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine
from usual import usually_first

from seatrial.benchmarks.apps.spectral import BENCHMARK
from seatrial.environments.loaded_libraries import choose_fft
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
SMALL = {"n": "32", "fft": "own", "oversubscribe": "true"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"n": "77"}, "n=77 has factors other than 2, 3 and 5"),
        ({"rows": "2"}, "rows=2: slabs are one row"),
        ({"decomposition": "pencil", "rows": "3"}, "rows=3 does not divide 64 ranks"),
        ({"n": "45"}, "n=45 has 15 x 29 lines of wave numbers, too few for 1 x 64 ranks; use decomposition=pencil"),
        ({"n": "32", "decomposition": "pencil", "rows": "32"}, "n=32 has 11 x 21 lines of wave numbers, too few"),
        ({"ranks": "40", "threads": "2"}, "40 ranks of 2 threads need 80 CPUs"),
        (
            {"ranks": "99", "threads": "2", "oversubscribe": "true"},
            "oversubscribe=true: several threads of a rank need",
        ),
    ],
)
def test_what_cannot_be_divided_is_skipped(settings: dict[str, str], reason: str) -> None:
    values = {name: [value] for name, value in settings.items()}
    (point,) = plan_points(["apps.spectral"], values, made_up_machine(cores=64))
    assert point.refusal is not None and point.refusal.reason.startswith(reason)


@pytest.mark.parametrize(("ranks", "rows"), [(1, 1), (2, 2), (6, 2), (7, 7), (12, 3), (64, 8)])
def test_pencils_are_near_a_square(ranks: int, rows: int) -> None:
    values = {"ranks": [str(ranks)], "decomposition": ["pencil"]}
    (point,) = plan_points(["apps.spectral"], values, made_up_machine(cores=64))
    assert point.refusal is None and point.parameters["rows"] == rows


def test_its_figures_and_their_limits() -> None:
    rates = {"moved_B": 4e8, "memory_Bps": 1e10, "exchange_alone_s": 0.01}
    samples = [
        Sample("step", 0, 0.4, {"steps": 2.0}, extra=rates),
        Sample("transforms", 0, 0.2, {"steps": 2.0}),
        Sample("alltoall", 0, 0.1, {"steps": 2.0}, extra={"step_s": 0.4, "alone_s": 0.01}),
    ]
    found = {r.figure.name: r for r in readings(BENCHMARK, made_up_machine(), {"ranks": 2, "nodes": 1}, samples)}
    values = {name: reading.value for name, reading in found.items()}
    assert values == pytest.approx({"step": 0.2, "transforms": 0.1, "alltoall": 0.05, "alltoall_share": 0.25})
    limits = [found[name].limit for name in ("step", "alltoall")]
    assert [limit.value for limit in limits if limit is not None] == pytest.approx([0.05, 0.01])
    assert all(limit is not None and limit.basis is Basis.MEASURED for limit in limits)


def measured(folder: ResultsFolder, machine: Machine, mpi: str, **settings: str) -> RepeatRecord:
    ready = make_ready(BENCHMARK, machine, folder, mpi=mpi, **{**SMALL, **settings})
    return run_one(ready, machine, folder)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_the_flow_is_the_same_however_it_is_divided(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    """45 points are odd, and neither ranks nor vectors divide their wave numbers."""
    cases = [
        {"n": "45", "ranks": "1"},
        {"n": "45", "ranks": "2"},
        {"n": "45", "ranks": "4", "decomposition": "pencil"},
        {"n": "45", "ranks": "2", "decomposition": "pencil", "precision": "fp32"},
        {"n": "45", "ranks": "1", "threads": "2", "oversubscribe": "false"},
    ]
    if choose_fft("auto", "fp64") is not None:
        cases.append({"n": "45", "ranks": "1", "fft": "fftw"})
    energies = []
    for case in cases if mpi == MPIS[0] else cases[2:3]:
        record = measured(folder, live_machine, mpi, **case)
        assert record.outcome.is_ok, record.outcome
        energy = next(sample.extra["energy"] for sample in record.samples if sample.series == "step")
        energies.append((energy, 1e-6 if case.get("precision") == "fp32" else 1e-12))
        assert all(sample.extra["alone_s"] > 0 for sample in record.samples if sample.series == "transforms")
        names = {sample.series for sample in record.samples}
        assert names == {"step", "transforms"} | ({"alltoall"} if case["ranks"] != "1" else set())
    for energy, tolerance in energies:
        assert energy == pytest.approx(energies[0][0], rel=tolerance)


@pytest.mark.real
@pytest.mark.parallel
def test_dealiasing_by_phase_shifts(folder: ResultsFolder, live_machine: Machine) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    record = measured(folder, live_machine, MPIS[0], ranks="2", dealiasing="phase-shift")
    assert record.outcome.is_ok, record.outcome


@pytest.mark.parametrize(("ranks", "threads", "cpus"), [("all", "4", 64), ("2", "8", 16), ("all", "1", 64)])
def test_each_thread_has_a_cpu(ranks: str, threads: str, cpus: int) -> None:
    machine = made_up_machine(cores=64)
    (point,) = plan_points(["apps.spectral"], {"ranks": [ranks], "threads": [threads]}, machine)
    assert point.refusal is None and point.parameters["ranks"] == cpus // int(threads)
    assert len({*BENCHMARK.placement(machine, point.parameters)}) == cpus


FAULTS: dict[str, tuple[Edits, str]] = {
    "one thread does nothing": (
        {"spectral/product.hpp": ("auto& worker = *workers_[t];",
                                  "if (PLANTED && t == 1)\n        return;\n      auto& worker = *workers_[t];")},
        "vortex_error"),
    "no product": ({"spectral/product.hpp": ("v[i] * c[i] - w[i] * b[i]", "0 * v[i]")}, "vortex_error"),
    "a field is not sent": (
        {"spectral/product.hpp": ("along_z_.there(waves(), layers(), inputs);",
                                  "along_z_.there(waves(), layers(), inputs - 1);")}, "vortex_error"),
    "no pressure": ({"spectral/flow.hpp": ("r[axis] - k[axis] * along", "r[axis]")}, "vortex_error"),
    "another viscosity": ({"spectral/flow.hpp": ("static_cast<double>(k) * k * physics.step_s",
                                                 "static_cast<double>(k) * k * 1.001 * physics.step_s")},
                          "vortex_error"),
    "aliased": ({"spectral/modes.hpp": ("(static_cast<int>(n) - 1) / 3", "(static_cast<int>(n) - 1) / 2")},
                "vortex_error"),
    "no shift between the stages": ({"spectral/flow.hpp": ("shift_half_a_cell();", "static_cast<void>(0);")},
                                    "vortex_error"),
    "a flow with sources": ({"spectral/turbulence.hpp": ("u[axis] - k[axis] * along / square", "u[axis]")},
                            "divergence"),
    "twice the force": ({"spectral/flow.hpp": ("physics_.input / twice_energy", "2 * physics_.input / twice_energy")},
                        "energy_imbalance"),
}  # fmt: skip


OTHERWISE = {
    "no shift between the stages": {"dealiasing": "phase-shift"},
    "one thread does nothing": {"ranks": "1", "threads": "2", "oversubscribe": "false", "dealiasing": "phase-shift"},
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
    ready = make_ready(broken, live_machine, folder, mpi=MPIS[0], **{**SMALL, "ranks": "2", **OTHERWISE.get(fault, {})})
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith(f"{FAULTS[fault][1]}: "), record.outcome
