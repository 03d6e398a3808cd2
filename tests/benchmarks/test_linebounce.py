"""cpu.linebounce: which pairs it takes, the program for real, and a planted fault for each of its checks."""

from __future__ import annotations

import subprocess
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import facts, made_up_machine

from seatrial.benchmarks.cpu.linebounce import BENCHMARK as LINEBOUNCE
from seatrial.benchmarks.cpu.linebounce import chosen_pairs, distance, pairs_by_spread
from seatrial.errors import Exit
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

MOST_OF_ONE_ARGUMENT = 128 << 10  # bytes, Linux: MAX_ARG_STRLEN


def server(packages: int, caches: int, cores: int, *, interleaved: bool = False) -> Machine:
    """Packages of several L3 caches of several cores each; CPUs numbered through, or package by package in turn."""
    devices: list[Device] = []
    total = packages * caches * cores
    for core in range(total):
        package, cache = core // (caches * cores), core // cores
        if core % (caches * cores) == 0:
            devices.append(Device(f"package-{package}", DeviceKind.PACKAGE, "CPU"))
        if core % cores == 0:
            parent = f"package-{package}"
            devices.append(Device(f"l3-{cache}", DeviceKind.CACHE, "L3", parent, facts=facts(level=3)))
        cpu = core % (caches * cores) * packages + package if interleaved else core
        devices.append(Device(f"core-{core}", DeviceKind.CORE, "core", f"l3-{cache}"))
        devices.append(Device(f"pu-{cpu}", DeviceKind.PU, "CPU", f"core-{core}", facts=facts(os_index=cpu)))
    return Machine("server", tuple(devices), allowed_cpus=tuple(range(total)))


def plan(machine: Machine, **settings: str) -> Point:
    (point,) = plan_points(["cpu.linebounce"], {name: [value] for name, value in settings.items()}, machine)
    return point


def distances(machine: Machine, point: Point) -> Counter[str]:
    pairs = chosen_pairs(point.parameters)
    return Counter(distance(machine, point.cpus[a], point.cpus[b]) for a, b in pairs)


@pytest.mark.parametrize("count", [2, 3, 5, 16, 17, 50, 100])
def test_every_pair_comes_once(count: int) -> None:
    assert sorted(pairs_by_spread(count)) == list(combinations(range(count), 2))


@pytest.mark.parametrize("cores", [2, 3, 16])
def test_up_to_16_cores_all_pairs_are_measured(cores: int) -> None:
    point = plan(made_up_machine(cores=cores))
    assert point.parameters == {"threads": cores, "pairs": cores * (cores - 1) // 2}
    assert point.parameters == plan(made_up_machine(cores=cores), pairs="all").parameters
    assert "--pairs" not in LINEBOUNCE.program.arguments(point.parameters)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1, 17), (1, 1, 60), (1, 3, 8), (2, 4, 8), (2, 1, 64), (2, 12, 16), (2, 24, 8), (8, 1, 6), (4, 16, 2)]
)
def test_a_big_machine_is_sampled_at_every_distance(shape: tuple[int, int, int], interleaved: bool) -> None:
    machine = server(*shape, interleaved=interleaved)
    packages, caches, _ = shape
    point = plan(machine)
    held = distances(machine, point)
    assert set(held) == {"cache L3"} | ({"package"} if caches > 1 else set()) | ({"machine"} if packages > 1 else set())
    assert min(held.values()) >= 8 and 120 <= held.total() <= 150
    assert LINEBOUNCE.estimate_s(point.parameters) < 1
    touched = {index for pair in chosen_pairs(point.parameters) for index in pair}
    assert len(touched) > 0.4 * len(point.cpus)


def test_a_sample_grows_where_a_distance_is_rare() -> None:
    machine = server(160, 1, 2)  # 160 pairs of 51,040 share a cache
    point = plan(machine)
    assert distances(machine, point)["cache L3"] == 8 and int(point.parameters["pairs"]) > 120


def test_neighbours_in_the_machine_are_neighbours_in_the_placement() -> None:
    point = plan(server(2, 2, 4, interleaved=True))
    assert point.cpus == (*range(0, 16, 2), *range(1, 16, 2))


def test_a_greater_sample_holds_a_smaller_one() -> None:
    machine = server(2, 12, 16)
    small, great = (chosen_pairs(plan(machine, pairs=pairs).parameters) for pairs in ("50", "500"))
    assert (len(small), len(great)) == (50, 500) and set(small) < set(great)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"threads": "1"}, "a cache line bounces between two cores"),
        ({"threads": "4", "pairs": "7"}, "4 threads have 6 pairs, not 7"),
        ({"pairs": "70000"}, "at most 10000 pairs"),
    ],
)
def test_what_means_nothing_is_skipped(settings: dict[str, str], reason: str) -> None:
    point = plan(server(2, 12, 16), **settings)
    assert point.refusal is not None and point.refusal.reason.startswith(reason)


@pytest.mark.parametrize("pairs", ["all", "10000"])
def test_any_number_of_pairs_fits_on_a_command_line(pairs: str) -> None:
    arguments = LINEBOUNCE.program.arguments(plan(server(2, 12, 16), pairs=pairs).parameters)
    assert max(map(len, arguments)) < MOST_OF_ONE_ARGUMENT


def test_the_time_of_all_pairs_is_known_beforehand() -> None:
    params: Params = plan(server(2, 12, 16), pairs="all").parameters
    assert params["pairs"] == 73_536
    assert 200 < LINEBOUNCE.estimate_s(params) < 400


@pytest.fixture
def machine(live_machine: Machine) -> Machine:
    if len(live_machine.cpus_one_per_core) < 2:
        pytest.skip("needs two cores")
    return live_machine


@pytest.mark.real
@pytest.mark.parallel
def test_every_chosen_pair_has_its_time(machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(LINEBOUNCE, machine, folder)
    record = run_one(ready, machine, folder)
    assert record.outcome.is_ok, record.outcome
    cpus = ready.point.cpus
    found = readings(LINEBOUNCE, machine, ready.point.parameters, record.samples)
    assert [(reading.point["cpu_a"], reading.point["cpu_b"]) for reading in found] == [
        (cpus[a], cpus[b]) for a, b in sorted(chosen_pairs(ready.point.parameters))
    ]
    # Between a register and a network; much longer where another process has one of the CPUs.
    assert all(1e-9 < reading.value < 0.1 for reading in found)


@pytest.mark.real
@pytest.mark.parallel
def test_a_sample_of_the_pairs(machine: Machine, folder: ResultsFolder) -> None:
    if len(machine.cpus_one_per_core) < 3:
        pytest.skip("needs three cores, which have more than one pair")
    ready = make_ready(LINEBOUNCE, machine, folder, threads="3", pairs="2")
    record = run_one(ready, machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert len(readings(LINEBOUNCE, machine, ready.point.parameters, record.samples)) == 2


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("pairs", ["", "0", "0-", "-1", "0-0", "0-1,", "0-2", "0-x", "0-1-1"])
def test_pairs_that_make_no_sense_are_refused(
    pairs: str, machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    ready = make_ready(LINEBOUNCE, machine, folder)
    cpus = ",".join(map(str, ready.point.cpus[:2]))
    command = [str(ready.program.path), "--record", str(tmp_path), "--cpus", cpus, "--pairs", pairs]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == Exit.USAGE and "--pairs" in done.stderr


FAULTS = {
    "a turn lost": ("bounce.hpp", "wrong += seen != mine - 1;", "wrong += seen == mine - 1;", "lost_updates"),
    "a thread elsewhere": (
        "linebounce.cpp",
        "= !is_bound_to(cpus[member]);",
        "= PLANTED == is_bound_to(cpus[member]);",
        "moved_threads",
    ),
    "a pair of one": (
        "linebounce.cpp",
        '("cpu_a", program.cpus[pair.a()])',
        '("cpu_a", program.cpus[PLANTED ? pair.b() : pair.a()])',
        "pairs_measured",
    ),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {name: {file: (text, replacement)} for name, (file, text, replacement, _) in FAULTS.items()}
    broken = with_fault(LINEBOUNCE, fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, machine, folder), machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(f"{FAULTS[fault][3]}: ")
