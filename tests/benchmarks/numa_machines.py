"""Made-up machines of several NUMA nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from made_up import facts, made_up_machine

from seatrial.model.machine.machine import Device, DeviceKind, Machine


def numa_machine(packages: int = 2, nodes_each: int = 1, cores: int = 4, memory_B: Sequence[int] = ()) -> Machine:
    """Packages of some NUMA nodes of `cores` cores each, all channels filled; `memory_B`: of further nodes, which have
    memory and no CPU."""
    machine = made_up_machine(packages, nodes_each * cores, channels=8)
    devices: list[Device] = []
    for device in machine.devices:
        number = device.facts.integer("os_index") if device.kind is DeviceKind.PU else None
        devices.append(device if number is None else replace(device, numa=number // cores))
    sizes = [64 << 30] * (packages * nodes_each) + list(memory_B)
    devices += [
        Device(f"numa-{node}", DeviceKind.NUMA, "node", numa=node, facts=facts(os_index=node, memory_total=size))
        for node, size in enumerate(sizes)
    ]
    return replace(machine, devices=tuple(devices))
