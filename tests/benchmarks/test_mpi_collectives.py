"""mpi.barrier to mpi.exscan: their sizes and figures, the program for real on each MPI, and planted faults."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import facts, made_up_machine
from usual import usually, usually_first

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.mpi.collectives import BENCHMARKS, limit_of
from seatrial.engine.judge import failed_check, wrong_sample
from seatrial.environments.mpi import find_mpis
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Native
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
ALLREDUCE = benchmark_named("mpi.allreduce")
NAMES = [benchmark.name for benchmark in BENCHMARKS]
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")


def plan(name: str, machine: Machine | None = None, **settings: str) -> Point:
    (point,) = plan_points([name], {key: [value] for key, value in settings.items()}, machine or made_up_machine())
    return point


def arguments(point: Point) -> dict[str, str]:
    words = point.benchmark.program.arguments(point.parameters)
    return dict(zip(words[::2], words[1::2], strict=True))


def sizes(name: str, machine: Machine | None = None, **settings: str) -> list[int]:
    return [int(size) for size in arguments(plan(name, machine, **settings))["--sizes"].split(",")]


def derived(check: str, benchmark: Benchmark, params: Params, samples: list[Sample]) -> tuple[float | None, bool]:
    """What a check makes of the samples, and whether it passes."""
    (found,) = (candidate for candidate in benchmark.checks if candidate.name == check)
    assert found.derive is not None
    value = found.derive(made_up_machine(), params, samples)
    low, high = found.bound(made_up_machine(), params)
    return value, value is not None and low <= value <= high


def times(size_B: int, slowest_s: float, mean_s: float, i: int = 0) -> list[Sample]:
    """A thousand operations that took so long each."""
    work, point = {"ops": 1000.0}, {"size_B": size_B}
    return [
        Sample("time_max", i, slowest_s * 1000, work, point=point),
        Sample("time_mean", i, mean_s * 1000, work, point=point),
    ]


def overlapped(both_s: float, compute_s: float, alone_s: float) -> Sample:
    return Sample("overlap", 0, both_s, {"compute_s": compute_s, "alone_s": alone_s}, point={"size_B": 8})


def with_memory(memory_B: int, cores: int = 2) -> Machine:
    return replace(made_up_machine(cores=cores), facts=facts(memory_total=memory_B))


def test_a_family_of_seventeen_and_a_few_of_them_in_the_trial() -> None:
    assert len(set(NAMES)) == 17
    in_trial = {benchmark.name for benchmark in BENCHMARKS if benchmark.trial}
    assert in_trial == {"mpi.barrier", "mpi.bcast", "mpi.allreduce", "mpi.alltoall"}


def test_figures_are_of_one_operation() -> None:
    point = plan("mpi.allreduce", size_B="8")
    found = readings(ALLREDUCE, made_up_machine(), point.parameters, times(8, 3e-7, 2e-7))
    assert {r.figure.name: r.value for r in found} == {
        "time_max": pytest.approx(3e-7),
        "time_mean": pytest.approx(2e-7),
    }


def test_a_time_that_another_tool_told_is_read_as_it_is() -> None:
    params = {**plan("mpi.allreduce").parameters, "ranks": "unknown", "nodes": "unknown"}
    (reading,) = readings(ALLREDUCE, made_up_machine(), params, [Sample("time_mean", 0, 2.2e-7, point={"size_B": 8})])
    assert reading.value == 2.2e-7 and reading.limit is not None and reading.limit.value is None


@pytest.mark.parametrize(
    ("both_s", "overlap"), [(1e-6, 1.0), (2e-6, 0.0), (1.25e-6, 0.75), (0.9e-6, 1.0), (2.5e-6, 0.0)]
)
def test_overlap_is_the_share_that_computation_hides(both_s: float, overlap: float) -> None:
    point = plan("mpi.allreduce", call="nonblocking")
    (reading,) = readings(ALLREDUCE, made_up_machine(), point.parameters, [overlapped(both_s, 1e-6, 1e-6)])
    assert (reading.figure.name, reading.value) == ("overlap", pytest.approx(overlap))


def test_overlap_is_there_for_non_blocking_calls_alone() -> None:
    figure = ALLREDUCE.figure("overlap")
    assert [figure.is_there({"call": call}) for call in ("blocking", "nonblocking", "persistent")] == [
        False,
        True,
        False,
    ]


def test_sweeps_hold_whole_elements_and_even_shares() -> None:
    assert sizes("mpi.bcast") == [2**power for power in range(23)]
    assert sizes("mpi.allreduce", datatype="MPI_DOUBLE")[0] == 8
    three = made_up_machine(cores=3)
    assert all(size % 12 == 0 for size in sizes("mpi.reduce-scatter-block", three, datatype="MPI_INT"))
    assert sizes("mpi.reduce-scatter-block", datatype="MPI_INT", largest_B="32B") == [8, 16, 32]


def test_a_sweep_ends_where_half_of_the_memory_does() -> None:
    machine = with_memory(2**24, cores=4)  # 16 MiB, of which all-to-all takes 32 for each byte
    assert sizes("mpi.alltoall", machine)[-1] == 2**18
    assert sizes("mpi.bcast", machine)[-1] == 2**20
    assert sizes("mpi.bcast", with_memory(2**34), size_B="to-memory")[-1] == 2**31


def test_blocks_that_int_does_not_place_are_left_out() -> None:
    assert sizes("mpi.alltoallw", with_memory(2**40), size_B="to-memory")[-1] == 2**30
    assert sizes("mpi.alltoall", with_memory(2**40), size_B="to-memory")[-1] == 2**36


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("mpi.barrier", {"ranks": "1"}, "a collective operation needs at least 2 ranks"),
        ("mpi.barrier", {"tests": "3"}, "tests, the number of MPI_Test calls, needs call=nonblocking"),
        ("mpi.bcast", {"ranks": "9", "oversubscribe": "true", "start": "clock"}, "ranks that share CPUs"),
        ("mpi.allreduce", {"buffers": "device"}, "buffers=device"),
        ("mpi.allreduce", {"size_B": "6B", "datatype": "MPI_INT"}, "6 B is not a whole number"),
        ("mpi.reduce-scatter-block", {"size_B": "9B"}, "9 B do not divide into equal blocks"),
        ("mpi.alltoallw", {"size_B": "4GiB"}, "the displacements of alltoallw"),
    ],
)
def test_what_means_nothing_is_skipped(name: str, settings: dict[str, str], reason: str) -> None:
    refusal = plan(name, **settings).refusal
    assert refusal is not None and refusal.reason.startswith(reason), refusal


def test_bytes_cannot_be_added() -> None:
    with pytest.raises(UsageError, match="MPI_BYTE"):
        plan("mpi.allreduce", datatype="MPI_BYTE")


def test_ranks_that_share_cpus_start_after_a_barrier() -> None:
    assert plan("mpi.barrier").parameters["start"] == "clock"
    assert plan("mpi.barrier", ranks="9", oversubscribe="true").parameters["start"] == "barrier"


@pytest.mark.parametrize(
    ("slowest_s", "mean_s", "passes"), [(2e-7, 1e-7, True), (1e-7, 2e-7, False), (3e-7, 1e-7, False)]
)
def test_the_slowest_rank_is_no_quicker_than_the_mean(slowest_s: float, mean_s: float, passes: bool) -> None:
    params = plan("mpi.allreduce", size_B="8").parameters
    samples = [*times(8, 2e-7, 2e-7), *times(8, slowest_s, mean_s, i=1)]
    assert derived("slowest_over_mean", ALLREDUCE, params, samples)[1] is passes


def test_sizes_that_are_missing_or_strange_are_counted() -> None:
    params = plan("mpi.allreduce", largest_B="2B").parameters
    both = [*times(1, 2e-7, 1e-7), *times(2, 2e-7, 1e-7)]
    assert derived("sizes_not_measured", ALLREDUCE, params, both) == (0, True)
    assert derived("sizes_not_measured", ALLREDUCE, params, both[:-1]) == (1, False)
    assert derived("sizes_not_measured", ALLREDUCE, params, [*both, *times(4, 2e-7, 1e-7)]) == (2, False)
    barrier = benchmark_named("mpi.barrier")
    own = plan("mpi.barrier").parameters
    no_size = [Sample(name, 0, 1e-3, {"ops": 1.0}) for name in ("time_max", "time_mean")]
    assert derived("sizes_not_measured", barrier, own, no_size) == (0, True)
    assert derived("sizes_not_measured", barrier, own, []) == (2, False)


@pytest.mark.parametrize(("compute_s", "passes"), [(1e-6, True), (2e-6, True), (4e-6, False), (2e-7, False)])
def test_computation_is_about_as_long_as_the_operation(compute_s: float, passes: bool) -> None:
    params = plan("mpi.allreduce", call="nonblocking").parameters
    assert derived("computed_share", ALLREDUCE, params, [overlapped(2e-6, compute_s, 1e-6)])[1] is passes


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("mpi.allreduce", 2 * 3 / 4),
        ("mpi.reduce-scatter", 3 / 4),
        ("mpi.allgather", 8 * 3 / 4),
        ("mpi.alltoall", 2 * 6),
        ("mpi.bcast", 1),
    ],
)
def test_the_least_time_between_nodes(name: str, share: float) -> None:
    """Eight ranks on four nodes, each with a link of 25 GB/s: 25 MB cross it in a millisecond."""
    adapter = Device("nic-0", DeviceKind.NIC, "mlx5_0", facts=facts(rate=25e9))
    machine = replace(made_up_machine(), devices=(*made_up_machine().devices, adapter))
    params = {**plan(name).parameters, "ranks": 8, "nodes": 4}
    limit_function = benchmark_named(name).figure("time_max").limit
    assert limit_function is not None
    limit = limit_function(machine, params, times(25_000_000, 1.0, 1.0))
    assert limit.value == pytest.approx(share * 1e-3) and limit.basis is Basis.PHYSICAL and not limit.is_physical
    one_node = limit_function(machine, {**params, "nodes": 1}, times(8, 1.0, 1.0))
    assert one_node.value is None and "one host" in one_node.derivation


def test_an_operation_without_a_formula_has_no_limit() -> None:
    assert limit_of(None)(made_up_machine(), plan("mpi.barrier").parameters, []).value is None


def run(benchmark: Benchmark, folder: ResultsFolder, machine: Machine, mpi: str, **settings: str) -> RepeatRecord:
    ready = make_ready(benchmark, machine, folder, mpi=mpi, **settings)
    return run_one(ready, machine, folder, has_few_samples=settings.get("call") != "nonblocking")


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(
    ("benchmark", "mpi"),
    usually(product(BENCHMARKS, MPIS), lambda case: case[1] == MPIS[0] or case[0] is ALLREDUCE),
    ids=lambda case: case if isinstance(case, str) else case.name,
)
def test_every_operation_gives_what_it_must(
    benchmark: Benchmark, mpi: str, folder: ResultsFolder, live_machine: Machine
) -> None:
    settings = {"largest_B": "64B"} if "size_B" in [parameter.name for parameter in benchmark.parameters] else {}
    record = run(benchmark, folder, live_machine, mpi, **settings)
    assert record.outcome.is_ok, record.outcome
    assert record.checks["wrong_data"] == 0 and record.seen["notes"]["common_clock"] == "one clock for all ranks"


@two_cpus
@pytest.mark.real
@pytest.mark.quiet
@pytest.mark.parametrize("mpi", usually_first(MPIS))
@pytest.mark.parametrize(
    "settings",
    [
        {"start": "barrier", "datatype": "MPI_DOUBLE", "operation": "max", "size_B": "8B"},
        {"start": "back-to-back", "datatype": "MPI_LONG", "operation": "min", "size_B": "1000B"},
        {"call": "nonblocking", "datatype": "MPI_FLOAT", "size_B": "64KiB"},
        {"call": "nonblocking", "tests": "4", "datatype": "MPI_INT", "size_B": "64KiB"},
        {"size_B": "1MiB"},
    ],
)
def test_other_ways_to_call_it(
    settings: dict[str, str], mpi: str, folder: ResultsFolder, live_machine: Machine
) -> None:
    record = run(ALLREDUCE, folder, live_machine, mpi, **settings)
    assert record.outcome.is_ok, record.outcome
    assert ("overlap" in {sample.series for sample in record.samples}) is (settings.get("call") == "nonblocking")


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", MPIS)
def test_persistent_calls_run_or_say_what_they_need(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    record = run(benchmark_named("mpi.bcast"), folder, live_machine, mpi, call="persistent", size_B="8B")
    assert record.outcome.is_ok or (record.outcome.state is State.SKIPPED and "needs MPI 4" in record.outcome.reason), (
        record.outcome
    )


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_more_ranks_than_cpus(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    alone = replace(live_machine, allowed_cpus=live_machine.allowed_cpus[:1])
    record = run(ALLREDUCE, folder, alone, mpi, ranks="3", oversubscribe="true", size_B="8B")
    assert record.outcome.is_ok, record.outcome


SCAN = "calls = call(SEATRIAL_COLLECTIVE(Scan, scan), send_, receive_, count, type, reduction);"
GATHER = "SEATRIAL_COLLECTIVE(Gather, gather), send_, message.count"
BROKEN: dict[str, tuple[Edits, dict[str, tuple[dict[str, str], str]]]] = {
    "a vector too short": (
        {"collectives.cpp": ("static_cast<int>(elements)", "static_cast<int>(elements > 1)")},
        {"mpi.allreduce": ({"size_B": "8B"}, "wrong_data")},
    ),
    "blocks at wrong places": (
        {
            "mpi/collective_layout.hpp": (
                "static_cast<int>(i) * message.count",
                "static_cast<int>(peers - 1 - i) * message.count",
            ),
        },
        {
            "mpi.alltoallv": ({"size_B": "8B"}, "wrong_data"),
            "mpi.allgatherv": ({"size_B": "8B"}, "wrong_data"),
        },
    ),
    "shares at wrong places": (
        {"mpi/collective_data.hpp": ("place = first + i;", "place = (PLANTED ? 0 : first) + i;")},
        {"mpi.reduce-scatter": ({"size_B": "64B"}, "wrong_data")},
    ),
    "another reduction": (
        {"collectives.cpp": ("mpi::Reduction::sum   ? MPI_SUM", "mpi::Reduction::sum   ? PLANTED ? MPI_MAX : MPI_SUM")},
        {"mpi.reduce": ({"size_B": "8B", "start": "barrier"}, "wrong_data")},
    ),
    "a maximum that is none": (
        {"mpi/collective_timing.hpp": ("count, MPI_DOUBLE, MPI_MAX", "count, MPI_DOUBLE, PLANTED ? MPI_MIN : MPI_MAX")},
        {"mpi.barrier": ({"start": "barrier"}, "slowest_over_mean")},
    ),
    "a size that nobody asked for": (
        {
            "mpi/collective_program.hpp": (
                '.add("size_B", point.bytes)',
                '.add("size_B", point.bytes + (PLANTED ? 1 : 0))',
            )
        },
        {"mpi.bcast": ({"size_B": "8B", "start": "back-to-back"}, "sizes_not_measured")},
    ),
    "a scan without the rank itself": (
        {"collectives.cpp": (SCAN, SCAN.replace("(Scan, scan)", "(Exscan, exscan)"))},
        {"mpi.scan": ({"size_B": "8B", "start": "barrier"}, "wrong_data")},
    ),
    "ranks that start late": (
        {"mpi/collective_timing.hpp": ("late_[i] > tolerance_", "late_[i] > tolerance_ / 8")},
        {"mpi.barrier": ({}, "overrun_share")},
    ),
    "a message of a byte less": (
        {"collectives.cpp": (GATHER, f"{GATHER} - (PLANTED ? 1 : 0)")},
        {"mpi.gather": ({"size_B": "8B"}, "wrong_data")},
    ),
    "a clock that runs away": (
        {
            "mpi/common_clock.hpp": (
                "at_ = bounds[2];",
                "at_ = bounds[2];\n    static Nanoseconds away = 0;\n    low_ = high_ = away++ * 1'000'000'000;",
            ),
        },
        {"mpi.barrier": ({}, "clock_error")},
    ),
    "a call that does nothing": (
        {
            "mpi/collective_call.hpp": (
                "{ Blocking(values..., comm_); }",
                "{ if (PLANTED) ((void)values, ...); else Blocking(values..., comm_); }",
            )
        },
        {"mpi.bcast": ({"size_B": "8B"}, "wrong_data")},
    ),
    "too little computation": (
        {
            "mpi/collective_program.hpp": (
                "(alone_s / step_s_) + 1",
                "(alone_s / step_s_ / (PLANTED ? 8 : 1)) + 1",
            )
        },
        {"mpi.allreduce": ({"size_B": "256KiB", "call": "nonblocking"}, "computed_share")},
    ),
}
"""Fault -> where it is planted; then each benchmark that meets it, and the check that must find it."""
ALL_MISSED = "starts that are all missed"
PLANTED: dict[str, Edits] = {name: edits for name, (edits, _) in BROKEN.items()} | {
    ALL_MISSED: {
        "mpi/collective_timing.hpp": ("late_[at] > tolerance_;", "(PLANTED || late_[at] > tolerance_);"),
        "mpi/collective_program.hpp": ("40 * program_.slice_s", "(PLANTED ? 1 : 40) * program_.slice_s"),
    }
}


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not MPIS, reason="needs an MPI library (apt install libopenmpi-dev openmpi-bin)")
@pytest.mark.parametrize("fault", BROKEN)
def test_planted_faults_are_found(
    fault: str, folder: ResultsFolder, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_fault(ALLREDUCE, fault, PLANTED, tmp_path, monkeypatch)
    for name, (settings, check) in BROKEN[fault][1].items():
        own = benchmark_named(name)
        assert isinstance(own.program, Native) and isinstance(broken.program, Native)
        program = replace(own.program, source=broken.program.source)
        record = run(replace(own, program=program), folder, live_machine, MPIS[0], **settings)
        assert record.outcome.state is State.INVALID, (name, record.outcome)
        assert record.outcome.reason.startswith(f"{check}: "), (name, record.outcome)


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not MPIS, reason="needs an MPI library (apt install libopenmpi-dev openmpi-bin)")
def test_starts_that_are_all_missed_are_counted_in_the_outcome(
    folder: ResultsFolder, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_fault(ALLREDUCE, ALL_MISSED, PLANTED, tmp_path, monkeypatch)
    record = run(broken, folder, live_machine, MPIS[0], size_B="8B")
    notes = record.seen["notes"]
    assert notes["bursts"] == notes["missed_bursts"] > 4
    start = f"samples: none were recorded: ranks were late for {notes['bursts']} of {notes['bursts']} starts"
    assert record.outcome.reason == f"{start} by the common clock; use start=barrier, which needs none"


@pytest.mark.parametrize(
    ("notes", "start", "said"),
    [
        ({"missed_bursts": 7, "bursts": 9}, "clock", "ranks were late for 7 of 9 starts"),
        ({"missed_bursts": 7}, "clock", "ranks were late for 7 starts"),  # of an older program
        ({"missed_bursts": 0, "bursts": 9}, "clock", ""),
        ({"missed_bursts": "7", "bursts": 9}, "clock", ""),
        ({}, "barrier", ""),
    ],
)
def test_no_samples_are_explained_only_by_what_was_counted(notes: dict[str, object], start: str, said: str) -> None:
    outcome = wrong_sample(ALLREDUCE, {"start": start}, (), notes)
    assert outcome is not None
    assert outcome.reason.startswith(f"samples: none were recorded: {said}" if said else "samples: none were recorded")
    assert ("start=barrier" in outcome.reason) is bool(said)
    # If only some sizes have samples, the check that finds it says the same.
    samples = [Sample(series, 0, 1e-5, {"ops": 1}, 0, {"size_B": 8}) for series in ("time_max", "time_mean")]
    reported = {"wrong_data": 0.0, "overrun_share": 0.0, "clock_error": 0.0}
    params: Params = {"start": start, "call": "blocking", "size_B": "sweep", "largest_B": 16, "datatype": "MPI_DOUBLE"}
    params = {**params, "ranks": 2}
    outcome = failed_check(ALLREDUCE, made_up_machine(), params, samples, reported, notes)
    assert outcome is not None and outcome.reason.startswith("sizes_not_measured: 2, must be 0 (")
    assert outcome.reason.endswith(
        f"; {said} by the common clock; use start=barrier, which needs none" if said else ")"
    )


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_clocks_that_differ_are_related(
    mpi: str, folder: ResultsFolder, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    """The second rank lives in a time namespace whose clock is 1000 s ahead, as that of another host may be."""
    unshare = [need("unshare", "apt install util-linux"), "--time", "--monotonic", "1000", "--fork"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs a time namespace (root, Linux 5.6 or later)")
    ready = make_ready(ALLREDUCE, live_machine, folder, mpi=mpi, size_B="8B", start="clock")
    own = [str(ready.program.path), "--record", str(tmp_path), "--ranks", "2"]
    own += ready.point.benchmark.program.arguments(ready.point.parameters)
    assert ready.mpi is not None and ready.mpi.launcher is not None
    command = [str(ready.mpi.launcher), "-np", "1", *own, ":", "-np", "1", *unshare, *own]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, **as_root, **dict(ready.mpi.variables)}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    record = parse_record((tmp_path / "rank-000000.jsonl").read_bytes())
    assert record.ended and record.checks["wrong_data"] == 0 and record.samples
    assert record.notes["common_clock"] == "measured between hosts"
    # Clocks that are not related are 1000 s apart. How close the bound comes depends on what else runs here.
    assert 0 < record.notes["clock_error_bound_s"] < 1
    assert all(0 < sample.elapsed_s < 1 for sample in record.samples)
