"""Rules about settings of the operating system that change performance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite, cite_best, cpu_facts, is_true
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count

_SELF_GOVERNING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers under which the processor chooses its clock itself; `powersave` is then the ordinary, milder setting."""


def governor(case: Case) -> Iterator[Finding]:
    """Fires where a CPU's frequency governor is not `performance`."""
    governors = cpu_facts(case.machine, "governor")
    others = [(device, fact) for device, fact in governors if fact.value != "performance"]
    if not others:
        return
    names = Counter(str(fact.value) for _, fact in others)
    drivers = {str(fact.value) for _, fact in cpu_facts(case.machine, "frequency_driver")}
    if drivers and drivers <= set(_SELF_GOVERNING) and set(names) == {"powersave"}:
        means = (
            f"Under {listed(sorted(drivers))} the processor still reaches its boost clock under steady load, but it "
            "rises later: short kernels, and ranks that wait, run slower than they need to."
        )
    else:
        means = "The clock follows the load with a delay and may stay below the maximum: figures drift and fall short."
    yield Finding(
        rule="governor-not-performance",
        severity=Severity.WARNING,
        devices=tuple(device.id for device, _ in others),
        observation=f"The frequency governor is {listed(names)} on {len(others)} of {count(len(governors), 'CPU')}.",
        diagnosis=means,
        remedy="Set it for the time of the measurement: `sudo cpupower frequency-set -g performance`",
        evidence=cite("governor", others[0][1])
        + (f"; frequency_driver = {listed(sorted(drivers))}" if drivers else ""),
    )


def huge_pages_never(case: Case) -> Iterator[Finding]:
    """Fires where transparent huge pages are off, so that even a program that asks gets none."""
    facts = case.machine.facts
    if facts.text("thp_enabled") != "never":
        return
    yield Finding(
        rule="huge-pages-never",
        severity=Severity.WARNING,
        devices=(),
        observation="Transparent huge pages are off (`never`).",
        diagnosis="Programs that ask for 2 MiB pages get 4 KiB ones: more TLB misses wherever large arrays are walked "
        "at random or in many streams.",
        remedy="Allow them on request: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        evidence=cite_best(facts, "thp_enabled"),
    )


def numa_balancing(case: Case) -> Iterator[Finding]:
    """Fires where the kernel moves pages between several NUMA nodes by itself."""
    facts = case.machine.facts
    nodes = case.machine.of_kind(DeviceKind.NUMA)
    if len(nodes) < 2 or not is_true(facts, "numa_balancing"):
        return
    yield Finding(
        rule="numa-balancing-on",
        severity=Severity.WARNING,
        devices=tuple(node.id for node in nodes),
        observation=f"Automatic NUMA balancing is on, with {len(nodes)} NUMA nodes.",
        diagnosis="The kernel unmaps pages to see who touches them and moves them while programs run. Programs that "
        "place their memory themselves (pinned ranks, first touch) only pay for it.",
        remedy="Where jobs are pinned, turn it off: `sudo sysctl kernel.numa_balancing=0`",
        evidence=cite_best(facts, "numa_balancing"),
    )


def clock_source(case: Case) -> Iterator[Finding]:
    """Fires where an x86 machine reads the time from anything but its time stamp counter."""
    facts = case.machine.facts
    source = facts.text("clocksource")
    vendors = {device.facts.text("vendor") for device in case.machine.of_kind(DeviceKind.PACKAGE)}
    is_x86 = any(vendor and ("intel" in vendor.lower() or "amd" in vendor.lower()) for vendor in vendors)
    if source is None or source == "tsc" or not is_x86:
        return
    paravirtual = source in ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")
    # The clocks of hypervisors are read in user space too; only a device behind a bus costs a microsecond a call.
    yield Finding(
        rule="clock-source-not-tsc",
        severity=Severity.INFO if paravirtual else Severity.WARNING,
        devices=(),
        observation=f"The kernel's clock source is {source}, not tsc.",
        diagnosis="A clock of the hypervisor: reading it is nearly as cheap as the time stamp counter, and it follows "
        "the host's corrections."
        if paravirtual
        else "Reading the time is a system call or a bus access of about 1 µs instead of 20 ns. Programs that time "
        "small steps, and MPI libraries that poll with timers, run slower. Often the kernel found the time stamp "
        "counter unstable at boot.",
        remedy="See which are offered with `cat /sys/devices/system/clocksource/clocksource0/available_clocksource`, "
        "and whether the kernel rejected tsc with `sudo dmesg | grep -i tsc`",
        evidence=cite_best(facts, "clocksource"),
    )
