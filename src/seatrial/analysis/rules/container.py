"""Rules about what stands between this process and the machine: limits of a container, a CPU mask, a hypervisor."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count, show, surrounding

_LIMIT_IS_LESS = 0.94
"""A memory limit above this share of the memory is the whole of it: the kernel keeps up to 5 % for itself."""


def cpu_quota(case: Case) -> Iterator[Finding]:
    """Fires where a control group grants less CPU time than the CPUs that it allows could use."""
    machine = case.machine
    quota = machine.facts.number("cgroup_cpu_limit")
    cpus = len(machine.allowed_cpus) or len(machine.of_kind(DeviceKind.PU))
    if quota is None or quota <= 0 or cpus == 0 or quota >= 0.99 * cpus:
        return
    yield Finding(
        rule="cpu-quota",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The control group grants the time of {count(quota, 'CPU')}; {count(cpus, 'CPU')} can be seen.",
        diagnosis="Programs that start a thread for each CPU are stopped for a part of every period of 100 ms. "
        "Figures of all cores then measure the quota and not the machine, and barriers wait for whoever is stopped.",
        remedy=f"Measure with at most {count(max(1, int(quota)), 'thread')}, or lift the quota (`docker run --cpus`, "
        "`CPUQuota=` of systemd, the limits of the pod)",
        evidence=cite_best(machine.facts, "cgroup_cpu_limit"),
        loss=1 - quota / cpus,
    )


def memory_limit(case: Case) -> Iterator[Finding]:
    """Fires where a control group grants less memory than the machine has."""
    facts = case.machine.facts
    limit = facts.number("cgroup_memory_limit")
    totals = [float(fact.value) for fact in facts.get("memory_total", ()) if isinstance(fact.value, int | float)]
    total = max(totals, default=None)
    if limit is None or total is None or limit <= 0 or limit >= _LIMIT_IS_LESS * total:
        return
    yield Finding(
        rule="memory-limit",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The control group grants {show(limit, 'B', binary=True)} of "
        f"{show(total, 'B', binary=True)} of memory.",
        diagnosis="A program that is sized by the machine's memory is killed when it touches more than that.",
        remedy="Size programs by the limit (`cat /sys/fs/cgroup/memory.max`), or lift it where the container starts",
        evidence="; ".join((cite_best(facts, "cgroup_memory_limit"), cite_best(facts, "memory_total"))),
    )


def few_cpus_allowed(case: Case) -> Iterator[Finding]:
    """Says so where this process may use only some of the CPUs: figures of "all" cores mean those."""
    allowed, all_cpus = case.machine.allowed_cpus, case.machine.pus()
    if not allowed or not all_cpus or len(set(allowed) & set(all_cpus)) >= len(all_cpus):
        return
    yield Finding(
        rule="few-cpus-allowed",
        severity=Severity.INFO,
        devices=(),
        observation=f"This process may use {len(allowed)} of the machine's {count(len(all_cpus), 'CPU')}.",
        diagnosis='Every figure of "all" cores is one of the allowed ones, and neighbours on the others share caches '
        "and memory with it.",
        remedy="For the whole machine ask for an exclusive node (`srun --exclusive`), or see who set the mask with "
        "`taskset -cp $$`",
        evidence=f"the affinity mask of this process, {count(len(allowed), 'CPU')}",
    )


def hypervisor(case: Case) -> Iterator[Finding]:
    """Says so where the machine is virtual, and what that hides."""
    name = surrounding(case.machine.facts, "hypervisor")
    if name is None:
        return
    yield Finding(
        rule="virtual-machine",
        severity=Severity.INFO,
        devices=(),
        observation=f"This is a virtual machine ({name}).",
        diagnosis="The host decides which cores its CPUs run on and with whom they share them, so figures vary with "
        "the neighbours. Memory modules, sensors and often the true clock, caches and PCIe tree are hidden.",
        remedy="Compare by ratio within one run; for the limits of the hardware, run `seatrial` on the host",
        evidence=cite_best(case.machine.facts, "hypervisor"),
    )
