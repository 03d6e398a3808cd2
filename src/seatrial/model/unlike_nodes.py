"""What distinguishes two nodes of one allocation: results of unlike nodes are never put together.

Nodes are alike if what identifies a machine (model/machine_identity.py) is the same but for its name, the numbers of
its CPUs and the addresses of its devices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from seatrial.model.fact import Facts, FactValue
from seatrial.model.machine import Device, DeviceKind, Machine
from seatrial.model.machine_identity import IDENTIFYING
from seatrial.model.memory_size import discovered, installed_memory_B
from seatrial.model.spelling import show

_OF_ONE_NODE = re.compile(r"(root|rootflags|BOOT_IMAGE|BOOTIF|initrd|ip|resume|hostname|rd\.[\w.]+|nfsroot)\Z")
"""Parameters of the kernel that name a disk, an address or a file."""
_PARTS = {
    DeviceKind.PACKAGE: "processors",
    DeviceKind.NUMA: "NUMA nodes",
    DeviceKind.CACHE: "caches",
    DeviceKind.CORE: "cores",
    DeviceKind.PU: "hardware threads",
    DeviceKind.GPU: "GPUs",
    DeviceKind.SWITCH: "switches",
    DeviceKind.NIC: "network adapters",
}
_MOST_SHOWN = 60


def unlike(node: Machine, other: Machine) -> tuple[str, ...]:
    """What `node` has otherwise than `other`, a few words each ("1 CPU instead of 2"); empty if they are alike."""
    return tuple(_differences(node, other))


def _differences(node: Machine, other: Machine) -> Iterator[str]:
    for what, own, theirs in (
        ("usable CPUs", len(node.allowed_cpus), len(other.allowed_cpus)),
        ("usable cores", len(node.cpus_one_per_core), len(other.cpus_one_per_core)),
    ):
        if own != theirs:
            yield f"{own} {what} instead of {theirs}"
    for what, size, usual in (
        ("memory", installed_memory_B(node.facts), installed_memory_B(other.facts)),
        ("memory limit", _limit_B(node.facts), _limit_B(other.facts)),
    ):
        if size != usual:
            yield f"{what} {_bytes(size)} instead of {_bytes(usual)}"
    for name in sorted(IDENTIFYING[None]):
        value, usually = _of_machine(node.facts, name), _of_machine(other.facts, name)
        if value != usually:
            yield f"{name} {_shown(value)} instead of {_shown(usually)}"
    for kind, what in _PARTS.items():
        parts, usual_parts = _parts(node, kind), _parts(other, kind)
        if parts.total() != usual_parts.total():
            yield f"{parts.total()} {what} instead of {usual_parts.total()}"
        elif parts != usual_parts:
            yield f"other {what}: {_first(parts - usual_parts)} instead of {_first(usual_parts - parts)}"


def _limit_B(facts: Facts) -> int | None:
    limit = facts.number("cgroup_memory_limit")
    return None if limit is None else round(limit)


def _bytes(size: int | None) -> str:
    return "unknown" if size is None else show(size, "B", binary=True)


def _of_machine(facts: Facts, name: str) -> FactValue | frozenset[str] | None:
    fact = discovered(facts, name)
    if fact is None or name != "kernel_parameters":
        return None if fact is None else fact.value
    words = str(fact.value).split()
    return frozenset(word for word in words if not _OF_ONE_NODE.match(word.partition("=")[0]))


def _shown(value: FactValue | frozenset[str] | None) -> str:
    if value is None:
        return "unknown"
    text = " ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _parts(machine: Machine, kind: DeviceKind) -> Counter[tuple[str, ...]]:
    """The parts of a kind: what identifies each, with its link; how many of each."""
    rates = {link.b: link.capable_Bps for link in machine.links if link.capable_Bps is not None}
    return Counter(_described(device, rates.get(device.id)) for device in machine.of_kind(kind) if _counts(device))


def _counts(device: Device) -> bool:
    """Network interfaces of the kernel's own (bridges, pairs of a container) come and go."""
    return device.kind is not DeviceKind.NIC or device.pci is not None


def _described(device: Device, rate_Bps: float | None) -> tuple[str, ...]:
    found = ((name, discovered(device.facts, name)) for name in sorted(IDENTIFYING[device.kind]))
    words = [f"{name} {fact.value}" for name, fact in found if fact is not None]
    if rate_Bps is not None:
        words.append(f"a link of {show(rate_Bps, 'B/s')}")
    return tuple(words)


def _first(parts: Counter[tuple[str, ...]]) -> str:
    text = ", ".join(next(iter(parts), ()))
    return text if len(text) <= 2 * _MOST_SHOWN else f"{text[: 2 * _MOST_SHOWN]}..."
