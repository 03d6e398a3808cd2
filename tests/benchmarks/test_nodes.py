"""How ranks are spread over the nodes of an allocation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import facts, made_up_machine

from seatrial.errors import UsageError
from seatrial.launch.ranks import rank_layout
from seatrial.model.machine.identity import unlike
from seatrial.model.machine.machine import Allocation, LeftOut, Machine, Node
from seatrial.model.results.sample import Sample
from seatrial.plan.points import Point, plan_points


def with_nodes(count: int, cores: int = 4, left_out: tuple[LeftOut, ...] = ()) -> Machine:
    """A machine in an allocation of nodes like it; node k may use the CPUs from k on."""
    this = made_up_machine(cores=8)
    machines = [replace(this, allowed_cpus=tuple(range(k, k + cores))) for k in range(count)]
    nodes = tuple(Node(f"n{k}", machine) for k, machine in enumerate(machines, 1))
    return replace(machines[0], allocation=Allocation("Slurm job 1", nodes, left_out))


def plan(machine: Machine, benchmark: str, **settings: str) -> Point:
    (point,) = plan_points([benchmark], {name: [value] for name, value in settings.items()}, machine)
    return point


def test_a_pair_is_on_two_nodes_each_with_its_own_cpus() -> None:
    point = plan(with_nodes(3), "mpi.latency")
    assert (point.parameters["nodes"], point.hosts, point.cpus) == (2, ("n1", "n2"), (0, 1))
    layout = rank_layout(point)
    assert layout.hosts == ("n1", "n2") and layout.cpus == ((0,), (1,))


def test_all_ranks_are_those_of_all_nodes() -> None:
    point = plan(with_nodes(3), "mpi.allreduce")
    assert (point.parameters["ranks"], point.parameters["nodes"]) == (12, 3)
    assert point.cpus == (0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5)
    assert plan(with_nodes(3), "mpi.multi-pair").parameters["pairs"] == 6


def test_fewer_nodes_on_request() -> None:
    point = plan(with_nodes(3), "mpi.allreduce", nodes="1")
    assert (point.parameters["ranks"], point.hosts, point.cpus) == (4, (), (0, 1, 2, 3))
    assert plan(with_nodes(4), "mpi.allreduce", ranks="6").parameters["nodes"] == 3


def test_more_ranks_than_cpus_share_them() -> None:
    point = plan(with_nodes(2), "mpi.allreduce", ranks="10", oversubscribe="true")
    assert point.cpus == () and rank_layout(point).shares_cpus and rank_layout(point).hosts == ("n1", "n2")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"nodes": "3"}, "nodes=3: Slurm job 1 has 2 like this one; left out: n9 (2 usable CPUs instead of 4)"),
        ({"nodes": "2", "ranks": "3"}, "nodes=2: 3 ranks do not fill 2 nodes evenly"),
        ({"nodes": "2", "ranks": "10"}, "10 ranks need 10 CPUs; 2 nodes have 8"),
    ],
)
def test_what_the_allocation_has_not_is_skipped(settings: dict[str, str], reason: str) -> None:
    machine = with_nodes(2, left_out=(LeftOut("n9", "2 usable CPUs instead of 4"),))
    point = plan(machine, "mpi.allreduce", **settings)
    assert point.refusal is not None and point.refusal.reason.startswith(reason)


@pytest.mark.parametrize("placement", ["cores", "sockets"])
def test_places_within_a_node_are_for_one_node(placement: str) -> None:
    point = plan(with_nodes(2), "mpi.latency", placement=placement)
    assert point.refusal is not None and "different nodes" in point.refusal.reason


def test_a_program_of_one_process_has_no_hosts() -> None:
    assert plan(with_nodes(2), "cpu.peak", precision="fp64", cores="one").hosts == ()


def test_what_distinguishes_nodes() -> None:
    this = replace(made_up_machine(), facts=facts(kernel="6.1", kernel_parameters="quiet root=UUID=1 BOOT_IMAGE=/a"))
    like = facts(kernel="6.1", kernel_parameters="root=UUID=2 quiet")
    assert unlike(replace(this, name="other", allowed_cpus=(2, 3), facts=like), this) == ()
    other = replace(this, facts=facts(kernel="6.2", kernel_parameters="quiet mitigations=off"))
    assert unlike(other, this) == (
        "kernel 6.2 instead of 6.1",
        "kernel_parameters mitigations=off quiet instead of quiet",
    )
    assert unlike(made_up_machine(l3_bytes=1 << 20), made_up_machine()) == (
        "other caches: level 3, size 1048576 instead of level 3, size 33554432",
    )


def sample(series: str, **values: float) -> Sample:
    point = {name: int(values.pop(name)) for name in ("a", "b", "size_B") if name in values}
    return Sample(series, 0, 1.0, work=values, point=point)


@pytest.mark.parametrize(
    ("benchmark", "samples", "least"),
    [
        ("mpi.latency", [sample("one_way", ops=6, size_B=100)], [600, 600]),
        ("mpi.bandwidth", [sample("bandwidth", bytes=1000, ops=10)] * 2, [2000, 2000]),
        ("mpi.multi-pair", [sample("bandwidth", bytes=800, ops=8), sample("slowest_pair", bytes=1)], [800, 800]),
        ("mpi.allreduce", [sample("time_max", ops=5, size_B=100), sample("time_mean", ops=5, size_B=100)], [500, 500]),
        ("mpi.alltoall", [sample("time_max", ops=1, size_B=10)], [160, 160]),
        ("mpi.pairs", [sample("latency", a=0, b=1, bytes=7), sample("latency", a=3, b=4, bytes=50)], [50, 50]),
    ],
)
def test_what_nodes_exchange_at_least(benchmark: str, samples: list[Sample], least: list[float]) -> None:
    point = plan(with_nodes(2), benchmark)
    assert point.benchmark.between_nodes is not None
    assert point.benchmark.between_nodes(point.parameters, samples) == pytest.approx(least)


@pytest.mark.parametrize(
    ("settings", "ranks", "nodes"),
    [
        ({"ranks_per_node": "1"}, 3, 3),
        ({"ranks_per_node": "2", "nodes": "2"}, 4, 2),
        ({"ranks_per_node": "2", "ranks": "2"}, 2, 1),
    ],
)
def test_ranks_per_node(settings: dict[str, str], ranks: int, nodes: int) -> None:
    for benchmark in ("mpi.allreduce", "apps.lammps"):
        found = plan(with_nodes(3), benchmark, **settings).parameters
        assert (found["ranks"], found["nodes"], found["ranks_per_node"]) == (ranks, nodes, ranks // nodes)
    assert "ranks_per_node" not in plan(with_nodes(3), "mpi.allreduce").parameters


def test_ranks_per_node_that_contradict() -> None:
    with pytest.raises(UsageError, match="contradict"):
        plan(with_nodes(3), "mpi.allreduce", ranks="4", nodes="2", ranks_per_node="1")


def test_applications_fill_the_nodes() -> None:
    point = plan(with_nodes(2), "apps.lammps", threads="2", package="omp")
    assert (point.parameters["ranks"], point.parameters["nodes"], point.hosts) == (4, 2, ("n1", "n2"))
    assert point.cpus == (0, 1, 2, 3, 1, 2, 3, 4)
    hpl = plan(with_nodes(2), "apps.hpl", ranks="all", n="1000").parameters
    assert (hpl["ranks"], hpl["threads"], hpl["nodes"]) == (8, 1, 2)
