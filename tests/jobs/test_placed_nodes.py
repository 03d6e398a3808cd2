"""`node_placement` of a job: what Slurm is asked for, from what it says of its nodes and switches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from seatrial.errors import UsageError
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.placed_nodes import with_placed_nodes
from seatrial.jobs.queue import Queue, Where
from seatrial.jobs.request import Portion, batch_request
from seatrial.machine.live import discover_live
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.site import Partition, Place, System
from seatrial.model.machine.machine import Machine
from seatrial.plan.points import plan_points

TOPOLOGY = """SwitchName=s1 Level=0 LinkSpeed=1 Nodes=a[1-4]
SwitchName=s2 Level=0 LinkSpeed=1 Nodes=b[1-4]
SwitchName=s3 Level=0 LinkSpeed=1 Nodes=c[1-2]
SwitchName=top Level=1 LinkSpeed=1 Nodes=a[1-4],b[1-4],c[1-2] Switches=s[1-3]
"""
STATES = {
    **{"a1": "alloc", "a2": "idle", "a3": "idle", "a4": "down*"},
    **{"b1": "mix", "b2": "idle", "b3": "idle", "b4": "idle"},
    **{"c1": "idle", "c2": "idle"},
}
SWITCHES = {"a": "s1", "b": "s2", "c": "s3"}


@pytest.fixture(scope="module")
def machine() -> Machine:
    return discover_live()


def where(batch: str = "slurm") -> Where:
    partition = Partition("all", cpus_per_node=4)
    return Where(Place(System("tera", (partition,), batch, 1.0), partition), SYSTEMS[batch], "tera:all")


def queue(topology: str = TOPOLOGY) -> Queue:
    said = {"sinfo": "".join(f"{name}|{state}\n" for name, state in STATES.items()), "scontrol": topology}
    return cast(Queue, SimpleNamespace(ask=lambda command: said[command[0]]))


def placed(machine: Machine, settings: dict[str, list[Value]], **others: Any) -> Portion:
    points = plan_points(["mpi.latency"], {"size_B": [8], **settings}, machine)
    portion = Portion(("mpi.latency",), {}, points, 1.0, 60.0, 2)
    return with_placed_nodes(portion, others.get("where", where()), others.get("queue", queue()))


def script_of(portion: Portion) -> str:
    at = where()
    return at.batch.script(batch_request(at, JobFolder(Path("/r"), "JOB"), portion))


def test_nodes_below_one_switch_are_left_to_slurm(machine: Machine) -> None:
    portion = placed(machine, {"nodes": [2], "node_placement": ["same-switch"]})
    assert portion.node_list == () and "#SBATCH --switches=1@7-0" in script_of(portion)
    assert "--nodelist" not in script_of(portion)
    plain = placed(machine, {"nodes": [2]})
    assert (plain.node_list, plain.switches) == ((), None) and "--switches" not in script_of(plain)


@pytest.mark.parametrize(
    ("settings", "switches"),
    [
        ({"nodes": [2], "node_placement": ["across-switches"]}, ["s1", "s2"]),
        ({"nodes": [6], "ranks": [6], "node_placement": ["across-switches"]}, ["s1"] * 2 + ["s2"] * 2 + ["s3"] * 2),
        ({"nodes": [3], "ranks": [3], "node_placement": ["scattered"]}, ["s1", "s2", "s3"]),
        ({"nodes": [4], "ranks": [4], "node_placement": ["packed"]}, ["s2"] * 4),
        ({"nodes": [2], "node_placement": ["same-switch", "across-switches"]}, ["s1", "s1", "s2"]),
        ({"nodes": [3], "ranks": [3], "node_placement": ["same-switch", "scattered"]}, ["s1", "s2", "s2", "s2", "s3"]),
    ],
)
def test_others_are_a_list_of_nodes_that_are_up(machine: Machine, settings: Any, switches: list[str]) -> None:
    portion = placed(machine, settings)
    assert sorted(SWITCHES[node[0]] for node in portion.node_list) == switches
    assert len(set(portion.node_list)) == len(portion.node_list) == portion.nodes and "a4" not in portion.node_list
    assert f"#SBATCH --nodelist={','.join(portion.node_list)}" in script_of(portion)
    assert f"#SBATCH --nodes={portion.nodes}" in script_of(portion)


def test_free_nodes_come_first_and_named_ones_are_taken_as_they_are(machine: Machine) -> None:
    assert "a1" not in placed(machine, {"nodes": [2], "node_placement": ["across-switches"]}).node_list
    portion = placed(machine, {"ranks": [2], "node_placement": ["a1+c2"]})
    assert portion.node_list == ("a1", "c2") and portion.nodes == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ranks": [2], "node_placement": ["a1+a4"]}, "a4 cannot be used"),
        ({"nodes": [5], "ranks": [5], "node_placement": ["same-switch", "scattered"]}, "has no such nodes"),
        ({"nodes": [7], "ranks": [7], "node_placement": ["across-switches"]}, "has no such nodes"),
        ({"nodes": [40], "ranks": [40], "node_placement": ["scattered"]}, "has no such nodes"),
        ({"ranks": [4], "node_placement": ["packed"]}, "needs the number of nodes"),
    ],
)
def test_what_the_partition_does_not_have_is_refused(machine: Machine, settings: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        placed(machine, settings)


def test_what_cannot_be_said_is_refused(machine: Machine) -> None:
    for batch in ("pbs", "lsf", "flux"):
        with pytest.raises(UsageError, match=f"does not choose nodes of {batch}"):
            placed(machine, {"nodes": [2], "node_placement": ["same-switch"]}, where=where(batch))
    with pytest.raises(UsageError, match=r"the switches of .* are unknown"):
        placed(machine, {"nodes": [2], "node_placement": ["across-switches"]}, queue=queue(""))
