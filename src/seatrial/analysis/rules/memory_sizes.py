"""Rules about the size of memory: sources that disagree, and memory that is present but that the kernel does not manage
(yet): initialised late, or kept by a balloon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.finding import Subject, finding, rule
from seatrial.model.machine.fact import LATE, Fact, Facts, is_late
from seatrial.model.machine.finding import Finding, Severity
from seatrial.model.machine.machine import Machine
from seatrial.model.spelling import show, show_percent

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
    is_stated = is_late(facts)
    why = (
        f"Its parameter `{LATE}` says that memory is initialised when it is needed: MemTotal grows while programs run, "
        "and the first use of a page takes longer. Sizes of experiments go by what is present."
        if is_stated
        else "Possible causes: a balloon of the hypervisor, memory that is initialised late (MemTotal then grows while "
        "programs run), or memory reserved for a crash kernel."
    )
    yield finding(
        "memory-not-managed",
        severity=Severity.INFO if is_stated else Severity.WARNING,
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
