"""Rules about the idle states of the processors (C-states)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import is_virtual
from seatrial.model.finding import Aim, Finding, Severity
from seatrial.model.spelling import show

_LONG_S = 20e-6
"""Some ten times the latency of a message between nodes; C1 and C1E take less on all server processors."""
_SHALLOW = re.compile(r"(POLL|C1E?|WFI|haltpoll.*)([_-].*)?\Z")


def deep_idle(case: Case) -> Iterator[Finding]:
    """Fires if idle CPUs enter states that they leave slowly: normal, but it affects latencies."""
    facts = case.machine.facts
    latency = facts.number("idle_exit_latency")
    if latency is None or latency <= _LONG_S or is_virtual(case.machine):
        return
    off = (facts.text("idle_states_off") or "").split()
    states = [state for state in (facts.text("idle_states") or "").split() if state not in off]
    name = f" ({states[-1]})" if states else ""
    yield Finding(
        rule="idle-states-deep",
        severity=Severity.INFO,
        devices=(),
        observation=f"Idle CPUs may enter a state{name} that takes {show(latency, 's')} to leave.",
        diagnosis="The default, and right for throughput: idle cores leave power to the others. A wait that ends after "
        "an idle time (an interrupt, a sleeping thread) takes this much longer; waits that poll, as most MPI libraries "
        "do, are not affected.",
        remedy="Where latency counts, turn off the states above 10 µs while measuring: `sudo cpupower idle-set -D 10`; "
        "undo it with `sudo cpupower idle-set -E`",
        evidence="; ".join(filter(None, (cite_best(facts, "idle_exit_latency"), cite_best(facts, "idle_states")))),
        aims=(Aim("idle_exit_latency", 10e-6),),
    )


def deep_idle_off(case: Case) -> Iterator[Finding]:
    """Fires if idle states were turned off: idle cores then use power that others could use."""
    facts = case.machine.facts
    if is_virtual(case.machine) or (facts.number("idle_exit_latency") or 0.0) > _LONG_S:
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
    yield Finding(
        rule="idle-states-off",
        severity=Severity.WARNING if polls else Severity.INFO,
        devices=(),
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
        evidence="; ".join(
            filter(
                None,
                (
                    cite_best(facts, "idle_states_off") if off else "",
                    cite_best(facts, "kernel_parameters") if limits else "",
                ),
            )
        ),
    )
