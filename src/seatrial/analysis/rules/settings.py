"""Rules about settings of the processors and the operating system that change performance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from seatrial.analysis.rules.finding import (
    Case,
    Subject,
    cite,
    cite_best,
    cpu_facts,
    device_number,
    finding,
    is_false,
    is_true,
    listed,
    note,
    rule,
    warning,
)
from seatrial.model.machine.fact import Aim, Finding, Severity
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.spelling import count, show

_SELF_GOVERNING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers under which the processor chooses its clock itself; `powersave` is then the default and costs less."""
_AS_FAST = 0.99
_LONG_S = 20e-6
"""Some ten times the latency of a message between nodes; C1 and C1E take less on all server processors."""
_SHALLOW = re.compile(r"(POLL|C1E?|WFI|haltpoll.*)([_-].*)?\Z")


@rule(Subject.SETTINGS)
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
    yield warning(
        "governor-not-performance",
        devices=(device.id for device, _ in others),
        observation=f"The frequency governor is {listed(names)} on {len(others)} of {count(len(governors), 'CPU')}.",
        diagnosis=means,
        remedy="Set it during measurements: `sudo cpupower frequency-set -g performance`",
        evidence=cite("governor", others[0][1])
        + (f"; frequency_driver = {listed(sorted(drivers))}" if drivers else ""),
        aims=tuple(Aim("governor", "performance", device.id) for device, _ in others),
    )


@rule(Subject.SETTINGS)
def boost_off(case: Case) -> Iterator[Finding]:
    """Fires if the processor may not exceed its base clock."""
    facts = case.machine.facts
    if not is_false(facts, "boost"):
        return
    base = device_number(cpu_facts(case.machine, "base_frequency"))
    highest = device_number(cpu_facts(case.machine, "max_frequency"))
    loss = 1 - base / highest if base and highest and highest > 1.01 * base else None
    intel = any("intel_pstate" in str(fact.value) for _, fact in cpu_facts(case.machine, "frequency_driver"))
    command = (
        "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
        if intel
        else "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    )
    clocks = f" ({show(base, 'Hz')} instead of up to {show(highest, 'Hz')})" if loss and base and highest else ""
    yield warning(
        "boost-off",
        devices=case.machine.of_kind(DeviceKind.PACKAGE),
        observation=f"Boost (turbo) is off: cores stay at their base clock{clocks}.",
        diagnosis="Intended if runs must be repeatable or power is capped. Otherwise it lowers every figure that "
        "depends on the clock, most of all those of one core.",
        remedy=f"Unless this is intended: `{command}`",
        evidence=cite_best(facts, "boost"),
        loss=loss,
        aims=(Aim("boost", True),),
    )


@rule(Subject.SETTINGS)
def clock_limited(case: Case) -> Iterator[Finding]:
    """Fires if CPUs may not reach their highest clock although boost is not off, which `boost_off` reports."""
    pus = case.machine.of_kind(DeviceKind.PU)
    clocks = [(pu, pu.facts.number("allowed_max_frequency"), pu.facts.number("max_frequency")) for pu in pus]
    limited = [(pu, now, highest) for pu, now, highest in clocks if now and highest and now < _AS_FAST * highest]
    if not limited or is_false(case.machine.facts, "boost"):
        return
    worst, allowed, highest = min(limited, key=lambda entry: entry[1] / entry[2])
    yield warning(
        "clock-limited",
        devices=(pu.id for pu, _, _ in limited),
        observation=f"{len(limited)} of {count(len(pus), 'CPU')} may run at {show(allowed, 'Hz')} at most, of "
        f"{show(highest, 'Hz')} that the processor can reach.",
        diagnosis="Intended if runs must be repeatable or power is capped. Otherwise it lowers every figure that "
        "depends on the clock.",
        remedy=f"Unless this is intended: `sudo cpupower frequency-set -u {highest / 1e6:.0f}MHz`",
        evidence=(cite_best(worst.facts, "allowed_max_frequency"), cite_best(worst.facts, "max_frequency")),
        loss=1 - allowed / highest,
        aims=(Aim("allowed_max_frequency", highest, pu.id) for pu, _, highest in limited),
    )


@rule(Subject.SETTINGS)
def smt_on(case: Case) -> Iterator[Finding]:
    """Fires if several CPUs share a core, which matters for every choice of ranks and threads."""
    machine = case.machine
    cores, pus = machine.of_kind(DeviceKind.CORE), machine.of_kind(DeviceKind.PU)
    if not is_true(machine.facts, "smt_active") or not cores or len(pus) <= len(cores):
        return
    yield note(
        "smt-on",
        observation=f"SMT is on: {len(pus)} CPUs on {count(len(cores), 'core')}.",
        diagnosis="Threads on one core share its FMA units and caches. Programs that fill the core gain nothing from "
        "another thread and can become slower; a count of CPUs is not a count of cores.",
        remedy="Start one rank or thread per core: `OMP_PLACES=cores OMP_PROC_BIND=close`, or `mpirun --bind-to core`",
        evidence=cite_best(machine.facts, "smt_active"),
    )


@rule(Subject.SETTINGS)
def huge_pages_never(case: Case) -> Iterator[Finding]:
    """Fires if transparent huge pages are off, even for programs that request them."""
    facts = case.machine.facts
    if facts.text("thp_enabled") != "never":
        return
    yield warning(
        "huge-pages-never",
        observation="Transparent huge pages are off (`never`).",
        diagnosis="Programs that request 2 MiB pages get 4 KiB pages: more TLB misses when large arrays are accessed "
        "at random or in many streams.",
        remedy="Allow them on request: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        evidence=cite_best(facts, "thp_enabled"),
        aims=(Aim("thp_enabled", "madvise"),),
    )


@rule(Subject.SETTINGS)
def numa_balancing(case: Case) -> Iterator[Finding]:
    """Fires if the kernel migrates pages between several NUMA nodes automatically."""
    facts = case.machine.facts
    nodes = case.machine.of_kind(DeviceKind.NUMA)
    if len(nodes) < 2 or not is_true(facts, "numa_balancing"):
        return
    yield warning(
        "numa-balancing-on",
        devices=nodes,
        observation=f"Automatic NUMA balancing is on, with {len(nodes)} NUMA nodes.",
        diagnosis="The kernel unmaps pages to detect which CPUs use them, and migrates them while programs run. For "
        "programs that place their memory themselves (pinned ranks, first touch), this is only overhead.",
        remedy="If jobs are pinned, turn it off: `sudo sysctl kernel.numa_balancing=0`",
        evidence=cite_best(facts, "numa_balancing"),
        aims=(Aim("numa_balancing", 0),),
    )


@rule(Subject.SETTINGS)
def zone_reclaim(case: Case) -> Iterator[Finding]:
    """Fires if a full NUMA node frees its page cache before it takes memory of another node."""
    facts = case.machine.facts
    nodes = case.machine.of_kind(DeviceKind.NUMA)
    if len(nodes) < 2 or not facts.number("zone_reclaim_mode"):
        return
    yield warning(
        "zone-reclaim-on",
        devices=nodes,
        observation=f"A NUMA node that is full frees its own memory before another of the {len(nodes)} nodes is used.",
        diagnosis="Programs may wait while cached files are dropped, though other nodes have free memory. Intended for "
        "programs whose parts each fit into a node (kernel documentation, sysctl/vm).",
        remedy="Unless this is intended: `sudo sysctl vm.zone_reclaim_mode=0`",
        evidence=cite_best(facts, "zone_reclaim_mode"),
        aims=(Aim("zone_reclaim_mode", 0),),
    )


@rule(Subject.SETTINGS)
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
    yield finding(
        "clock-source-not-tsc",
        severity=Severity.INFO if paravirtual else Severity.WARNING,
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


@rule(Subject.SETTINGS, of_hardware=True)
def deep_idle(case: Case) -> Iterator[Finding]:
    """Fires if idle CPUs enter states that they leave slowly: normal, but it affects latencies."""
    facts = case.machine.facts
    latency = facts.number("idle_exit_latency")
    if latency is None or latency <= _LONG_S:
        return
    off = (facts.text("idle_states_off") or "").split()
    states = [state for state in (facts.text("idle_states") or "").split() if state not in off]
    name = f" ({states[-1]})" if states else ""
    yield note(
        "idle-states-deep",
        observation=f"Idle CPUs may enter a state{name} that takes {show(latency, 's')} to leave.",
        diagnosis="The default, and right for throughput: idle cores leave power to the others. A wait that ends after "
        "an idle time (an interrupt, a sleeping thread) takes this much longer; waits that poll, as most MPI libraries "
        "do, are not affected.",
        remedy="Where latency counts, turn off the states above 10 µs while measuring: `sudo cpupower idle-set -D 10`; "
        "undo it with `sudo cpupower idle-set -E`",
        evidence=(cite_best(facts, "idle_exit_latency"), cite_best(facts, "idle_states")),
        aims=(Aim("idle_exit_latency", 10e-6),),
    )


@rule(Subject.SETTINGS, of_hardware=True)
def deep_idle_off(case: Case) -> Iterator[Finding]:
    """Fires if idle states were turned off: idle cores then use power that others could use."""
    facts = case.machine.facts
    if (facts.number("idle_exit_latency") or 0.0) > _LONG_S:
        return
    off = [state for state in (facts.text("idle_states_off") or "").split() if not _SHALLOW.match(state)]
    words = (facts.text("kernel_parameters") or "").split()
    limits = [
        word
        for word in words
        if word in ("idle=poll", "idle=halt", "cpuidle.off=1") or word.partition("=")[0].endswith(".max_cstate")
    ]
    if not off and not limits:
        return
    how = [*(f"state {state} is off" for state in off), *(f"the kernel runs with `{word}`" for word in limits)]
    polls = "idle=poll" in limits
    yield finding(
        "idle-states-off",
        severity=Severity.WARNING if polls else Severity.INFO,
        observation=f"Idle states of the CPUs are limited: {'; '.join(how)}.",
        diagnosis="Idle CPUs poll: they take execution units from the other thread of their core, and power from all "
        "other cores, which then boost less."
        if polls
        else "Good for latency. Idle cores use more power, so a few busy cores boost less than they could.",
        remedy="Intended if latency counts more than the clock of few busy cores. Otherwise "
        + (
            "boot without " + ", ".join(f"`{word}`" for word in limits)
            if limits
            else "turn the states on again: `sudo cpupower idle-set -E`"
        ),
        evidence=(
            cite_best(facts, "idle_states_off") if off else "",
            cite_best(facts, "kernel_parameters") if limits else "",
        ),
    )


@rule(Subject.SETTINGS)
def unmitigated(case: Case) -> Iterator[Finding]:
    """Fires if the kernel reports an unmitigated vulnerability: this node may then be faster than mitigated ones.

    Active mitigations are normal and not a finding.
    """
    fact = case.machine.facts.best("mitigations")
    if fact is None:
        return
    states = (state.partition(":") for state in str(fact.value).replace("\n", ";").split(";"))
    names = [name.strip() for name, _, state in states if state.strip().startswith("Vulnerable")]
    if not names:
        return
    yield note(
        "cpu-vulnerable",
        observation=f"The kernel reports {count(len(names), 'CPU vulnerability', 'CPU vulnerabilities')} without "
        f"mitigation: {listed(names)}.",
        diagnosis="System calls and context switches may be cheaper here than on nodes that mitigate them, so compare "
        "I/O and message rates with care. Whether this is acceptable is a security decision.",
        remedy="List all vulnerabilities: `grep . /sys/devices/system/cpu/vulnerabilities/*`",
        evidence=f"mitigations ({fact.source})",
    )
