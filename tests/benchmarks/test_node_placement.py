"""Which nodes of an allocation the ranks run on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up_machine

from seatrial.errors import UsageError
from seatrial.model.machine.machine import Allocation, LeftOut, Machine, Node
from seatrial.plan.points import Point, plan_points

_SWITCHES = {"n1": "leaf1", "n2": "leaf2", "n3": "leaf2", "n4": "leaf1", "n5": "leaf2", "n6": "leaf3"}


def machine(switches: dict[str, str] | dict[str, None] = _SWITCHES, cores: int = 2) -> Machine:
    """A machine whose nodes have so many cores."""
    this = replace(made_up_machine(cores=cores), allowed_cpus=tuple(range(cores)))
    nodes = tuple(Node(name, replace(this, name=name), switch) for name, switch in switches.items())
    left_out = (LeftOut("n9", "15 usable CPUs instead of 16"),)
    return replace(nodes[0].machine, allocation=Allocation("Slurm job 1", nodes, left_out))


def plan(on: Machine, benchmark: str = "mpi.allreduce", **settings: str) -> Point:
    (point,) = plan_points([benchmark], {name: [value] for name, value in settings.items()}, on)
    return point


@pytest.mark.parametrize(
    ("placement", "settings", "hosts"),
    [
        ("packed", {"ranks": "4"}, ("n1", "n4")),
        ("packed", {"ranks": "2"}, ()),
        ("packed", {"nodes": "4"}, ("n2", "n3", "n5", "n1")),
        ("scattered", {"ranks": "4"}, ("n1", "n4", "n2", "n6")),
        ("scattered", {"ranks": "3"}, ("n1", "n2", "n6")),
        ("same-switch", {}, ("n2", "n3", "n5")),
        ("same-switch", {"ranks": "4"}, ("n1", "n4")),
        ("across-switches", {}, ("n1", "n2", "n6")),
        ("across-switches", {"nodes": "2"}, ("n1", "n2")),
        ("n5+n[1-2]", {}, ("n5", "n1", "n2")),
        ("n6", {"ranks": "2"}, ("n6",)),
    ],
)
def test_nodes_are_chosen(placement: str, settings: dict[str, str], hosts: tuple[str, ...]) -> None:
    point = plan(machine(), node_placement=placement, **settings)
    assert point.refusal is None, point.refusal
    assert point.hosts == hosts
    assert point.parameters["node_placement"] == placement
    assert point.parameters["nodes"] == max(1, len(hosts))


def test_ranks_keep_the_order_of_the_batch_system_wherever_seatrial_runs() -> None:
    """This node is the first of the allocation, so that fewer nodes have it among them."""
    here = machine()
    assert here.allocation is not None
    n3, n1, n2 = (here.allocation.nodes[at] for at in (2, 0, 1))
    order = tuple(_SWITCHES)
    there = replace(n3.machine, allocation=replace(here.allocation, nodes=(n3, n1, n2), order=order))
    assert plan(there, ranks="6").hosts == ("n1", "n2", "n3")
    assert plan(there, nodes="2").hosts == ("n1", "n3")
    assert plan(there, node_placement="same-switch").hosts == ("n2", "n3")
    assert plan(there, node_placement="n3+n1").hosts == ("n3", "n1")


def test_a_pair_is_on_the_nodes_of_a_switch_or_of_two() -> None:
    assert plan(machine(), "mpi.latency", node_placement="same-switch").hosts == ("n1", "n4")
    assert plan(machine(), "mpi.latency", node_placement="across-switches").hosts == ("n1", "n2")


def test_only_a_given_placement_is_recorded() -> None:
    assert "node_placement" not in plan(machine()).parameters


@pytest.mark.parametrize(
    ("placement", "settings", "why"),
    [
        ("same-switch", {"nodes": "4"}, "there are not as many nodes below one switch (3)"),
        ("n1+n9", {}, "n9 is left out (15 usable CPUs instead of 16)"),
        ("n1+n8", {}, "Slurm job 1 has n[1-6]"),
        ("packed", {}, "needs a number of ranks"),
    ],
)
def test_what_an_allocation_has_not_is_skipped(placement: str, settings: dict[str, str], why: str) -> None:
    refusal = plan(machine(), node_placement=placement, **settings).refusal
    assert refusal is not None and why in refusal.reason


def test_switches_must_be_known() -> None:
    for placement in ("same-switch", "across-switches"):
        refusal = plan(machine(dict.fromkeys(("n1", "n2"))), node_placement=placement).refusal
        assert refusal is not None and "switches of n1, n2 are unknown" in refusal.reason
    assert plan(machine(dict.fromkeys(("n1", "n2"))), node_placement="scattered", ranks="2").hosts == ("n1", "n2")
    one = plan(machine({"n1": "leaf1", "n2": "leaf1"}), node_placement="across-switches").refusal
    assert one is not None and "below one switch" in one.reason
    alone = plan(replace(machine(), allocation=None), node_placement="packed").refusal
    assert alone is not None and "this is one node" in alone.reason


@pytest.mark.parametrize("wrong", ["n[1-", "n1+n1", "n1 n2"])
def test_a_list_that_is_not_valid_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        plan(machine(), node_placement=wrong)


def test_a_list_must_fit_the_number_of_nodes() -> None:
    with pytest.raises(UsageError, match="contradict"):
        plan(machine(), node_placement="n1+n2", nodes="3")
