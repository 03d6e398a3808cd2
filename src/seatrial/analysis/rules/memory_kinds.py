"""Rules about machines with several kinds of memory: HBM in NUMA nodes (flat mode), and memory-side caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, note, rule
from seatrial.analysis.rules.words import listed
from seatrial.benchmarks import benchmark_of
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import cpu_list, show

_FAST = frozenset({"HBM", "MCDRAM"})
"""Subtypes of NUMA nodes in hwloc whose memory is faster than DRAM."""


@rule(Subject.MEMORY_KINDS)
def fast_memory_in_nodes(case: Case) -> Iterator[Finding]:
    """Fires if some NUMA nodes are HBM and others are not (flat mode): programs use HBM only if told to."""
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
