"""Memory that is present but that the kernel does not manage (yet): initialised late, or kept by a balloon."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case
from seatrial.model.fact import Facts
from seatrial.model.finding import Finding, Severity
from seatrial.model.memory_size import LATE, is_late
from seatrial.model.spelling import show

_FIXED_B = 160 << 20
"""The kernel itself and its buffers for DMA (64 MiB) take this from small machines, whatever their size."""
_MANAGED = 0.94
"""The kernel keeps up to 5 % for itself."""


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
    yield Finding(
        rule="memory-not-managed",
        severity=Severity.INFO if is_stated else Severity.WARNING,
        devices=(),
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
