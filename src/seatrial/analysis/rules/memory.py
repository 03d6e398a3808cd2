"""Rules about memory, but for how its modules populate the slots (`memory_modules`):

* several kinds of memory: HBM in NUMA nodes (flat mode), and memory-side caches;
* its size: sources that disagree, and memory that is present but that the kernel does not manage (yet): initialised
  late, or kept by a balloon;
* errors: memory or modules without error correction, rows of GPU memory that were replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.devices import gpus, spans
from seatrial.analysis.rules.finding import (
    Case,
    Subject,
    cite_best,
    finding,
    is_true,
    is_virtual,
    listed,
    note,
    rule,
    warning,
)
from seatrial.analysis.rules.memory_modules import ECC, devices_of, evidence, sentences
from seatrial.benchmarks import benchmark_of
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.machine.fact import LATE, Aim, Fact, Facts, Finding, Severity, grows, is_late
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import cpu_list, show, show_percent

_FAST = frozenset({"HBM", "MCDRAM"})
"""Subtypes of NUMA nodes in hwloc whose memory is faster than DRAM."""


@rule(Subject.MEMORY_KINDS)
def fast_memory_in_nodes(case: Case) -> Iterator[Finding]:
    """Fires if some NUMA nodes are HBM and others are not (flat mode): programs use HBM only on request."""
    nodes = case.machine.of_kind(DeviceKind.NUMA)
    fast = [node for node in nodes if node.facts.text("memory_kind") in _FAST]
    others = [node for node in nodes if node not in fast and (node.facts.number("memory_total") or 0) > 0]
    if not fast or not others:
        return
    kind = fast[0].facts.text("memory_kind")
    numbers = _numbers(fast)
    yield note(
        "memory-flat-mode",
        devices=fast,
        observation=f"{show(_size(fast), 'B', binary=True)} of {kind} is in NUMA {_word(fast)} {numbers}, beside "
        f"{show(_size(others), 'B', binary=True)} in other nodes (flat mode).",
        diagnosis=f"Linux allocates memory on the node of the CPU unless a program asks for another, so {kind} may "
        "stay unused. Measured bandwidth depends on the node.",
        remedy=f"Use it where it fits: `numactl --membind={numbers}` (fails if it is full) or "
        f"`numactl --preferred-many={numbers}`; measure each kind: `seatrial run "
        f"{benchmark_of(Role.MEMORY_BANDWIDTH)}`",
        evidence=listed(_about(node) for node in (*fast, *others)),
    )


@rule(Subject.MEMORY_KINDS)
def memory_side_cache(case: Case) -> Iterator[Finding]:
    """Fires if a memory-side cache is in front of a NUMA node (cache mode of HBM)."""
    cached = [node for node in case.machine.of_kind(DeviceKind.NUMA) if node.facts.number("memory_side_cache")]
    if not cached:
        return
    sizes = {node.facts.number("memory_side_cache") or 0.0 for node in cached}
    ways = {node.facts.integer("memory_side_cache_ways") for node in cached}
    direct = " It is direct-mapped: addresses that share a line evict each other." if ways == {1} else ""
    smallest = min(sizes)
    each = f"{show(smallest, 'B', binary=True)}" if len(sizes) == 1 else f"at least {show(smallest, 'B', binary=True)}"
    yield note(
        "memory-side-cache",
        devices=cached,
        observation=f"A memory-side cache of {each} is in front of the memory of {_nodes(case.machine, cached)}.",
        diagnosis="Data that fits into it is read at its rate, larger data at that of the memory behind: a bandwidth "
        f"is valid only for the size of its arrays.{direct}",
        remedy="Measure with arrays of at least four times its size and with smaller ones, and state the size: "
        f"`seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`",
        evidence=listed(_about(node) for node in cached),
    )


def _size(nodes: Sequence[Device]) -> float:
    return sum(node.facts.number("memory_total") or 0.0 for node in nodes)


def _numbers(nodes: Sequence[Device]) -> str:
    return cpu_list(sorted(node.numa for node in nodes if node.numa is not None))


def _word(nodes: Sequence[Device]) -> str:
    return "node" if len(nodes) == 1 else "nodes"


def _nodes(machine: Machine, nodes: Sequence[Device]) -> str:
    if len(nodes) == len(machine.of_kind(DeviceKind.NUMA)):
        return "every NUMA node" if len(nodes) > 1 else "the NUMA node"
    return f"NUMA {_word(nodes)} {_numbers(nodes)}"


def _about(node: Device) -> str:
    facts = node.facts
    size, cache = facts.number("memory_total"), facts.number("memory_side_cache")
    rate = facts.number("memory_bandwidth") or facts.number("memory_read_bandwidth")
    parts = (
        facts.text("memory_kind") or "memory",
        None if size is None else show(size, "B", binary=True),
        None if cache is None else f"memory-side cache {show(cache, 'B', binary=True)}",
        None if rate is None else f"{show(rate, 'B/s')} stated by firmware or hwloc's user",
    )
    return f"{node.id}: {', '.join(part for part in parts if part)}"


_ONE_MODULE = 0.9
"""A gap of this share of the smallest module is a missing module, not what the kernel reserves (about 3 %)."""
_FIXED_B = 160 << 20
"""The kernel itself and its buffers for DMA (64 MiB) take this from small machines, whatever their size."""
_MANAGED = 0.94
"""The kernel keeps up to 5 % for itself."""


@rule(Subject.MEMORY_SIZES)
def sizes_disagree(case: Case) -> Iterator[Finding]:
    """Fires if sources report memory sizes that differ by more than the kernel reserves (model/machine/fact.py).

    If the modules are known and the kernel sees less by at least one module, a module is not in use: an error.
    """
    machine = case.machine
    if all(disagreement.name != "memory_total" for disagreement in machine.facts.disagreements()):
        return
    if unmanaged(machine.facts) is not None:  # that rule explains it
        return
    facts = [
        fact
        for fact in machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool) and fact.value > 0
    ]
    sizes = [float(fact.value) for fact in facts]
    reported = [
        f"{show(size, 'B', binary=True)} by {' and by '.join(fact.source for fact in facts if fact.value == size)}"
        for size in dict.fromkeys(sizes)
    ]
    missing = _missing_modules(machine, facts)
    means = (
        f"The modules have {show(missing, 'B', binary=True)} more than any other source reports: one module or more "
        "is not in use. It failed its test at boot, or the firmware uses memory for mirroring or sparing."
        if missing is not None
        else f"The smallest is {show_percent(1 - min(sizes) / max(sizes))} below the largest. Possible causes: a limit "
        "of a container or batch system, memory reserved by the host, a wrong source. A program sized by the largest "
        "may be killed."
    )
    yield finding(
        "memory-sizes-disagree",
        severity=Severity.WARNING if missing is None else Severity.ERROR,
        observation=f"{len(facts)} sources disagree about the size of the memory: {'; '.join(reported)}.",
        diagnosis=means,
        remedy="Look for the slot in the firmware's event log (`sudo ipmitool sel list`) and in `sudo dmidecode -t "
        "memory`, and at the settings for mirroring and sparing"
        if missing is not None
        else "Size programs by the smallest until this is resolved; compare `free -b`, `lstopo --of console` and "
        "`cat /sys/fs/cgroup/memory.max`",
        evidence="; ".join(f"{fact.source}: {fact.value} B" for fact in facts),
    )


def _missing_modules(machine: Machine, facts: Sequence[Fact]) -> float | None:
    """Bytes of the modules beyond every other source if that is at least one module; else None."""
    modules = [size for device in machine.memory_modules() if (size := device.facts.number("size"))]
    of_modules = sum(modules)
    others = [float(fact.value) for fact in facts if abs(float(fact.value) - of_modules) > 0.01 * of_modules]
    if not modules or not others or len(others) == len(facts) or is_virtual(machine):
        return None
    gap = of_modules - max(others)
    return gap if gap >= _ONE_MODULE * min(modules) else None


@rule(Subject.MEMORY_SIZES)
def memory_not_managed(case: Case) -> Iterator[Finding]:
    """Fires if the kernel itself states that less memory is in its hands than is present."""
    facts = case.machine.facts
    sizes = unmanaged(facts)
    if sizes is None:
        return
    there, managed = sizes
    is_known = grows(facts)
    why = (
        f"Its parameter `{LATE}` says that memory is initialised when it is needed: MemTotal grows while programs run, "
        "and the first use of a page takes longer. Sizes of experiments go by what is present."
        if is_late(facts)
        else "Two readings of the NUMA nodes' MemTotal differ: it changes while the machine runs, because memory is "
        "plugged in, given back or initialised late."
        if is_known
        else "Possible causes: a balloon of the hypervisor, memory that is initialised late (MemTotal then grows while "
        "programs run), or memory reserved for a crash kernel."
    )
    yield finding(
        "memory-not-managed",
        severity=Severity.INFO if is_known else Severity.WARNING,
        observation=f"The kernel manages {show(managed, 'B', binary=True)} of {show(there, 'B', binary=True)} of "
        "memory that is present.",
        diagnosis=f"{why} The machine's identity goes by what is present, and stays the same when MemTotal changes.",
        remedy="Compare `grep MemTotal /proc/meminfo` before and after a run that uses much memory, and see "
        "`dmesg | grep -i -e balloon -e deferred -e crashkernel`",
        evidence="; ".join(
            f"{fact.source}: {fact.value} B"
            for name in ("memory_total", "memory_present")
            for fact in facts.get(name, ())
        ),
    )


def unmanaged(facts: Facts) -> tuple[float, float] | None:
    """(bytes present, bytes managed) if the kernel manages clearly less than is present; None if a source, such as
    the modules, states more than is present."""
    there = [size for name in ("memory_online", "memory_present") if (size := facts.number(name)) is not None]
    managed = facts.number("memory_total")
    stated = [float(f.value) for f in facts.get("memory_total", ()) if isinstance(f.value, int | float)]
    if not there or managed is None or max(there) - managed < _FIXED_B:
        return None
    if managed >= _MANAGED * max(there) or max(stated) * _MANAGED > max(there):
        return None
    return max(there), managed


_OFF = frozenset({"none", "off", "disabled", "false", "no", "0"})
_NAMES = ("ecc_mode", "ecc")
"""The mode of the memory controllers (of a processor or GPU) takes precedence over what the firmware reports."""


@rule(Subject.MEMORY_ERRORS)
def ecc_off(case: Case) -> Iterator[Finding]:
    """Fires if the memory of the machine or of GPUs is reported to run without error correction."""
    machine = case.machine
    fact = _off(machine.facts)
    if fact is not None and not is_virtual(machine):  # the firmware of a virtual machine is emulated
        yield warning(
            "memory-ecc-off",
            observation="The memory runs without error correction (ECC).",
            diagnosis="A flipped bit can change a result or crash a program, undetected. Figures are not affected; "
            "long computations may be.",
            remedy="Check the modules with `sudo dmidecode -t memory` (total width 72 bits: ECC, 64 bits: none; DDR5 "
            "with ECC: 80 or 72) and the memory settings of the firmware",
            evidence=cite_best(machine.facts, fact),
        )
    off = [(gpu, name) for gpu in gpus(machine) if (name := _off(gpu.facts)) is not None]
    if off:
        yield warning(
            "gpu-ecc-off",
            devices=(gpu.id for gpu, _ in off),
            observation=f"ECC is off on {spans(gpu.id for gpu, _ in off)}.",
            diagnosis="Errors in GPU memory go undetected. With GDDR memory, figures also change: ECC takes part of "
            "the capacity and bandwidth, so a card without it looks faster than comparable cards.",
            remedy="Turn it on, then reset the GPUs or reboot: `sudo nvidia-smi -e 1`",
            evidence=cite_best(off[0][0].facts, off[0][1]),
            aims=tuple(Aim(name, "enabled", gpu.id) for gpu, name in off),
        )


@rule(Subject.MEMORY_ERRORS, of_hardware=True)
def ecc_missing(case: Case) -> Iterator[Finding]:
    """Fires if single modules have fewer bits for ECC than the others."""
    machine = case.machine
    odd = [one for one in machine.memory.odd_slots if one.property == ECC]
    if not odd:
        return
    yield warning(
        "memory-module-without-ecc",
        devices=devices_of(odd),
        observation=sentences(odd),
        diagnosis="The total width of a module less its data width is what holds the check bits. With fewer than the "
        "others it cannot have the same error correction, and the firmware may have turned ECC off for all: a flipped "
        "bit can then change a result undetected.",
        remedy=f"Replace the module in slot {listed(one.slot for one in odd)} by a matching one, and check with "
        "`sudo dmidecode -t memory` (Total Width, and Error Correction Type of the array) and `edac-util -s`",
        evidence=evidence(odd),
    )


@rule(Subject.MEMORY_ERRORS)
def rows_remapped(case: Case) -> Iterator[Finding]:
    """Fires if rows of a GPU's memory failed: an error if no spare row was left, a warning if a replacement waits for a
    reset or an uncorrectable error caused one. Rows replaced after correctable errors are normal ageing."""
    cards = gpus(case.machine)
    failed = [gpu for gpu in cards if is_true(gpu.facts, "row_remapping_failed")]
    pending = [gpu for gpu in cards if gpu not in failed and is_true(gpu.facts, "row_remapping_pending")]
    known = [*failed, *pending]
    replaced = [gpu for gpu in cards if gpu not in known and (gpu.facts.number("rows_remapped_uncorrectable") or 0) > 0]
    for devices, severity, fact, observation, diagnosis, remedy in (
        (
            failed,
            Severity.ERROR,
            "row_remapping_failed",
            "Rows of the memory of {} could not be replaced.",
            "No spare row was left, or the replacement failed: errors in these rows will stop programs again.",
            "Take the GPU out of use and have it replaced; details: `nvidia-smi -q -d ROW_REMAPPER,ECC`",
        ),
        (
            pending,
            Severity.WARNING,
            "row_remapping_pending",
            "The replacement of memory rows of {} is pending.",
            "The bad row stays in use until the GPU is reset.",
            "When the GPU is free, reset it: `sudo nvidia-smi --gpu-reset -i INDEX`, or reboot; then test its memory",
        ),
        (
            replaced,
            Severity.INFO,
            "rows_remapped_uncorrectable",
            "Memory rows of {} were replaced after uncorrectable errors.",
            "The rows are no longer in use; figures are not affected. The number of spare rows is limited.",
            "Watch whether the number grows: `nvidia-smi -q -d ROW_REMAPPER`",
        ),
    ):
        if devices:
            yield finding(
                "gpu-memory-rows",
                severity=severity,
                devices=devices,
                observation=observation.format(spans(gpu.id for gpu in devices)),
                diagnosis=diagnosis,
                remedy=remedy,
                evidence=listed(f"{gpu.id}: {cite_best(gpu.facts, fact)}" for gpu in devices),
            )


def _off(facts: Facts) -> str | None:
    """The name of the fact that states it, or None; only the first known name counts."""
    name = next((name for name in _NAMES if name in facts), None)
    value = None if name is None else facts.text(name)
    return name if value is not None and value.strip().lower() in _OFF else None
