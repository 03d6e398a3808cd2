"""The rule about memory in the processor package (HBM, MCDRAM): NUMA nodes of their own, a cache, or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Device, DeviceKind
from seatrial.model.spelling import count, cpu_list, show

_FAST = ("HBM", "MCDRAM")


def fast_memory_mode(case: Case) -> Iterator[Finding]:
    """Fires if fast memory is beside other memory (flat mode), or in front of it as a cache (cache mode)."""
    nodes = [node for node in case.machine.of_kind(DeviceKind.NUMA) if node.facts.number("memory_total")]
    fast = [node for node in nodes if (node.facts.text("memory_kind") or "").upper() in _FAST]
    others = [node for node in nodes if node not in fast]
    cached = [node for node in others if node.facts.number("memory_side_cache")]
    if fast and others:
        yield _flat(fast, others, cached)
    elif cached:
        yield _cache(cached)


def _flat(fast: Sequence[Device], others: Sequence[Device], cached: Sequence[Device]) -> Finding:
    size = sum(node.facts.number("memory_total") or 0.0 for node in fast)
    kinds = listed(dict.fromkeys(node.facts.text("memory_kind") or "" for node in fast))
    numbers = cpu_list(sorted(node.numa for node in fast if node.numa is not None))
    hybrid = f"; another part of it is a cache in front of {count(len(cached), 'node')} (hybrid mode)" if cached else ""
    return Finding(
        rule="fast-memory-mode",
        severity=Severity.INFO,
        devices=tuple(node.id for node in fast),
        observation=f"{kinds} is memory of its own (flat mode): {show(size, 'B', binary=True)} on NUMA "
        f"{'node' if len(fast) == 1 else 'nodes'} {numbers}, beside {count(len(others), 'node')} of other "
        f"memory{hybrid}.",
        diagnosis="By default, programs allocate on the node of their CPUs, which is the other memory: figures of "
        "memory bandwidth then do not include the fast one, and it stays empty unless a program asks for it.",
        remedy=f"Measure both. For data that fit: `numactl --membind={numbers}`; for more: `numactl "
        f"--preferred-many={numbers}`, which continues on other nodes",
        evidence=listed(f"{node.id}: {cite_best(node.facts, 'memory_kind')}" for node in fast),
    )


def _cache(cached: Sequence[Device]) -> Finding:
    sizes = {node.facts.number("memory_side_cache") for node in cached}
    smallest = min(size for size in sizes if size)
    direct = any(node.facts.integer("memory_side_cache_ways") == 1 for node in cached)
    collisions = " The cache is direct-mapped: pages that collide in it slow down some runs and not others."
    return Finding(
        rule="fast-memory-mode",
        severity=Severity.INFO,
        devices=tuple(node.id for node in cached),
        observation=f"{count(len(cached), 'NUMA node')} {'has' if len(cached) == 1 else 'have'} a memory-side cache of "
        f"{'at least ' if len(sizes) > 1 else ''}{show(smallest, 'B', binary=True)} (cache mode).",
        diagnosis="Data up to this size on a node run at the rate of the cache, larger data towards that of the memory "
        "behind it." + (collisions if direct else ""),
        remedy="Measure with data below and above this size, and state which; if all data fit into the fast memory, "
        "flat mode (a firmware setting) avoids the cache",
        evidence=listed(f"{node.id}: {cite_best(node.facts, 'memory_side_cache')}" for node in cached),
    )
