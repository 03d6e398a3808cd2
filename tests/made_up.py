"""Made-up machines for tests."""

from __future__ import annotations

from seatrial.model.fact import Fact, FactKind, Facts
from seatrial.model.limit import dram_bandwidth
from seatrial.model.machine import Device, DeviceKind, Machine, Memory, NamedLimit, Population, SocketMemory


def facts(**values: str | int | float | bool) -> Facts:
    """Facts of one made-up source."""
    return Facts({name: (Fact(value, "made up", FactKind.DISCOVERED),) for name, value in values.items()})


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
