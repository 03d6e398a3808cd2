"""The limits that follow from the machine alone: `dram.bandwidth`, `cpu.fp64`, `cpu.fp32`, `pcie.<device>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.machine.pcie import pcie_limits
from seatrial.model.limit import Basis, Limit
from seatrial.model.machine import Device, DeviceKind, Machine, NamedLimit

_ELEMENT_BITS = {"fp64": 64, "fp32": 32}


def machine_limits(machine: Machine) -> tuple[NamedLimit, ...]:
    """Every limit by name; one that cannot be derived says what is missing."""
    return (
        NamedLimit("dram.bandwidth", machine.memory.peak),
        *(NamedLimit(f"cpu.{precision}", _fma_limit(machine, precision)) for precision in _ELEMENT_BITS),
        *pcie_limits(machine.devices, machine.links),
    )


def _fma_limit(machine: Machine, precision: str) -> Limit:
    """Peak FMA rate of all cores at the highest clock that the machine states: sum of clock x pipes x lanes x 2.

    An upper bound: all cores at once, and wide vectors, may run slower. What a run reached is judged by the clock
    measured in that run.
    """
    cores = machine.of_kind(DeviceKind.CORE)
    if not cores:
        return Limit.unknown("flop/s", "no source tells the cores")
    devices = {device.id: device for device in machine.devices}
    threads: dict[str | None, list[Device]] = {}
    for pu in machine.of_kind(DeviceKind.PU):
        threads.setdefault(pu.parent, []).append(pu)
    total = 0.0
    shapes: dict[str, None] = {}
    clocks: list[float] = []
    for core in cores:
        unit = _fma_unit(core, devices)
        if unit is None:
            return Limit.unknown(
                "flop/s", f"no document in our table settles the FMA pipes of {_package(core, devices)}"
            )
        clock = _max_clock(machine, threads.get(core.id, []))
        if isinstance(clock, str):
            return Limit.unknown("flop/s", clock)
        pipes, bits = unit
        lanes = bits // _ELEMENT_BITS[precision]
        total += clock * pipes * lanes * 2
        clocks.append(clock)
        shapes[f"{pipes * lanes * 2} flop/cycle ({pipes} FMA pipes x {lanes} {precision} lanes x 2)"] = None
    mean_GHz = sum(clocks) / len(clocks) / 1e9
    count = f"{len(cores)} core{'s' if len(cores) > 1 else ''}"
    clock_text = f"{mean_GHz:.3f} GHz, the highest clock that cpufreq states"
    return Limit(total, "flop/s", f"{count} x {clock_text}, x {' or '.join(shapes)}", Basis.PHYSICAL)


def _above(device: Device, devices: Mapping[str, Device]) -> Iterator[Device]:
    """The device itself, its parent, and so on to a root."""
    at: Device | None = device
    while at is not None:
        yield at
        at = devices.get(at.parent) if at.parent is not None else None


def _fma_unit(core: Device, devices: Mapping[str, Device]) -> tuple[int, int] | None:
    """Pipes and bits per pipe that are asserted of the core or its package."""
    for device in _above(core, devices):
        pipes, bits = device.facts.integer("fma_pipes"), device.facts.integer("fma_vector_bits")
        if pipes and bits:
            return pipes, bits
    return None


def _max_clock(machine: Machine, threads: Sequence[Device]) -> float | str:
    """The highest clock in Hz of the core with these threads, or what is missing."""
    clock = max((value for pu in threads if (value := pu.facts.number("max_frequency"))), default=None)
    if clock is None:
        where = " (cpufreq is absent in this virtual machine)" if "hypervisor" in machine.facts else ""
        return f"no source states the highest clock{where}; cpu.peak measures the clock in its run"
    boost = machine.facts.best("boost")
    drivers = {pu.facts.text("frequency_driver") for pu in threads}
    if drivers == {"acpi-cpufreq"} and boost is not None and boost.value is True:
        return "acpi-cpufreq states the highest clock without boost, and boost is on; cpu.peak measures it in its run"
    return clock


def _package(core: Device, devices: Mapping[str, Device]) -> str:
    packages = (device.name for device in _above(core, devices) if device.kind is DeviceKind.PACKAGE)
    return next(packages, "this CPU")
