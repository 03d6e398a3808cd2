"""What identifies a machine: measurements before and after a change of it are not comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from seatrial.model.fact import Facts, FactValue
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.memory_size import discovered, installed_memory_B

IDENTIFYING: Mapping[DeviceKind | None, frozenset[str]] = {
    None: frozenset(
        {
            *("kernel", "kernel_parameters", "mitigations", "architecture", "page_size", "clocksource"),
            *("governor", "frequency_driver", "boost", "smt_active", "thp_enabled", "thp_defrag", "numa_balancing"),
            *("product", "bios_version", "hypervisor", "container", "cgroup_cpu_limit"),
        }
    ),
    DeviceKind.PACKAGE: frozenset(
        {"vendor", "model_name", "family", "model", "stepping", "implementer", "part", "microcode", "isa"}
    ),
    DeviceKind.CORE: frozenset({"implementer", "part"}),
    DeviceKind.PU: frozenset(
        {
            *("governor", "frequency_driver", "energy_preference"),
            *("max_frequency", "min_frequency", "base_frequency", "allowed_max_frequency"),
        }
    ),
    DeviceKind.CACHE: frozenset({"level", "type", "size"}),
    DeviceKind.NUMA: frozenset(),
    DeviceKind.GPU: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.SWITCH: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.NIC: frozenset({"vendor_id", "device_id", "subsystem_id"}),
}
"""Kind of device (None: the whole machine) -> the facts that are part of its identity; other kinds are not
part of it. A fact belongs here only if figures measured before and after a change of it are not comparable."""

_CPU_SIDE = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)
_PCI_SIDE = (DeviceKind.GPU, DeviceKind.SWITCH, DeviceKind.NIC)
_NETWORK_CLASS = "02"  # a network adapter on USB has the address of the USB controller (class 0c)


def machine_identity(machine: Machine) -> str:
    """SHA-256 (hex) of everything that makes measurements on this machine, with its settings, not comparable to others.

    Host name; the tree of packages, NUMA nodes, caches, cores and hardware threads; GPUs and network adapters on PCI
    with the capable rates of their links; the size of memory; the CPUs that this process may use; and the facts of
    `IDENTIFYING`, each from the most trusted source that discovered it. Nothing that varies without a change of the
    machine, that is asserted by a document, or that only root can read: docs/adr/0003-what-identifies-a-machine.md.
    """
    content = {
        "name": machine.name,
        "facts": _identifying(machine.facts, None),
        "memory": installed_memory_B(machine.facts),
        "cpus": [
            [device.id, device.kind, device.parent, device.numa, _identifying(device.facts, device.kind)]
            for device in machine.devices
            if device.kind in _CPU_SIDE
        ],
        "pci": sorted(_on_pci(machine)),
        "allowed_cpus": machine.allowed_cpus,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _identifying(facts: Facts, kind: DeviceKind | None) -> dict[str, FactValue]:
    chosen = ((name, discovered(facts, name)) for name in IDENTIFYING[kind])
    return {name: fact.value for name, fact in chosen if fact is not None}


def _on_pci(machine: Machine) -> Iterator[tuple[str, str]]:
    """(address, all that identifies it) of each GPU, NVSwitch and network adapter that is a PCI function.

    Includes the links above it, whose rate it shares, but no bridges that lead only to other devices.
    """
    above = {link.b: link for link in machine.links if link.capable_Bps is not None and link.kind.lower() == "pcie"}
    for device in machine.devices:
        if device.kind not in _PCI_SIDE or device.pci is None:
            continue
        if device.kind is DeviceKind.NIC and not (device.facts.text("class_id") or "").startswith(_NETWORK_CLASS):
            continue
        ids = _identifying(device.facts, device.kind)
        path = (device, *machine.ancestors(device))
        links = [above[part.id].capable_Bps for part in path if part.id in above]
        yield device.pci, json.dumps([device.kind, device.numa, ids, links], sort_keys=True, allow_nan=False)
