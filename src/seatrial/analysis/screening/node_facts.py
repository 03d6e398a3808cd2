"""The facts of a node that a screen compares with those of other nodes, from its machine document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.machine.fact import FactValue

_OF_THE_NODE = (
    *("product", "bios_version", "kernel", "kernel_build", "kernel_parameters", "mitigations", "os", "libc"),
    *("governor", "frequency_driver", "boost", "smt_active", "idle_driver", "clocksource", "hypervisor"),
    *("thp_enabled", "thp_defrag", "numa_balancing", "page_size", "swap_total", "ecc_mode"),
)
_OF_CPUS = ("model_name", "microcode", "stepping")
_COUNTED = {
    "package": "packages",
    "core": "cores",
    "pu": "CPUs",
    "numa": "NUMA nodes",
    "gpu": "GPUs",
    "nic": "network adapters",
    "nvme": "disks",
    "memory": "memory modules",
}
_OF_DEVICES = {
    "gpu": ("driver", "driver_version", "ecc_mode", "pci_name"),
    "nic": ("driver", "firmware", "mtu", "speed", "state", "pci_name"),
    "nvme": ("firmware_rev", "model"),
    "block": ("scheduler", "write_cache"),
}
_WITH_LINKS = ("gpu", "nic", "nvme")
_WITH_STEADY_LINKS = ("nic", "nvme")
"""GPUs lower the speed of their links when they are idle, not the width."""
_SIZES = ("memory_present", "memory_online", "memory_total")
"""Names of the size of memory, the best first."""


def facts_of_node(machine: Mapping[str, Any]) -> dict[str, FactValue]:
    """Name -> value. What varies without a change of the node (load, free memory) is left out."""
    found: dict[str, FactValue] = {}
    facts = machine["facts"]
    for name in _OF_THE_NODE:
        _keep(found, name.replace("_", " "), facts, name)
    limits = [value for value in (_value(facts, "cgroup_memory_limit"),) if isinstance(value, int | float)]
    sizes = [value for value in (_value(facts, name) for name in _SIZES) if isinstance(value, int | float)]
    if sizes:
        found["memory"] = min([sizes[0], *limits])
    counts: dict[str, int] = {}
    for device in machine["devices"]:
        kind = device["kind"]
        if kind in _COUNTED:
            counts[_COUNTED[kind]] = counts.get(_COUNTED[kind], 0) + 1
        if kind == "package":
            for name in _OF_CPUS:
                _keep(found, f"CPU {name.replace('_', ' ').removesuffix(' name')}", device["facts"], name)
        lanes = next((entry["value"] for entry in device["facts"].get("pcie_lanes", ())), None)
        if kind in _WITH_LINKS and isinstance(lanes, int):
            found[f"{device['id']} link width"] = lanes
        for name in _OF_DEVICES.get(kind, ()):
            _keep(found, f"{device['id']} {name.replace('_', ' ')}", device["facts"], name)
    allowed = machine.get("allowed_cpus")
    found |= counts
    quota = _value(facts, "cgroup_cpu_limit")
    usable = [len(allowed)] if isinstance(allowed, list) and allowed else []
    if usable or "CPUs" in counts:
        most: float = usable[0] if usable else counts["CPUs"]
        found["CPUs"] = min(most, quota) if isinstance(quota, int | float) else most
    ends = {device["id"] for device in machine["devices"] if device["kind"] in _WITH_STEADY_LINKS}
    for link in machine["links"]:
        if link["trained_Bps"] is not None and link["b"] in ends:
            found[f"{link['b']} link rate"] = link["trained_Bps"]
    return found


def _value(facts: Mapping[str, Any], name: str) -> FactValue | None:
    own = facts.get(name)
    if not own or own[0].get("volatile"):
        return None
    value = own[0]["value"]
    return value if isinstance(value, str | int | float) else None


def _keep(found: dict[str, FactValue], shown: str, facts: Mapping[str, Any], name: str) -> None:
    value = _value(facts, name)
    if value is not None:
        found[shown] = value
