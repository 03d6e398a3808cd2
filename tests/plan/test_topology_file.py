"""Topology files: what they describe, and what is refused with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.model.machine.guest import GuestDevice, GuestNode, GuestPart, GuestTopology
from seatrial.plan.schemas import SCHEMAS
from seatrial.plan.topology_file import read_topology, topology_of

_MiB = 1 << 20
_NODES = "nodes: [{cpus: 1, memory: 256MiB}, {cpus: 1, memory: 256MiB}]\n"


def test_everything_that_a_guest_can_have() -> None:
    found = read_topology(
        b"""nodes:
  - {cpus: 2, memory: 512MiB}
  - {cpus: 2, memory: 1GiB}
  - {cpus: 0, memory: 64MiB}
threads: 2
distances: [[10, 21, 17], [21, 10, 28], [17, 28, 10]]
devices:
  - {kind: nvme, functions: 4}
  - kind: switch
    node: 1
    devices: [{kind: nvme, size: 1GiB}, {kind: network}]
  - {kind: shared-memory, node: 1}
  - {kind: cxl-memory}
""",
        "guest.yaml",
    )
    assert found == GuestTopology(
        (GuestNode(2, 512 * _MiB), GuestNode(2, 1024 * _MiB), GuestNode(0, 64 * _MiB)),
        2,
        ((10, 21, 17), (21, 10, 28), (17, 28, 10)),
        (
            GuestDevice(GuestPart.NVME, 0, 64 * _MiB, 4),
            GuestDevice(
                GuestPart.SWITCH, 1, None, 0,
                (GuestDevice(GuestPart.NVME, 0, 1024 * _MiB), GuestDevice(GuestPart.NETWORK)),
            ),
            GuestDevice(GuestPart.SHARED_MEMORY, 1, 16 * _MiB),
            GuestDevice(GuestPart.CXL_MEMORY, 0, 256 * _MiB),
        ),
    )  # fmt: skip
    assert (found.cpus, found.memory_B) == (4, 1600 * _MiB)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("", "guest.yaml", "empty"),
        ("nodes: []", "line 1: nodes", "empty"),
        ("node: []", "line 1: node", "did you mean nodes"),
        ("nodes: [{cpus: 1, memory: 100MiB}]", "nodes", "100 MiB of memory in all"),
        ("nodes: [{cpus: 1, memory: 3}]", "nodes.memory", "it cannot be 3"),
        ("nodes: [{cpus: 1, memory: 3MiB}]", "nodes.memory", "64MiB or more"),
        ("nodes: [{cpus: 1, memry: 1GiB}]", "nodes.memry", "did you mean memory"),
        ("nodes: [{cpus: 1}]", "nodes", "the key memory is missing"),
        ("nodes: [{cpus: 0, memory: 1GiB}]", "nodes.cpus", "the first node has no CPUs"),
        ("nodes: [{cpus: 1, memory: 1GiB}, {cpus: 2, memory: 1GiB}]", "nodes", "same number"),
        (_NODES + "threads: 2", "line 2: threads", "whole cores"),
        (_NODES + "distances: [[10, 21]]", "line 2: distances", "not square"),
        (_NODES + "distances: [[10, 21], [255, 10]]", "distances", "it cannot be 255"),
        (_NODES + "devices: [{kind: nvm}]", "devices.kind", "did you mean nvme"),
        (_NODES + "devices: [{kind: nvme, node: 2}]", "devices.node", "there is no node 2"),
        (_NODES + "devices: [{kind: switch}]", "devices", "a switch has devices below it"),
        (_NODES + "devices: [{kind: nvme, devices: [{kind: nvme}]}]", "devices.devices", "nothing can be below nvme"),
        (_NODES + "devices: [{kind: network, size: 1MiB}]", "devices.size", "has no size"),
        (_NODES + "devices: [{kind: network, functions: 1}]", "devices.functions", "no virtual functions"),
        (_NODES + "devices: [{kind: cxl-memory, size: 1MiB}]", "devices.size", "multiples of 256MiB"),
        (_NODES + "devices: [{kind: switch, devices: [{kind: cxl-memory}]}]", "devices.devices.kind", "below a switch"),
        (_NODES + f"devices: [{', '.join(['{kind: nvme}'] * 25)}]", "line 2: devices", "up to 24"),
        ("nodes: &a [{cpus: 1, memory: 1GiB}]", "line 1", "anchor"),
    ],
)
def test_what_cannot_be_is_refused(text: str, where: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_topology(text.encode(), "guest.yaml")
    assert where in str(raised.value) and why in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        topology_of(tmp_path / "guest.yaml")


def test_the_example_and_the_schema(tmp_path: Path) -> None:
    assert topology_of(Path(__file__).parents[2] / "examples" / "topologies" / "two-nodes-and-a-switch.yaml").cpus == 2
    schema = SCHEMAS["topology"]()
    assert schema["required"] == ["nodes"] and schema["additionalProperties"] is False
