"""A topology file, read and checked: YAML text -> `model.guest_topology.GuestTopology`, or one clear message with file,
line and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.guest_topology import DeviceKind, GuestDevice, GuestNode, GuestTopology
from seatrial.model.units import parse_bytes
from seatrial.plan.model_faults import Accepted, validated
from seatrial.plan.study_yaml import MAX_BYTES, Document, error_at, read_yaml
from seatrial.plan.study_yaml import Path as Place

_MiB = 1 << 20
_LEAST_NODE_B = 64 * _MiB
_LEAST_ALL_B = 384 * _MiB
"""Debian's cloud kernel, its modules and an initramfs of 20 MB start in this."""
_MOST_B = 1 << 40
_CXL_STEP_B = 256 * _MiB
"""A window of CXL memory is a multiple of this (CXL 2.0, CEDT: CXL Fixed Memory Window Structure)."""
_USUAL_B = {DeviceKind.NVME: 64 * _MiB, DeviceKind.SHARED_MEMORY: 16 * _MiB, DeviceKind.CXL_MEMORY: _CXL_STEP_B}
_SELF = 10
_FARTHEST = 254
"""The distances of ACPI's SLIT: 10 is a node itself, 255 means unreachable (ACPI 6.5, 5.2.17)."""


def topology_of(path: Path) -> GuestTopology:
    """The topology in a file. Raises UsageError if it cannot be read, and as `read_topology` does."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise UsageError(f"the topology file {path} cannot be read: {why}", "name another one") from error
    return read_topology(data, str(path))


def read_topology(data: bytes, file: str) -> GuestTopology:
    """The topology that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the schema, or describes a guest that cannot be.
    """
    if len(data) > MAX_BYTES:
        raise error_at(file, None, "larger than 1 MiB: not a topology file", "give the YAML file of a guest")
    if not data.strip():
        raise error_at(file, None, "the file is empty", "a topology needs at least nodes")
    from seatrial.plan.topology_schema import ACCEPTED, TopologyModel

    document = read_yaml(data, file)
    model = validated(document, TopologyModel, Accepted(ACCEPTED, ()))
    nodes = tuple(
        GuestNode(node.cpus, _size(document, ("nodes", k, "memory"), node.memory, _LEAST_NODE_B))
        for k, node in enumerate(model.nodes)
    )
    topology = GuestTopology(
        nodes,
        model.threads or 1,
        None if model.distances is None else tuple(tuple(row) for row in model.distances),
        tuple(_devices(document, ("devices",), model.devices or ())),
    )
    _check_nodes(document, topology)
    _check_devices(document, topology)
    return topology


def _devices(document: Document, place: Place, listed: object) -> Iterator[GuestDevice]:
    from seatrial.plan.topology_schema import DeviceModel, InnerDeviceModel

    assert isinstance(listed, list | tuple)  # noqa: S101 - validated by the schema
    for k, device in enumerate(listed):
        assert isinstance(device, DeviceModel | InnerDeviceModel)  # noqa: S101
        at: Place = (*place, k)
        kind, is_outer = device.kind, isinstance(device, DeviceModel)
        if not is_outer and kind in (DeviceKind.SWITCH, DeviceKind.CXL_MEMORY):
            raise document.refuse((*at, "kind"), f"{kind.value} cannot be below a switch", "put it beside the switch")
        if device.functions is not None and kind is not DeviceKind.NVME:
            raise document.refuse((*at, "functions"), f"{kind.value} has no virtual functions", "only nvme has")
        if device.size is not None and kind not in _USUAL_B:
            raise document.refuse((*at, "size"), f"{kind.value} has no size", "remove it")
        below = device.devices if isinstance(device, DeviceModel) else None
        if (kind is DeviceKind.SWITCH) != (below is not None):
            seen = "a switch has devices below it" if below is None else f"nothing can be below {kind.value}"
            raise document.refuse(at if below is None else (*at, "devices"), seen, "write `devices:` for a switch only")
        size_B = _USUAL_B.get(kind)
        if device.size is not None:
            size_B = _size(document, (*at, "size"), device.size, _MiB)
        yield GuestDevice(
            kind,
            (device.node or 0) if isinstance(device, DeviceModel) else 0,
            size_B,
            device.functions or 0,
            tuple(_devices(document, (*at, "devices"), below or ())),
        )


def _size(document: Document, place: Place, text: str, least_B: int) -> int:
    try:
        size_B = parse_bytes(text)
    except UsageError as error:
        raise document.refuse(place, error.message, error.todo) from None
    if not least_B <= size_B <= _MOST_B or size_B % _MiB:
        raise document.refuse(
            place, f"it cannot be {text}", f"it takes whole MiB, {least_B // _MiB}MiB or more, and 1TiB at most"
        )
    return size_B


def _check_nodes(document: Document, topology: GuestTopology) -> None:
    from seatrial.plan.topology_schema import MOST_CPUS

    counts = {node.cpus for node in topology.nodes if node.cpus}
    if not topology.nodes[0].cpus:
        raise document.refuse(("nodes", 0, "cpus"), "the first node has no CPUs", "give it one or more: it boots first")
    if len(counts) > 1:
        seen = f"nodes with {' and '.join(map(str, sorted(counts)))} CPUs"
        raise document.refuse(("nodes",), seen, "nodes with CPUs need the same number: each is a socket")
    if topology.cpus > MOST_CPUS:
        raise document.refuse(("nodes",), f"{topology.cpus} CPUs", f"a guest has at most {MOST_CPUS}")
    if next(iter(counts)) % topology.threads:
        raise document.refuse(("threads",), "the CPUs of a node are not whole cores", "change cpus or threads")
    if topology.memory_B < _LEAST_ALL_B:
        raise document.refuse(
            ("nodes",), f"{topology.memory_B // _MiB} MiB of memory in all", f"Linux needs {_LEAST_ALL_B // _MiB}MiB"
        )
    rows = topology.distances
    if rows is None:
        return
    count = len(topology.nodes)
    if len(rows) != count or any(len(row) != count for row in rows):
        raise document.refuse(("distances",), "it is not square", f"{count} nodes have {count} lists of {count}")
    for i, row in enumerate(rows):
        for j, distance in enumerate(row):
            if not (distance == _SELF if i == j else _SELF < distance <= _FARTHEST):
                todo = f"{_SELF} to itself, {_SELF + 1} to {_FARTHEST} to others"
                raise document.refuse(("distances", i, j), f"it cannot be {distance}", todo)


def _check_devices(document: Document, topology: GuestTopology) -> None:
    from seatrial.plan.topology_schema import MOST_DEVICES

    if sum(1 for _ in topology.all_devices()) > MOST_DEVICES:
        raise document.refuse(("devices",), "too many devices", f"{MOST_DEVICES} at most, switches included")
    for k, device in enumerate(topology.devices):
        if device.node >= len(topology.nodes):
            last = len(topology.nodes) - 1
            raise document.refuse(("devices", k, "node"), f"there is no node {device.node}", f"nodes are 0 to {last}")
        if device.kind is DeviceKind.CXL_MEMORY and (device.size_B or 0) % _CXL_STEP_B:
            raise document.refuse(("devices", k, "size"), "CXL memory comes in multiples of 256MiB", "round it up")
