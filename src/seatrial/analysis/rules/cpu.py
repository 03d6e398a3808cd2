"""Rules about the processors: boost, hardware threads, mitigations."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best, cpu_facts, device_number, is_false, is_true
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Aim, Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count, show


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
    yield Finding(
        rule="boost-off",
        severity=Severity.WARNING,
        devices=tuple(package.id for package in case.machine.of_kind(DeviceKind.PACKAGE)),
        observation=f"Boost (turbo) is off: cores stay at their base clock{clocks}.",
        diagnosis="Intended if runs must be repeatable or power is capped. Otherwise it lowers every figure that "
        "depends on the clock, most of all those of one core.",
        remedy=f"Unless this is intended: `{command}`",
        evidence=cite_best(facts, "boost"),
        loss=loss,
        aims=(Aim("boost", True),),
    )


def smt_on(case: Case) -> Iterator[Finding]:
    """Fires if several CPUs share a core, which matters for every choice of ranks and threads."""
    machine = case.machine
    cores, pus = machine.of_kind(DeviceKind.CORE), machine.of_kind(DeviceKind.PU)
    if not is_true(machine.facts, "smt_active") or not cores or len(pus) <= len(cores):
        return
    yield Finding(
        rule="smt-on",
        severity=Severity.INFO,
        devices=(),
        observation=f"SMT is on: {len(pus)} CPUs on {count(len(cores), 'core')}.",
        diagnosis="Threads on one core share its FMA units and caches. Programs that fill the core gain nothing from "
        "another thread and can become slower; a count of CPUs is not a count of cores.",
        remedy="Start one rank or thread per core: `OMP_PLACES=cores OMP_PROC_BIND=close`, or `mpirun --bind-to core`",
        evidence=cite_best(machine.facts, "smt_active"),
    )


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
    yield Finding(
        rule="cpu-vulnerable",
        severity=Severity.INFO,
        devices=(),
        observation=f"The kernel reports {count(len(names), 'CPU vulnerability', 'CPU vulnerabilities')} without "
        f"mitigation: {listed(names)}.",
        diagnosis="System calls and context switches may be cheaper here than on nodes that mitigate them, so compare "
        "I/O and message rates with care. Whether this is acceptable is a security decision.",
        remedy="List all vulnerabilities: `grep . /sys/devices/system/cpu/vulnerabilities/*`",
        evidence=f"mitigations ({fact.source})",
    )
