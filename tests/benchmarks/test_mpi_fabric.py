"""mpi.bisection, mpi.incast, mpi.subset-alltoall, mpi.background: their figures on each MPI, and planted faults."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, faults_of, with_fault
from made_up import facts, made_up_machine

from seatrial.benchmarks.mpi.background import BENCHMARK as BACKGROUND
from seatrial.benchmarks.mpi.bisection import BENCHMARK as BISECTION
from seatrial.benchmarks.mpi.incast import BENCHMARK as INCAST
from seatrial.benchmarks.mpi.subset_alltoall import BENCHMARK as SUBSETS
from seatrial.environments.mpi import find_mpis
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
BENCHMARKS = {"bisection": BISECTION, "incast": INCAST, "background": BACKGROUND, "subsets": SUBSETS}
LEAST_RANKS = {"bisection": 2, "incast": 3, "background": 4, "subsets": 2}
# Ranks that share CPUs with other work take seconds for a window of the default messages.
SMALL = {
    "background": {"background_B": "32KiB", "window": "2"},
    "incast": {"receiver": "3"},
    "subsets": {"size_B": "4KiB", "members": "spread"},
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_fewer_ranks_than_it_takes_are_skipped(name: str) -> None:
    benchmark, least = BENCHMARKS[name], LEAST_RANKS[name]
    (few,) = plan_points([benchmark.name], {}, made_up_machine(cores=least - 1))
    assert few.refusal is not None and "ranks" in few.refusal.reason
    (enough,) = plan_points([benchmark.name], {}, made_up_machine(cores=least))
    assert enough.refusal is None and enough.parameters["ranks"] == least


def test_the_figures_of_incast() -> None:
    work = {"bytes": 8e6, "least_bytes": 0.5e6, "senders": 4.0}
    samples = [Sample(series, 0, 0.01, work) for series in ("bandwidth", "fairness")]
    bandwidth, fairness = readings(INCAST, made_up_machine(), {"ranks": 5, "nodes": 1}, samples)
    assert (bandwidth.value, fairness.value) == (pytest.approx(8e8), pytest.approx(0.25))
    assert bandwidth.limit is not None and bandwidth.limit.value is None and "one host" in bandwidth.limit.derivation


def test_the_slowdown_is_the_loaded_time_over_the_quiet_one() -> None:
    sample = Sample("slowdown", 0, 3e-3, {"ops": 1000.0}, extra={"quiet_one_way_s": 1e-6})
    (reading,) = readings(BACKGROUND, made_up_machine(), {"ranks": 4, "nodes": 1}, [sample])
    assert reading.value == pytest.approx(3.0)


def test_the_links_of_all_nodes_bound_the_bisection_of_the_rank_numbers_and_no_other() -> None:
    machine = Machine("m", (Device("nic-0", DeviceKind.NIC, "n0", facts=facts(rate=12.5e9)),))
    samples = [Sample("bandwidth", 0, 1.0, {"bytes": 1e9}, point={"bisection": k}) for k in (0, 1)]
    limits = [r.limit for r in readings(BISECTION, machine, {"ranks": 8, "nodes": 4, "half": "ranks"}, samples)]
    assert [limit.value for limit in limits if limit is not None] == [50e9, None]


def test_the_links_of_a_subset_bound_its_exchange_where_each_rank_has_a_node() -> None:
    machine = Machine("m", (Device("nic-0", DeviceKind.NIC, "n0", facts=facts(rate=12.5e9)),))
    samples = [Sample("bandwidth", 0, 1.0, {"bytes": 1e9}, point={"subset": 0})]
    for nodes, limit in ((8, 50e9), (4, None), (1, None)):
        (reading,) = readings(SUBSETS, machine, {"ranks": 8, "nodes": nodes, "subset": 4}, samples)
        assert reading.limit is not None and reading.limit.value == limit


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("incast", {"receiver": "4"}, "receiver=4: ranks are numbered from 0 to 3"),
        ("subsets", {"subset": "5"}, "subset=5: there are only 4 ranks"),
    ],
)
def test_what_means_nothing_is_skipped(name: str, settings: dict[str, str], reason: str) -> None:
    values = {key: [value] for key, value in settings.items()}
    (point,) = plan_points([BENCHMARKS[name].name], values, made_up_machine(cores=4))
    assert point.refusal is not None and point.refusal.reason == reason


def test_a_list_of_nodes_that_is_not_valid_is_a_wrong_use() -> None:
    for half in ("n[1-", "n[2-1]", "a b"):
        with pytest.raises(UsageError, match="half: "):
            plan_points(["mpi.bisection"], {"half": [half]}, made_up_machine(cores=4))
    (point,) = plan_points(["mpi.bisection"], {"half": ["n[1-2]+m7"]}, made_up_machine(cores=4))
    assert "--half n1,n2,m7" in " ".join(BISECTION.program.arguments(point.parameters))


@pytest.mark.real
@pytest.mark.parallel
def test_nodes_that_have_all_ranks_are_no_half(folder: ResultsFolder, live_machine: Machine) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    for half, reason in ((gethostname(), "all ranks run"), ("no-such-node", "no rank runs")):
        settings = {"ranks": "2", "oversubscribe": "true", "half": half}
        record = run_one(make_ready(BISECTION, live_machine, folder, mpi=MPIS[0], **settings), live_machine, folder)
        assert record.outcome.state is State.SKIPPED and record.outcome.reason.startswith(reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_figures_are_there(name: str, mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    benchmark = BENCHMARKS[name]
    settings = {"ranks": "5", "oversubscribe": "true", **SMALL.get(name, {})}
    ready = make_ready(benchmark, live_machine, folder, mpi=mpi, **settings)
    record = run_one(ready, live_machine, folder, has_few_samples=benchmark is not BACKGROUND)
    assert record.outcome.is_ok, record.outcome
    values = {}
    for reading in readings(benchmark, live_machine, ready.point.parameters, record.samples):
        values.setdefault(reading.figure.name, []).append(reading.value)
    assert set(values) == {figure.name for figure in benchmark.figures}
    if name == "bisection":
        assert len(values["bandwidth"]) == 5 and values["worst"][0] <= values["median"][0]
    if name == "incast":
        assert 0 <= values["fairness"][0] <= 1
        assert {sample.extra["slowest"] for sample in record.samples} <= {0, 1, 2, 4}, "all but the receiver"
    if name == "subsets":
        assert len(values["bandwidth"]) == 2 and values["slowest"][0] <= max(values["bandwidth"])


FAULTS: dict[str, tuple[Benchmark, Edits, str]] = {
    "bisection, one message again and again": (BISECTION, {"mpi/exchange.hpp": ("sent_.data() + k * bytes_",
                                                           "sent_.data()")}, "wrong_bytes"),
    "incast, a byte less": (INCAST, {"incast.cpp": ("send(sent % window_, bytes_)",
                                     "send(sent % window_, bytes_ - (PLANTED ? 1 : 0))")}, "wrong_bytes"),
    "incast, another message": (INCAST, {"incast.cpp": ("Isend(message(slot)", "Isend(message(PLANTED ? 0 : slot)")},
                                "wrong_bytes"),
    "subsets, other data": (SUBSETS, {"subset_alltoall.cpp": (
        "settings_.bytes}, pattern_of(member_, other));",
        "settings_.bytes}, pattern_of(member_, PLANTED ? 0 : other));")}, "wrong_bytes"),
    "background, a byte less": (BACKGROUND, {"background.cpp": ("MPI_Send(sent_.data(), static_cast<int>(bytes_)",
                                             "MPI_Send(sent_.data(), static_cast<int>(bytes_) - (PLANTED ? 1 : 0)")},
                               "wrong_bytes"),
    "background, other data": (BACKGROUND, {"mpi/exchange.hpp": ("mpi::fill({sent_.data(), bytes_ * window_}, mine);",
                                            "mpi::fill({sent_.data(), bytes_ * window_}, mine + 1);")}, "wrong_bytes"),
    "background, no load": (BACKGROUND, {"background.cpp": ("order = done == 0", "order = !PLANTED && done == 0")},
                            "loaded_samples"),
}  # fmt: skip


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, folder: ResultsFolder, tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    benchmark, _, check = FAULTS[fault]
    faults = faults_of(benchmark, {name: (other, edits) for name, (other, edits, _) in FAULTS.items()})
    broken = with_fault(benchmark, fault, faults, tmp_path, monkeypatch)
    settings = {"ranks": "4", "oversubscribe": "true", **(SMALL["background"] if benchmark is BACKGROUND else {})}
    ready = make_ready(broken, live_machine, folder, mpi=MPIS[0], **settings)
    record = run_one(ready, live_machine, folder, has_few_samples=benchmark is not BACKGROUND)
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith(f"{check}: "), record.outcome
