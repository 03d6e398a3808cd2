"""The machine in one line, and the table of facts that affect performance."""

from __future__ import annotations

from collections import Counter

from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Disagreement, stated_memory_B
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import count, show, show_fact, surrounding


class FactLine(Frozen):
    """One line of the table."""

    label: str
    value: str
    source: str


def fingerprint(machine: Machine) -> str:
    """A description of the machine in one line; unknown parts are left out."""
    packages, cores = machine.of_kind(DeviceKind.PACKAGE), machine.of_kind(DeviceKind.CORE)
    pus, nodes = machine.of_kind(DeviceKind.PU), machine.of_kind(DeviceKind.NUMA)
    gpus = machine.of_kind(DeviceKind.GPU)
    parts = [
        *_processors(packages),
        ", ".join(count(len(parts), noun) for parts, noun in ((cores, "core"), (pus, "CPU")) if parts),
        count(len(nodes), "NUMA node") if nodes else "",
        _memory(machine),
        count(len(gpus), "GPU") if gpus else "",
        f"Linux {kernel}" if (kernel := machine.facts.text("kernel")) else "",
        f"virtual ({name})" if (name := surrounding(machine.facts, "hypervisor")) else "",
        f"in {name}" if (name := surrounding(machine.facts, "container")) else "",
    ]
    return "\N{NO-BREAK SPACE}· ".join(part for part in parts if part)


_MACHINE_FACTS = (
    ("Product", "product"),
    ("BIOS", "bios_version"),
    ("BIOS date", "bios_date"),
    ("Operating system", "os"),
    ("Kernel", "kernel"),
    ("C library", "libc"),
    ("Hypervisor", "hypervisor"),
    ("Container", "container"),
    ("Memory balloon", "balloon"),
    ("CPU time given to other guests", "steal_share"),
    ("Privileges", "privileges"),
    ("SMT active", "smt_active"),
    ("Boost", "boost"),
    ("Huge pages (THP)", "thp_enabled"),
    ("THP defragmentation", "thp_defrag"),
    ("Page size", "page_size"),
    ("NUMA balancing", "numa_balancing"),
    ("Clock source", "clocksource"),
    ("CPU limit (cgroup)", "cgroup_cpu_limit"),
    ("Memory limit (cgroup)", "cgroup_memory_limit"),
    ("Memory", "memory_total"),
    ("Swap", "swap_total"),
    ("Mitigations", "mitigations"),
)
_PACKAGE_FACTS = (
    ("Processor", "model_name"),
    ("Microarchitecture", "microarchitecture"),
    ("Stepping", "stepping"),
    ("Microcode", "microcode"),
    ("Vector instructions", "vector_isa"),
    ("FMA pipes", "fma_pipes"),
    ("FMA width", "fma_vector_bits"),
    ("Memory channels", "memory_channels"),
)
_CPU_FACTS = (
    ("Governor", "governor"),
    ("Frequency driver", "frequency_driver"),
    ("Highest clock", "max_frequency"),
    ("Base clock", "base_frequency"),
    ("Lowest clock", "min_frequency"),
)


def fact_lines(machine: Machine) -> tuple[FactLine, ...]:
    """The known facts that affect performance: processors, clocks, then the system."""
    lines = [_of_devices(machine, label, name, (DeviceKind.PACKAGE,)) for label, name in _PACKAGE_FACTS]
    kinds = (DeviceKind.PU, DeviceKind.CORE, DeviceKind.PACKAGE)
    lines += [_of_devices(machine, label, name, kinds) for label, name in _CPU_FACTS]
    disagreements = machine.facts.disagreements()
    for label, name in _MACHINE_FACTS:
        facts = machine.facts.get(name, ())
        if facts:
            others = " (sources disagree)" if Disagreement(name, facts) in disagreements else ""
            lines.append(FactLine(label, show_fact(name, facts[0]) + others, facts[0].source))
    return tuple(line for line in lines if line is not None)


def _of_devices(machine: Machine, label: str, name: str, kinds: tuple[DeviceKind, ...]) -> FactLine | None:
    """One line for a fact of many devices; if they differ, each value with the number of devices."""
    for kind in kinds:
        facts = [fact for device in machine.of_kind(kind) if (fact := device.facts.best(name)) is not None]
        if facts:
            counts = Counter(show_fact(name, fact) for fact in facts)
            several = len(counts) > 1
            value = ", ".join(f"{spelled} ({number}x)" if several else spelled for spelled, number in counts.items())
            return FactLine(label, value, facts[0].source)
    return None


def _processors(packages: tuple[Device, ...]) -> list[str]:
    """Identical packages together: "2 x AMD EPYC 9374F"."""
    names = Counter(package.facts.text("model_name") or package.name or package.id for package in packages)
    return [f"{number} \N{MULTIPLICATION SIGN} {name}" for name, number in names.items()]


def _memory(machine: Machine) -> str:
    """The size, or the range over the sources."""
    sizes = [
        float(fact.value)
        for fact in machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
    ]
    if not sizes:
        return ""
    low, high = min(sizes), max(sizes)
    if any(disagreement.name == "memory_total" for disagreement in machine.facts.disagreements()):
        return f"{show(low, 'B', binary=True)} to {show(high, 'B', binary=True)} of memory (sources disagree)"
    return f"{show(stated_memory_B(machine.facts) or sizes[0], 'B', binary=True)} of memory"
