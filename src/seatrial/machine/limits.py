"""The limits that follow from the machine alone: `dram.bandwidth`, `cpu.fp64`, `cpu.fp32`, `pcie.<device>`."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks import benchmark_of
from seatrial.machine.paths import pcie_limits
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.limit import ELEMENT_BITS, FmaUnit, Limit, fma_rate
from seatrial.model.machine.machine import Device, DeviceKind, Machine, NamedLimit


def machine_limits(machine: Machine) -> tuple[NamedLimit, ...]:
    """Every limit by name; a limit that cannot be derived states what is missing."""
    return (
        NamedLimit("dram.bandwidth", machine.memory.peak),
        *(NamedLimit(f"cpu.{precision}", _fma_limit(machine, precision)) for precision in ELEMENT_BITS),
        *pcie_limits(machine.devices, machine.links),
    )


def _fma_limit(machine: Machine, precision: str) -> Limit:
    """Peak FMA rate of all cores at the highest clock that the machine states: sum of clock x pipes x lanes x 2.

    An upper bound: with all cores active, or with wide vectors, the clock may be lower. A measured rate is compared
    with the limit at the clock measured in the same run.
    """
    cores = machine.of_kind(DeviceKind.CORE)
    if not cores:
        return Limit.unknown("flop/s", "the number of cores is unknown")
    threads: dict[str | None, dict[int, Device]] = {}
    for cpu, pu in machine.pus.items():
        threads.setdefault(pu.parent, {})[cpu] = pu
    clocked: list[tuple[float, FmaUnit]] = []
    for core in cores:
        own = threads.get(core.id, {})
        unit = machine.fma_unit(min(own)) if own else None
        if unit is None:
            return Limit.unknown("flop/s", f"the number of FMA pipes of {_package(core, machine)} is unknown")
        clock = _max_clock(machine, tuple(own.values()))
        if isinstance(clock, str):
            return Limit.unknown("flop/s", clock)
        clocked.append((clock, unit))
    return fma_rate(clocked, precision, "(highest clock reported by cpufreq)")


def _max_clock(machine: Machine, threads: Sequence[Device]) -> float | str:
    """The highest clock in Hz of the core with these threads, or what is missing."""
    clock = max((value for pu in threads if (value := pu.facts.number("max_frequency"))), default=None)
    if clock is None:
        where = " (this virtual machine has no cpufreq)" if "hypervisor" in machine.facts else ""
        return f"the highest clock is unknown{where}; {benchmark_of(Role.FMA_RATE)} measures the clock"
    boost = machine.facts.best("boost")
    drivers = {pu.facts.text("frequency_driver") for pu in threads}
    if drivers == {"acpi-cpufreq"} and boost is not None and boost.value is True:
        benchmark = benchmark_of(Role.FMA_RATE)
        return f"acpi-cpufreq reports the highest clock without boost, and boost is on; {benchmark} measures the clock"
    return clock


def _package(core: Device, machine: Machine) -> str:
    packages = (device.name for device in machine.ancestors(core) if device.kind is DeviceKind.PACKAGE)
    return next(packages, "this CPU")
