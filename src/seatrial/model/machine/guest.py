"""Guests as a part of the environment, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count

if TYPE_CHECKING:
    from seatrial.model.machine.machine import Machine

VM = "vm"
NO_GUEST = "none"
"""The value of `environment.vm` for this machine itself."""
RUNNING = "running"
"""The value for the guest that `seatrial vm up` started."""


class Guest(Frozen):
    """A guest under the name that `environment.vm` has. `machine` is what it is; None if it cannot be used, for the
    reason in `problem`, with a remedy in `todo`.

    `channel` are the words by which its commands are sent (places/guest/session.py). `facts` are recorded with every
    repeat: how it is reached, and, of one that was started here, what emulates or runs its processors.
    """

    name: str
    machine: Machine | None = None
    channel: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    problem: str = ""
    todo: str = ""


class GuestPart(Enum):
    """The devices that a guest can have."""

    NVME = "nvme"
    NETWORK = "network"
    SHARED_MEMORY = "shared-memory"
    CXL_MEMORY = "cxl-memory"
    SWITCH = "switch"


class GuestDevice(Frozen):
    """A PCIe device, on a root port of the host bridge of its NUMA node, or below a switch.

    `size_B`: of the drive or memory, None for others. `functions`: number of SR-IOV virtual functions (NVMe).
    `below`: the devices of a switch, one below each of its ports.
    """

    kind: GuestPart
    node: int = 0
    size_B: int | None = None
    functions: int = 0
    below: tuple[GuestDevice, ...] = ()


class GuestNode(Frozen):
    """A NUMA node.

    The number of its CPUs (0: memory only) and its memory.
    """

    cpus: Count
    memory_B: Count


class GuestTopology(Frozen):
    """A guest. The CPUs of a node are one socket of `threads` hardware threads per core.

    `distances[i][j]` is that of node i's CPUs to node j's memory, 10 for itself; None: 10 and 20.
    """

    nodes: tuple[GuestNode, ...]
    threads: int = 1
    distances: tuple[tuple[int, ...], ...] | None = None
    devices: tuple[GuestDevice, ...] = field(default=())

    @property
    def cpus(self) -> int:
        """The number of all CPUs."""
        return sum(node.cpus for node in self.nodes)

    @property
    def memory_B(self) -> int:
        """The memory of all nodes, without that of devices."""
        return sum(node.memory_B for node in self.nodes)

    def all_devices(self) -> Iterator[GuestDevice]:
        """Every device, a switch before those below it."""
        for device in self.devices:
            yield device
            yield from device.below

    def has(self, kind: GuestPart) -> bool:
        """Whether it has a device of this kind."""
        return any(device.kind is kind for device in self.all_devices())
