"""Surveys -> one `Machine`: joins all sources, then derives limits and memory population.

The first survey is the most trusted: its facts come first, and it determines the shape of the CPU tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.benchmarks import benchmark_of
from seatrial.machine.attachment import hypervisor_of_pci, with_attachments
from seatrial.machine.cpu_tree import build_cpu_tree
from seatrial.machine.io_parts import join_io_parts
from seatrial.machine.io_tree import build_io_tree
from seatrial.machine.memory_population import judge_memory, memory_devices
from seatrial.machine.paths import PeerPaths, pci_paths, pcie_limits, with_one_rate_per_link
from seatrial.machine.processors import with_asserted_facts
from seatrial.machine.survey import CpuPart, MemoryModule, Survey, merge_facts, one_fact
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.limit import ELEMENT_BITS, FmaUnit, Limit, fma_rate
from seatrial.model.machine.machine import Device, DeviceKind, Machine, NamedLimit, Platform, Sign


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
            packages = (device.name for device in machine.ancestors(core) if device.kind is DeviceKind.PACKAGE)
            package = next(packages, "this CPU")
            return Limit.unknown("flop/s", f"the number of FMA pipes of {package} is unknown")
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


def assemble(surveys: Sequence[Survey]) -> Machine:
    """Join surveys into one machine. Never fails: contradictory facts are kept next to each other."""
    cpu_devices = tuple(with_asserted_facts(device) for device in build_cpu_tree(_with_pci_nodes(surveys)))
    parts = join_io_parts(surveys)
    io = build_io_tree(parts, cpu_devices)
    modules, slots = _modules(surveys)
    why_none = (survey.why_no_modules for survey in surveys if survey.why_no_modules is not None)
    facts = merge_facts(*(survey.facts for survey in surveys), _derived_facts(surveys, cpu_devices))
    platform = _platform(surveys, facts)
    attached = with_attachments(io.devices, is_virtual=bool(platform.virtualization))
    devices = _in_tree_order((*cpu_devices, *memory_devices(modules, cpu_devices), *attached))
    peers = PeerPaths(surveys, io.devices)
    condensed = {f"pci-{part.address}" for part in parts.pci.values() if part.is_condensed}
    in_nccl = {part.address for survey in surveys for part in survey.pci_parts if part.is_condensed}
    machine = Machine(
        name=next((survey.name for survey in surveys if survey.name), "unnamed"),
        devices=devices,
        facts=facts,
        links=(*io.links, *peers.links()),
        paths=peers.paths(pci_paths(io.devices, peers.lone_links(), condensed, in_nccl)),
        affinity=io.affinity,
        p2p=peers.access(),
        memory=judge_memory(
            modules,
            slots,
            cpu_devices,
            is_virtual="hypervisor" in facts,
            why_none=next(why_none, "no source describes the memory modules"),
            product=facts.text("product"),
        ),
        platform=platform,
        allowed_cpus=next((survey.allowed_cpus for survey in surveys if survey.allowed_cpus), ()),
        sources=tuple(survey.source for survey in surveys if _has_content(survey)),
        unread=(*(sentence for survey in surveys for sentence in survey.unread), *parts.unread),
    )
    machine = replace(machine, links=with_one_rate_per_link(machine))
    return replace(machine, limits=machine_limits(machine))


def _platform(surveys: Sequence[Survey], facts: Facts) -> Platform:
    """One sign for each hypervisor, with the evidence of all sources; the containers of this process, as they usually
    contain each other. What is outside comes first."""
    signs = [Sign(str(fact.value), fact.source) for fact in facts.get("hypervisor", ()) if fact.value != "none"]
    signs += [sign for survey in surveys for sign in survey.platform.virtualization]
    evidence: dict[str, dict[str, None]] = {}
    for sign in signs:
        evidence.setdefault(sign.kind, {})[sign.evidence] = None
    virtualization = tuple(Sign(kind, "; ".join(texts)) for kind, texts in evidence.items())
    container = next((survey.platform.container for survey in surveys if survey.platform.container), ())
    return Platform(virtualization, tuple(sorted(container, key=lambda sign: _DEPTHS.get(sign.kind, len(_DEPTHS)))))


_DEPTHS = {
    "wsl": 0,
    **dict.fromkeys(("lxc", "systemd-nspawn"), 1),
    "kubernetes": 2,
    **dict.fromkeys(("docker", "podman", "containerd", "cri-o"), 3),
}
"""From the outside in: systems of containers, services that run them, and (all others) what a user starts inside."""


def _with_pci_nodes(surveys: Sequence[Survey]) -> Sequence[Survey]:
    """Add the NUMA nodes that only PCI functions refer to (as in lspci output); their CPUs are unknown."""
    if any(part.kind is DeviceKind.NUMA for survey in surveys for part in survey.cpu_parts):
        return surveys
    numbers = {part.numa for survey in surveys for part in survey.pci_parts if part.numa is not None}
    nodes = [CpuPart(DeviceKind.NUMA, frozenset(), numa) for numa in sorted(numbers)]
    return (*surveys, Survey("PCI", cpu_parts=tuple(nodes))) if nodes else surveys


def _has_content(survey: Survey) -> bool:
    parts = (survey.cpu_parts, survey.pci_parts, survey.named_parts, survey.modules, survey.peer_links, survey.p2p)
    return bool(survey.facts) or any(parts)


def _modules(surveys: Sequence[Survey]) -> tuple[tuple[MemoryModule, ...], int | None]:
    """The modules and slots of one survey: slot names differ too much between sources to join them.

    A survey with speeds (SMBIOS) precedes one without (EDAC).
    """
    described = [survey for survey in surveys if survey.modules]
    described.sort(key=lambda survey: not any(module.configured_MTps for module in survey.modules))
    return (described[0].modules, described[0].memory_slots) if described else ((), None)


def _derived_facts(surveys: Sequence[Survey], cpu_devices: Sequence[Device]) -> Facts:
    """Whether SMT is in use, counted from the tree if no kernel file states it (before Linux 4.19; hwloc alone); the
    hypervisor that PCI functions show, if no source names one."""
    counts = Counter(device.kind for device in cpu_devices)
    cores, pus = counts[DeviceKind.CORE], counts[DeviceKind.PU]
    found: list[Facts] = []
    if cores and pus and not any("smt_active" in survey.facts for survey in surveys):
        found.append(one_fact("smt_active", pus > cores, "counted: hardware threads compared with cores"))
    if not any("hypervisor" in survey.facts for survey in surveys):
        shown = next((shown for survey in surveys if (shown := hypervisor_of_pci(survey.pci_parts))), None)
        found += [] if shown is None else [one_fact("hypervisor", *shown)]
    return merge_facts(*found)


def _in_tree_order(devices: Sequence[Device]) -> tuple[Device, ...]:
    """All devices in depth-first order; children keep their given order."""
    known = {device.id for device in devices}
    children: dict[str | None, list[Device]] = {}
    for device in devices:
        children.setdefault(device.parent if device.parent in known else None, []).append(device)
    walk: list[Device] = []
    stack = list(reversed(children.get(None, [])))
    while stack:
        device = stack.pop()
        walk.append(device)
        stack += reversed(children.pop(device.id, []))
    return tuple(walk)
