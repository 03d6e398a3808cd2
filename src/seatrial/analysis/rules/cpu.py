"""Rules about the processors: boost, hardware threads, mitigations."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best, cpu_facts, device_number, is_false, is_true
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind
from seatrial.model.spelling import count, show


def boost_off(case: Case) -> Iterator[Finding]:
    """Fires where the processor may not go above its base clock."""
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
        diagnosis="Right where runs must be repeatable or power is capped. Elsewhere it costs every figure that "
        "follows the clock, most of all those of one core.",
        remedy=f"If nobody turned it off on purpose: `{command}`",
        evidence=cite_best(facts, "boost"),
        loss=loss,
    )


def smt_on(case: Case) -> Iterator[Finding]:
    """Says how many CPUs share a core, which every choice of ranks and threads rests on."""
    machine = case.machine
    cores, pus = machine.of_kind(DeviceKind.CORE), machine.of_kind(DeviceKind.PU)
    if not is_true(machine.facts, "smt_active") or not cores or len(pus) <= len(cores):
        return
    yield Finding(
        rule="smt-on",
        severity=Severity.INFO,
        devices=(),
        observation=f"SMT is on: the {len(pus)} CPUs are {count(len(cores), 'core')}.",
        diagnosis="Two threads on one core share its FMA units and caches. Programs that fill the core gain nothing "
        "from the second thread and can lose to it; a count of CPUs is not a count of cores.",
        remedy="Start one rank or thread for each core: `OMP_PLACES=cores OMP_PROC_BIND=close`, or `mpirun --bind-to "
        "core`",
        evidence=cite_best(machine.facts, "smt_active"),
    )


def unmitigated(case: Case) -> Iterator[Finding]:
    """Fires where the kernel calls a vulnerability unmitigated: figures then flatter this node beside its fleet.

    Mitigations that are in place are the ordinary state of a machine and not worth a finding.
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
        "I/O and message rates with care; whether it is acceptable is a matter of security.",
        remedy="See all of them: `grep . /sys/devices/system/cpu/vulnerabilities/*`",
        evidence=f"mitigations ({fact.source})",
    )
