"""Rules about settings of the operating system that change performance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite, cite_best, cpu_facts, is_true
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Aim, Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count

_SELF_GOVERNING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers under which the processor chooses its clock itself; `powersave` is then the default and costs less."""


def governor(case: Case) -> Iterator[Finding]:
    """Fires if the frequency governor of a CPU is not `performance`."""
    governors = cpu_facts(case.machine, "governor")
    others = [(device, fact) for device, fact in governors if fact.value != "performance"]
    if not others:
        return
    names = Counter(str(fact.value) for _, fact in others)
    drivers = {str(fact.value) for _, fact in cpu_facts(case.machine, "frequency_driver")}
    if drivers and drivers <= set(_SELF_GOVERNING) and set(names) == {"powersave"}:
        means = (
            f"With {listed(sorted(drivers))}, the processor still reaches its boost clock under steady load, but "
            "later: short kernels, and ranks that wait, run slower than necessary."
        )
    else:
        means = "The clock follows the load with a delay and may stay below the maximum: figures drift and are too low."
    yield Finding(
        rule="governor-not-performance",
        severity=Severity.WARNING,
        devices=tuple(device.id for device, _ in others),
        observation=f"The frequency governor is {listed(names)} on {len(others)} of {count(len(governors), 'CPU')}.",
        diagnosis=means,
        remedy="Set it during measurements: `sudo cpupower frequency-set -g performance`",
        evidence=cite("governor", others[0][1])
        + (f"; frequency_driver = {listed(sorted(drivers))}" if drivers else ""),
        aims=tuple(Aim("governor", "performance", device.id) for device, _ in others),
    )


def huge_pages_never(case: Case) -> Iterator[Finding]:
    """Fires if transparent huge pages are off, even for programs that request them."""
    facts = case.machine.facts
    if facts.text("thp_enabled") != "never":
        return
    yield Finding(
        rule="huge-pages-never",
        severity=Severity.WARNING,
        devices=(),
        observation="Transparent huge pages are off (`never`).",
        diagnosis="Programs that request 2 MiB pages get 4 KiB pages: more TLB misses when large arrays are accessed "
        "at random or in many streams.",
        remedy="Allow them on request: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        evidence=cite_best(facts, "thp_enabled"),
        aims=(Aim("thp_enabled", "madvise"),),
    )


def numa_balancing(case: Case) -> Iterator[Finding]:
    """Fires if the kernel migrates pages between several NUMA nodes automatically."""
    facts = case.machine.facts
    nodes = case.machine.of_kind(DeviceKind.NUMA)
    if len(nodes) < 2 or not is_true(facts, "numa_balancing"):
        return
    yield Finding(
        rule="numa-balancing-on",
        severity=Severity.WARNING,
        devices=tuple(node.id for node in nodes),
        observation=f"Automatic NUMA balancing is on, with {len(nodes)} NUMA nodes.",
        diagnosis="The kernel unmaps pages to detect which CPUs use them, and migrates them while programs run. For "
        "programs that place their memory themselves (pinned ranks, first touch), this is only overhead.",
        remedy="If jobs are pinned, turn it off: `sudo sysctl kernel.numa_balancing=0`",
        evidence=cite_best(facts, "numa_balancing"),
        aims=(Aim("numa_balancing", 0),),
    )


def clock_source(case: Case) -> Iterator[Finding]:
    """Fires if an x86 machine does not read the time from its time stamp counter."""
    facts = case.machine.facts
    source = facts.text("clocksource")
    vendors = {device.facts.text("vendor") for device in case.machine.of_kind(DeviceKind.PACKAGE)}
    is_x86 = any(vendor and ("intel" in vendor.lower() or "amd" in vendor.lower()) for vendor in vendors)
    if source is None or source == "tsc" or not is_x86:
        return
    paravirtual = source in ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")
    # The clocks of hypervisors are read in user space too; only a device behind a bus costs a microsecond per call.
    yield Finding(
        rule="clock-source-not-tsc",
        severity=Severity.INFO if paravirtual else Severity.WARNING,
        devices=(),
        observation=f"The kernel's clock source is {source}, not tsc.",
        diagnosis="A hypervisor clock: reading it is nearly as cheap as the time stamp counter, and it follows the "
        "host's corrections."
        if paravirtual
        else "Reading the time is a system call or a bus access of about 1 µs instead of 20 ns. Programs that time "
        "small steps, and MPI libraries that poll with timers, run slower. Often the kernel found the time stamp "
        "counter unstable at boot.",
        remedy="List the available sources with `cat "
        "/sys/devices/system/clocksource/clocksource0/available_clocksource`, and check whether the kernel rejected "
        "tsc with `sudo dmesg | grep -i tsc`",
        evidence=cite_best(facts, "clocksource"),
    )
