"""A topology file (`seatrial vm up --topology FILE`): its keys, and what they become
(`model.machine.guest.GuestTopology`)."""

from __future__ import annotations

from pathlib import Path

from seatrial.model.machine.guest import GuestDevice, GuestNode, GuestPart, GuestTopology
from seatrial.model.units import parse_bytes
from seatrial.plan.file_model import (
    Faults,
    Kind,
    Model,
    Spot,
    listed,
    member,
    model,
    optional,
    required,
    scalar,
    text,
    whole,
)
from seatrial.plan.files import MAX_BYTES, FileKind, read_file, read_yaml

KIND = FileKind("topology file", "give the YAML file of a guest", needs="a topology needs at least nodes")

_MOST_NODES = 8
_MOST_CPUS = 64
_MOST_DEVICES = 24
_MOST_FUNCTIONS = 16
_MiB = 1 << 20
_LEAST_NODE_B = 64 * _MiB
_LEAST_ALL_B = 384 * _MiB
"""Debian's cloud kernel, its modules and an initramfs of 20 MB start in this."""
_MOST_B = 1 << 40
_CXL_STEP_B = 256 * _MiB
"""A window of CXL memory is a multiple of this (CXL 2.0, CEDT: CXL Fixed Memory Window Structure)."""
_USUAL_B = {GuestPart.NVME: 64 * _MiB, GuestPart.SHARED_MEMORY: 16 * _MiB, GuestPart.CXL_MEMORY: _CXL_STEP_B}
_SELF = 10
_FARTHEST = 254
"""The distances of ACPI's SLIT: 10 is a node itself, 255 means unreachable (ACPI 6.5, 5.2.17)."""
_DISTANCE = f"{_SELF} to itself, {_SELF + 1} to {_FARTHEST} to others"
_NOT_BELOW = (GuestPart.SWITCH, GuestPart.CXL_MEMORY)


def _size(least_B: int) -> Kind[int]:
    def checked(spot: Spot, size_B: int) -> int:
        if not least_B <= size_B <= _MOST_B or size_B % _MiB:
            seen = f"it cannot be {spot.node.written}"
            raise spot.refuse(seen, f"it takes whole MiB, {least_B // _MiB}MiB or more, and 1TiB at most")
        return size_B

    return text(most=40).parsed(parse_bytes).then(checked)


class NodeModel(Model):
    """A NUMA node."""

    memory = required("the memory of the node, such as 512MiB", _size(_LEAST_NODE_B))
    cpus = required("the number of CPUs of the node, 0 (memory only) or more", whole(0, _MOST_CPUS))


class InnerDeviceModel(Model):
    """A device below a switch."""

    kind = required(", ".join(kind.value for kind in GuestPart if kind not in _NOT_BELOW), member(GuestPart))
    size = optional("the size of a drive or memory: 1MiB or more", _size(_MiB))
    functions = optional(
        f"the number of SR-IOV virtual functions of an nvme device: 1 to {_MOST_FUNCTIONS}",
        whole(1, _MOST_FUNCTIONS),
        0,
    )

    def device(self) -> GuestDevice:
        """The device."""
        if self.kind in _NOT_BELOW:
            raise self.refuse(("kind",), f"{self.kind.value} cannot be below a switch", "put it beside the switch")
        return _device(self)


class DeviceModel(Model):
    """A device on a root port, or a switch."""

    kind = required(", ".join(kind.value for kind in GuestPart), member(GuestPart))
    node = optional("the NUMA node of the device's root port (default: 0)", whole(0, _MOST_NODES - 1), 0)
    size = InnerDeviceModel.size
    functions = InnerDeviceModel.functions
    devices = optional("the devices below a switch", listed(model(InnerDeviceModel), 1, _MOST_DEVICES))

    def device(self) -> GuestDevice:
        """The device, with those below it."""
        below = self.devices
        if (self.kind is GuestPart.SWITCH) != (below is not None):
            seen = "a switch has devices below it" if below is None else f"nothing can be below {self.kind.value}"
            raise self.refuse(() if below is None else ("devices",), seen, "write `devices:` for a switch only")
        return _device(self, self.node, tuple(inner.device() for inner in below or ()))


def _device(of: DeviceModel | InnerDeviceModel, node: int = 0, below: tuple[GuestDevice, ...] = ()) -> GuestDevice:
    if of.functions and of.kind is not GuestPart.NVME:
        raise of.refuse(("functions",), f"{of.kind.value} has no virtual functions", "only nvme has")
    if of.size is not None and of.kind not in _USUAL_B:
        raise of.refuse(("size",), f"{of.kind.value} has no size", "remove it")
    return GuestDevice(of.kind, node, of.size or _USUAL_B.get(of.kind), of.functions, below)


class TopologyModel(Model):
    """A guest."""

    nodes = required(
        f"a list of 1 to {_MOST_NODES} NUMA nodes, such as `[{{cpus: 2, memory: 512MiB}}, {{cpus: 2, memory: "
        "512MiB}]`",
        listed(model(NodeModel), 1, _MOST_NODES),
    )
    threads = optional("the number of hardware threads of a core: 1 (the default) or 2", whole(1, 2), 1)
    distances = optional(
        f"a square list of lists with the distance of each node to each: {_DISTANCE}",
        listed(
            listed(scalar(int).accepting(_DISTANCE)).accepting("the distances of one node, such as [10, 21]"),
            1,
            _MOST_NODES,
        ),
    )
    devices = optional(
        f"a list of up to {_MOST_DEVICES} PCIe devices, such as `[{{kind: nvme, node: 1}}]`",
        listed(model(DeviceModel), most=_MOST_DEVICES),
        (),
    )

    def topology(self) -> GuestTopology:
        """The topology. Raises PlaceError for a guest that cannot be."""
        found = GuestTopology(
            tuple(GuestNode(node.cpus, node.memory) for node in self.nodes),
            self.threads,
            self.distances,
            tuple(device.device() for device in self.devices),
        )
        faults = Faults()
        with faults.part():
            self._check_nodes(found)
        with faults.part():
            self._check_distances(len(found.nodes))
        with faults.part():
            self._check_devices(found)
        faults.raise_all()
        return found

    def _check_nodes(self, found: GuestTopology) -> None:
        counts = {node.cpus for node in found.nodes if node.cpus}
        if not found.nodes[0].cpus:
            todo = "give it one or more: it boots first"
            raise self.refuse(("nodes", 0, "cpus"), "the first node has no CPUs", todo)
        if len(counts) > 1:
            seen = f"nodes with {' and '.join(map(str, sorted(counts)))} CPUs"
            raise self.refuse(("nodes",), seen, "nodes with CPUs need the same number: each is a socket")
        if found.cpus > _MOST_CPUS:
            raise self.refuse(("nodes",), f"{found.cpus} CPUs", f"a guest has at most {_MOST_CPUS}")
        if next(iter(counts)) % found.threads:
            raise self.refuse(("threads",), "the CPUs of a node are not whole cores", "change cpus or threads")
        if found.memory_B < _LEAST_ALL_B:
            seen = f"{found.memory_B // _MiB} MiB of memory in all"
            raise self.refuse(("nodes",), seen, f"Linux needs {_LEAST_ALL_B // _MiB}MiB")

    def _check_distances(self, count: int) -> None:
        rows = self.distances
        if rows is None:
            return
        if len(rows) != count or any(len(row) != count for row in rows):
            raise self.refuse(("distances",), "it is not square", f"{count} nodes have {count} lists of {count}")
        for i, row in enumerate(rows):
            for j, distance in enumerate(row):
                if not (distance == _SELF if i == j else _SELF < distance <= _FARTHEST):
                    raise self.refuse(("distances", i, j), f"it cannot be {distance}", _DISTANCE)

    def _check_devices(self, found: GuestTopology) -> None:
        if sum(1 for _ in found.all_devices()) > _MOST_DEVICES:
            raise self.refuse(("devices",), "too many devices", f"{_MOST_DEVICES} at most, switches included")
        faults = Faults()
        for k, device in enumerate(found.devices):
            if device.node >= len(found.nodes):
                seen, last = f"there is no node {device.node}", len(found.nodes) - 1
                faults.found.append(self.refuse(("devices", k, "node"), seen, f"nodes are 0 to {last}"))
            if device.kind is GuestPart.CXL_MEMORY and (device.size_B or 0) % _CXL_STEP_B:
                seen = "CXL memory comes in multiples of 256MiB"
                faults.found.append(self.refuse(("devices", k, "size"), seen, "round it up"))
        faults.raise_all()


def topology_of(path: Path) -> GuestTopology:
    """The topology in a file. Raises UsageError if it cannot be read, and as `read_topology` does."""
    return read_topology(read_file(path, MAX_BYTES, "name another one", "the topology file "), str(path))


def read_topology(data: bytes, file: str) -> GuestTopology:
    """The topology that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the schema, or describes a guest that cannot be.
    """
    return TopologyModel.of(read_yaml(data, file, KIND)).topology()
