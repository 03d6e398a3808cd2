"""Rules about limits between this process and the machine: of a container, a CPU mask or a hypervisor."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count, show, surrounding

_LIMIT_IS_LESS = 0.94
"""A memory limit above this share of the memory is no limit: the kernel reserves up to 5 %."""


def cpu_quota(case: Case) -> Iterator[Finding]:
    """Fires if a control group grants less CPU time than its allowed CPUs could use."""
    machine = case.machine
    quota = machine.facts.number("cgroup_cpu_limit")
    cpus = len(machine.allowed_cpus) or len(machine.of_kind(DeviceKind.PU))
    if quota is None or quota <= 0 or cpus == 0 or quota >= 0.99 * cpus:
        return
    yield Finding(
        rule="cpu-quota",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The control group grants the CPU time of {count(quota, 'CPU')}; {count(cpus, 'CPU')} are "
        "visible.",
        diagnosis="Programs with one thread per CPU are throttled in every period of 100 ms. "
        "Figures of all cores then measure the quota and not the machine, and barriers wait for throttled threads.",
        remedy=f"Measure with at most {count(max(1, int(quota)), 'thread')}, or lift the quota (`docker run --cpus`, "
        "`CPUQuota=` of systemd, the limits of the pod)",
        evidence=cite_best(machine.facts, "cgroup_cpu_limit"),
        loss=1 - quota / cpus,
    )


def memory_limit(case: Case) -> Iterator[Finding]:
    """Fires if a control group grants less memory than the machine has."""
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
        diagnosis="A program sized by the machine's memory is killed when it exceeds this limit.",
        remedy="Size programs by the limit (`cat /sys/fs/cgroup/memory.max`), or raise it when starting the container",
        evidence="; ".join((cite_best(facts, "cgroup_memory_limit"), cite_best(facts, "memory_total"))),
    )


def few_cpus_allowed(case: Case) -> Iterator[Finding]:
    """Fires if this process may use only some of the CPUs: figures of "all" cores mean those."""
    allowed, all_cpus = case.machine.allowed_cpus, case.machine.pus()
    if not allowed or not all_cpus or len(set(allowed) & set(all_cpus)) >= len(all_cpus):
        return
    yield Finding(
        rule="few-cpus-allowed",
        severity=Severity.INFO,
        devices=(),
        observation=f"This process may use {len(allowed)} of the machine's {count(len(all_cpus), 'CPU')}.",
        diagnosis='Every figure of "all" cores is measured on the allowed CPUs only, and other jobs on the rest share '
        "caches and memory with it.",
        remedy="For the whole machine, request an exclusive node (`srun --exclusive`); `taskset -cp $$` shows the mask "
        "of the shell",
        evidence=f"the affinity mask of this process, {count(len(allowed), 'CPU')}",
    )


def hypervisor(case: Case) -> Iterator[Finding]:
    """Fires if the machine is virtual."""
    name = surrounding(case.machine.facts, "hypervisor")
    if name is None:
        return
    yield Finding(
        rule="virtual-machine",
        severity=Severity.INFO,
        devices=(),
        observation=f"This is a virtual machine ({name}).",
        diagnosis="The host decides which cores its CPUs run on and share with other guests, so figures vary with "
        "their load. Memory modules, sensors and often the true clock, caches and PCIe tree are hidden.",
        remedy="Compare only ratios within one run; for the limits of the hardware, run `seatrial` on the host",
        evidence=cite_best(case.machine.facts, "hypervisor"),
    )
