"""memory.stream: what can be counted of what moves, and where threads and arrays go on a machine of several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.numa_machines import numa_machine
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine, with_small_caches

from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.model.benchmark.benchmark import Ceiling
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

OLD_POINT = {"threads": 2, "nontemporal": False, "huge_pages": True, "array_B": 128 << 20}
POINT = {**OLD_POINT, "node": "auto", "memory": "local"}


def plan(machine: Machine, **settings: str) -> Point:
    (point,) = plan_points(["memory.stream"], {name: [value] for name, value in settings.items()}, machine)
    return point


def limit(machine: Machine, **settings: str) -> Limit:
    declared = STREAM.figure("triad").limit
    assert declared is not None
    return declared(machine, plan(machine, **settings).parameters, ())


@pytest.mark.parametrize(("name", "share"), [("copy", 16 / 24), ("scale", 16 / 24), ("add", 0.75), ("triad", 0.75)])
def test_plain_stores_cannot_count_all_that_moves(name: str, share: float) -> None:
    attainable = STREAM.figure(name).attainable(POINT)
    assert attainable.share == pytest.approx(share)
    assert attainable.why.startswith(f"plain stores: at most {round(share * 100)} % of it can be counted")
    assert STREAM.figure(name).attainable({**POINT, "nontemporal": True}).share == 1.0


def test_the_ceiling_and_the_attainable_share_speak_of_the_same_bytes() -> None:
    for figure in STREAM.figures:
        assert figure.ceiling is not None
        ceiling = figure.ceiling(POINT)
        assert isinstance(ceiling, Ceiling) and ceiling.factor == pytest.approx(figure.attainable(POINT).share)


def test_all_settings_share_the_limit_of_the_memory() -> None:
    machine = made_up_machine(channels=2)
    for figure in STREAM.figures:
        assert {*figure.one_limit_over, "node", "memory"} == {parameter.name for parameter in STREAM.parameters}
        assert figure.limit is not None
        values = {figure.limit(machine, {**POINT, "nontemporal": nt, "threads": 1}, ()).value for nt in (True, False)}
        assert len(values) == 1


def test_an_experiment_of_an_earlier_version_has_the_limit_that_it_had() -> None:
    machine = numa_machine()
    declared = STREAM.figure("triad").limit
    assert declared is not None
    assert declared(machine, OLD_POINT, ()) == declared(machine, POINT, ())


@pytest.mark.parametrize(
    ("settings", "cpus"),
    [
        ({}, range(8)),
        ({"threads": "2"}, (0, 1)),
        ({"node": "1"}, range(4, 8)),
        ({"node": "1", "threads": "3"}, (4, 5, 6)),
        ({"node": "1", "threads": "1", "memory": "0"}, (4,)),
    ],
)
def test_threads_stay_on_their_node(settings: dict[str, str], cpus: Sequence[int]) -> None:
    assert plan(numa_machine(), **settings).cpus == tuple(cpus)


def test_arrays_fit_the_caches_of_the_node() -> None:
    machine = numa_machine()
    assert plan(machine, node="0").parameters["array_B"] == plan(machine).parameters["array_B"] / 2 == 128 << 20


def test_hardware_threads_of_a_node_come_after_its_cores() -> None:
    machine = made_up_machine(cores=4, threads=2)
    assert plan(machine, threads="6").cpus == (0, 1, 2, 3, 4, 5)
    refusal = plan(numa_machine(), node="0", threads="5").refusal
    assert refusal is not None and refusal.reason == "5 threads need 5 CPUs; this process may use 4 of NUMA node 0"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"node": "2"}, "NUMA node 2 has no CPU that this process may use"),
        ({"node": "5"}, "this machine has no NUMA node 5; known nodes: 0, 1, 2, 3"),
        ({"memory": "3"}, "NUMA node 3 has no memory"),
        ({"memory": "5"}, "this machine has no NUMA node 5"),
    ],
)
def test_what_means_nothing_is_skipped(settings: dict[str, str], reason: str) -> None:
    refusal = plan(numa_machine(memory_B=[1 << 30, 0]), **settings).refusal
    assert refusal is not None and refusal.reason.startswith(reason)


def test_the_program_is_told_of_a_node_only_where_one_is_asked_for() -> None:
    machine = numa_machine()
    assert "--memory-node" not in STREAM.program.arguments(plan(machine, node="1").parameters)
    arguments = STREAM.program.arguments(plan(machine, node="1", memory="0").parameters)
    assert arguments[arguments.index("--memory-node") + 1] == "0"


@pytest.mark.parametrize(
    ("settings", "share"),
    [({}, 1.0), ({"threads": "1"}, 0.5), ({"node": "1"}, 0.5), ({"node": "1", "memory": "1"}, 0.5)],
)
def test_local_memory_has_the_limit_of_its_sockets(settings: dict[str, str], share: float) -> None:
    whole = numa_machine().memory.peak.value
    found = limit(numa_machine(), **settings)
    assert whole is not None and found.value == pytest.approx(whole * share) and found.is_physical


@pytest.mark.parametrize("settings", [{"node": "1", "memory": "0"}, {"memory": "0"}, {"memory": "2"}])
def test_remote_memory_has_no_limit_of_dram(settings: dict[str, str]) -> None:
    found = limit(numa_machine(memory_B=[1 << 30]), **settings)
    assert found.value is None and found.basis is Basis.UNKNOWN and "links between nodes" in found.derivation


def test_which_channels_serve_a_part_of_a_socket_is_not_known() -> None:
    machine = numa_machine(packages=2, nodes_each=4, cores=2)
    found = limit(machine, node="3")
    assert found.value is None and found.derivation.startswith("one of 4 NUMA nodes of a socket")
    assert limit(machine).value == machine.memory.peak.value


def test_pages_on_another_node_are_found() -> None:
    machine = numa_machine()
    (check,) = (check for check in STREAM.checks if check.name == "pages_astray")
    assert check.derive is not None
    for astray, passes in ((0, True), (1, True), (2, False)):
        samples = [Sample("copy", 0, 1.0, extra={"pages_looked_at": 100, "pages_astray": astray})]
        value = check.derive(machine, POINT, samples)
        low, high = check.bound(machine, POINT)
        assert value is not None and (low <= value <= high) is passes
    with pytest.raises(KeyError):
        check.derive(machine, POINT, [Sample("copy", 0, 1.0)])


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("threads", ["1", "all"])
def test_arrays_of_a_node_that_is_asked_for(threads: str, live_machine: Machine, folder: ResultsFolder) -> None:
    node = live_machine.pus[live_machine.allowed_cpus[0]].numa
    if node is None:
        pytest.skip("needs a kernel that tells of NUMA nodes")
    machine = with_small_caches(live_machine)
    ready = make_ready(STREAM, machine, folder, node=str(node), memory=str(node), threads=threads)
    record = run_one(ready, machine, folder)
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    assert record.outcome.is_ok, record.outcome
    notes = record.seen["notes"]["page_nodes"]
    looked_at = record.samples[0].extra["pages_looked_at"]
    assert looked_at > 1000 if notes == "reported" else "move_pages" in notes


ASTRAY: dict[str, Edits] = {
    "another node": {
        "stream.cpp": (
            "nodes_[member] = settings_.node ? settings_.node : own_node();",
            "nodes_[member] = 77;",
        )
    },
    "pages that belong there": {
        "numa.hpp": ("found.astray += !belongs(i, status[i]);", "found.astray += belongs(i, status[i]);")
    },
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", ASTRAY)
def test_pages_that_are_not_where_they_should_be_are_found(
    fault: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = with_fault(STREAM, fault, ASTRAY, tmp_path, monkeypatch)
    machine = with_small_caches(live_machine)
    record = run_one(make_ready(broken, machine, folder), machine, folder)
    if record.outcome.is_ok and "move_pages" in record.seen["notes"]["page_nodes"]:
        pytest.skip("needs move_pages(2), which this container forbids")
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("pages_astray: 1"), record.outcome
