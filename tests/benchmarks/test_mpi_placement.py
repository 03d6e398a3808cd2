"""Where the two ranks of a pair are put, on made-up machines, and the sizes of messages that words stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from benchmarks.numa_machines import numa_machine
from made_up import facts, made_up_machine

from seatrial.benchmarks.mpi.sizes import sizes_of
from seatrial.errors import UsageError
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine
from seatrial.plan.points import Point, plan_points

PAIRS = ("mpi.latency", "mpi.bandwidth", "mpi.bidirectional")


def plan(machine: Machine, benchmark: str = "mpi.latency", **settings: str) -> Point:
    (point,) = plan_points([benchmark], {name: [value] for name, value in settings.items()}, machine)
    return point


def with_adapter(machine: Machine, node: int | None, name: str = "mlx5_0", **told: str | int | float) -> Machine:
    adapter = Device(f"nic-{name}", DeviceKind.NIC, name, numa=node, facts=facts(**told))
    return replace(machine, devices=(*machine.devices, adapter))


def with_caches(machine: Machine, of: int) -> Machine:
    """The machine with a cache for each `of` cores."""
    devices: list[Device] = []
    for device in machine.devices:
        if device.kind is DeviceKind.CORE:
            number = int(device.id.removeprefix("core-"))
            if number % of == 0:
                devices.append(Device(f"l3-of-{number}", DeviceKind.CACHE, "L3", device.parent, facts=facts(level=3)))
            device = replace(device, parent=f"l3-of-{number - number % of}")
        devices.append(device)
    return replace(machine, devices=tuple(devices))


def renumbered(machine: Machine, cpus: Mapping[int, int]) -> Machine:
    """The machine with its CPUs numbered otherwise: old -> new number."""
    devices = [
        device
        if device.kind is not DeviceKind.PU
        else replace(device, facts=facts(os_index=cpus[device.facts.integer("os_index") or 0]))
        for device in machine.devices
    ]
    return replace(machine, devices=tuple(devices))


@pytest.mark.parametrize("benchmark", PAIRS)
@pytest.mark.parametrize(
    ("settings", "cpus", "placement"),
    [
        ({}, (0, 1), "cores"),
        ({"placement": "cores"}, (0, 1), "cores"),
        ({"placement": "sockets"}, (0, 8), "sockets"),
        ({"placement": "near"}, (4, 5), "near"),
        ({"placement": "far"}, (8, 9), "far"),
    ],
)
def test_a_pair_lies_where_it_is_told(
    benchmark: str, settings: dict[str, str], cpus: tuple[int, ...], placement: str
) -> None:
    machine = with_adapter(numa_machine(packages=2, nodes_each=2, cores=4), 1)
    point = plan(machine, benchmark, **settings)
    assert (point.cpus, point.parameters["placement"]) == (cpus, placement)


def test_numbers_that_alternate_between_packages_are_no_neighbours() -> None:
    machine = renumbered(made_up_machine(packages=2, cores=2), {0: 0, 1: 2, 2: 1, 3: 3})
    assert plan(machine).cpus == (0, 2)
    assert plan(machine, placement="sockets").cpus == (0, 1)


def test_the_nearest_cores_share_a_cache() -> None:
    machine = replace(with_caches(made_up_machine(cores=8), 4), allowed_cpus=(0, 1, 2, 3, 4, 5, 6, 7))
    cut = replace(machine, allowed_cpus=(3, 4, 5, 6))
    assert plan(machine).cpus == (0, 1)
    assert plan(cut).cpus == (4, 5), "CPU 3 is alone below its cache"


def test_two_threads_of_a_core_are_no_two_cores() -> None:
    assert plan(made_up_machine(cores=4, threads=2)).cpus == (0, 1)
    point = plan(made_up_machine(packages=2, cores=1, threads=2))
    assert (point.cpus, point.parameters["placement"]) == ((0, 1), "auto")  # of two packages: there is no other pair


def test_the_partners_of_many_pairs() -> None:
    machine = numa_machine(packages=2, nodes_each=1, cores=4)
    assert plan(machine, "mpi.multi-pair", pairs="2").cpus == (0, 2, 1, 3), "ranks 0 and 2, 1 and 3 are pairs"
    assert plan(machine, "mpi.multi-pair", pairs="2", placement="sockets").cpus == (0, 1, 4, 5)
    point = plan(machine, "mpi.multi-pair")
    assert point.parameters["ranks"] == 8 and point.parameters["pairs"] == 4 and sorted(point.cpus) == list(range(8))


def test_the_fastest_adapter_is_the_one_that_near_means() -> None:
    machine = with_adapter(with_adapter(numa_machine(), 0, "eth0", rate=125e6), 1, "mlx5_0", rate=25e9)
    assert plan(machine, placement="near").cpus == (4, 5)
    dark = with_adapter(numa_machine(), 1, "mlx5_1", rate=50e9, state="down")
    assert plan(with_adapter(dark, 0, "eth0"), placement="near").cpus == (0, 1)


def test_the_node_of_an_adapter_may_stand_in_a_matrix() -> None:
    machine = with_adapter(numa_machine(), None)
    told = replace(machine, affinity=(Affinity("nic-mlx5_0", (4, 5, 6, 7), 1),))
    assert plan(told, placement="far").cpus == (0, 1)


def test_far_is_another_package_where_there_is_one() -> None:
    machine = with_adapter(numa_machine(packages=2, nodes_each=2, cores=2), 1)
    assert plan(machine, placement="far").cpus == (4, 5)
    one = with_adapter(numa_machine(packages=1, nodes_each=2, cores=2), 0)
    assert plan(one, placement="far").cpus == (2, 3)


@pytest.mark.parametrize(
    ("machine", "settings", "reason"),
    [
        (made_up_machine(cores=4), {"placement": "sockets"}, "placement=sockets needs two packages"),
        (made_up_machine(packages=2, cores=1), {"placement": "cores"}, "2 ranks need 2 cores in one package"),
        (made_up_machine(cores=4), {"placement": "near"}, "placement=near: the NUMA nodes"),
        (made_up_machine(cores=4), {"placement": "far"}, "placement=far: the NUMA nodes"),
        (with_adapter(numa_machine(cores=1), 0), {"placement": "near"}, "2 ranks need 2 cores in one NUMA node"),
        (with_adapter(numa_machine(1, 1), 0), {"placement": "far"}, "placement=far: every NUMA node"),
        (with_adapter(made_up_machine(), None), {"placement": "near"}, "placement=near: the NUMA nodes"),
        (made_up_machine(cores=1), {}, "2 ranks need 2 CPUs"),
        (
            made_up_machine(cores=1),
            {"oversubscribe": "true", "placement": "cores"},
            "placement=cores: ranks that share",
        ),
        (made_up_machine(), {"size_B": "3", "datatype": "MPI_INT"}, "3 B is not a whole number of elements of 4 B"),
        (made_up_machine(), {"size_B": "to-memory"}, "the memory size of this machine is unknown"),
        (made_up_machine(), {"nodes": "2"}, "ranks on several nodes"),
    ],
)
def test_what_this_machine_has_not_is_skipped(machine: Machine, settings: dict[str, str], reason: str) -> None:
    point = plan(machine, **settings)
    assert point.refusal is not None and point.refusal.reason.startswith(reason)


def test_ranks_that_share_cpus_are_bound_to_none_and_no_line_bounces() -> None:
    point = plan(made_up_machine(cores=1), oversubscribe="true")
    assert point.cpus == () and point.parameters["oversubscribe"] is True
    assert "--bounce 0" in " ".join(point.benchmark.program.arguments(point.parameters))
    assert not point.benchmark.figure("bounces").is_there(point.parameters)
    enough = plan(made_up_machine(cores=2), oversubscribe="true")
    assert enough.parameters == plan(made_up_machine(cores=2)).parameters, "nobody has to share"
    assert enough.benchmark.figure("bounces").is_there(enough.parameters)


@pytest.mark.parametrize(
    ("benchmark", "settings"),
    [
        ("mpi.latency", {"ranks": "4"}),
        ("mpi.bandwidth", {"ranks": "4"}),
        ("mpi.multi-pair", {"ranks": "3"}),
        ("mpi.multi-pair", {"ranks": "4", "pairs": "1"}),
        ("mpi.latency", {"datatype": "MPI_NOTHING"}),
        ("mpi.latency", {"nodes": "unknown"}),
        ("mpi.bandwidth", {"window": "unknown"}),
        ("mpi.bandwidth", {"size_B": "0"}),
        ("mpi.bandwidth", {"window": "0"}),
    ],
)
def test_what_means_nothing_is_a_wrong_use(benchmark: str, settings: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        plan(made_up_machine(cores=8), benchmark, **settings)


def test_the_sizes_that_words_stand_for() -> None:
    machine = replace(made_up_machine(), facts=facts(memory_total=24_000_000_000))
    assert sizes_of(plan(machine).parameters) == tuple(2**power for power in range(23))
    assert sizes_of(plan(machine, size_B="0").parameters) == (0,)
    assert sizes_of(plan(machine, datatype="MPI_DOUBLE").parameters)[0] == 8
    assert sizes_of(plan(machine, largest_B="1KiB").parameters)[-1] == 1024
    assert sizes_of(plan(machine, largest_B="1500").parameters)[-1] == 1024
    whole = plan(machine, size_B="to-memory")
    assert whole.parameters["size_B"] == "sweep" and whole.parameters["largest_B"] == 2**31  # 4 x 2 GiB of 24 GB / 2
    assert sizes_of(whole.parameters)[-1] == 2**31
    assert (whole.estimate_s or 0) > 10 * (plan(machine).estimate_s or 0)
    assert plan(machine, size_B="4KiB").parameters["largest_B"] == 4096
