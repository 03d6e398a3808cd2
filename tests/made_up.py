"""Made-up machines for tests."""

from __future__ import annotations

from dataclasses import replace

from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.limit import dram_bandwidth
from seatrial.model.machine.machine import Device, DeviceKind, Machine, Memory, NamedLimit, Population, SocketMemory


def facts(**values: str | int | float | bool) -> Facts:
    """Facts of one made-up source."""
    return Facts({name: (Fact(value, "made up", FactKind.DISCOVERED),) for name, value in values.items()})


def with_facts(machine: Machine, kind: DeviceKind, **values: str | int | float | bool) -> Machine:
    """The machine with these facts of all its devices of a kind, in place of what is known of them."""
    new = facts(**values)
    devices = [replace(d, facts=Facts({**d.facts, **new})) if d.kind is kind else d for d in machine.devices]
    return replace(machine, devices=tuple(devices))


def with_small_caches(machine: Machine, most_B: int = 8 << 20) -> Machine:
    """The machine as if its caches held no more than that, and with a memory of unknown rate: what is sized by the
    caches is soon done, and right or wrong all the same."""
    devices = []
    for device in machine.devices:
        size = device.facts.integer("size")
        if device.kind is DeviceKind.CACHE and size is not None:
            device = replace(device, facts=Facts({**device.facts, **facts(size=min(size, most_B))}))
        devices.append(device)
    limits = tuple(limit for limit in machine.limits if limit.name != "dram.bandwidth")
    return replace(machine, devices=tuple(devices), limits=limits)


def made_up_machine(
    packages: int = 1,
    cores: int = 2,
    threads: int = 1,
    l3_bytes: int | None = 32 << 20,
    channels: int | None = None,
    **package_facts: str | int | float | bool,
) -> Machine:
    """A machine with `cores` cores in each package, each of `threads` hardware threads, CPUs numbered as Linux does."""
    devices: list[Device] = []
    total = packages * cores
    known = {"isa": "sse2 avx avx2 fma", "fma_pipes": 2, "fma_vector_bits": 256, "fma_latency_cycles": 4}
    for package in range(packages):
        devices.append(
            Device(f"package-{package}", DeviceKind.PACKAGE, "CPU", facts=facts(**{**known, **package_facts}))
        )
        parent = f"package-{package}"
        if l3_bytes is not None:
            devices.append(Device(f"l3-{package}", DeviceKind.CACHE, "L3", parent, facts=facts(level=3, size=l3_bytes)))
            parent = f"l3-{package}"
        for core in range(cores):
            number = package * cores + core
            devices.append(Device(f"core-{number}", DeviceKind.CORE, "core", parent))
            for thread in range(threads):
                cpu = number + thread * total
                devices.append(Device(f"pu-{cpu}", DeviceKind.PU, "CPU", f"core-{number}", facts=facts(os_index=cpu)))
    memory, limits = Memory(), ()
    if channels is not None:
        peak = dram_bandwidth(channels * packages, 3200)
        socket = SocketMemory(channels, channels, channels, channels << 34, 3200, 3200)
        memory = Memory(Population.BALANCED, "all channels filled alike", peak, (socket,) * packages)
        limits = (NamedLimit("dram.bandwidth", peak),)
    return Machine(
        "made-up",
        tuple(devices),
        memory=memory,
        limits=limits,
        allowed_cpus=tuple(range(total * threads)),
    )
