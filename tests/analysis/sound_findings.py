"""What must hold of all findings about a machine, whatever the rule."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules import findings
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine


def unsound(machine: Machine) -> list[str]:
    """Sentences about findings that ask for what is so, contradict each other or themselves."""
    found = findings(machine, ())
    return [*_already_so(machine, found), *_opposed(found), *_of_no_loss(found)]


def _already_so(machine: Machine, found: tuple[Finding, ...]) -> Iterator[str]:
    for finding in found:
        for aim in finding.aims:
            device = machine.device(aim.device)
            facts = machine.facts if device is None else device.facts
            fact = facts.best(aim.fact)
            if fact is None:
                yield f"{finding.rule}: changes {aim.device} {aim.fact}, which is unknown"
            elif fact.value == aim.value:
                yield f"{finding.rule}: {aim.device} {aim.fact} is {aim.value} already"
    kernel = (machine.facts.text("kernel_parameters") or "").split()
    for finding in found:
        for word in kernel:
            if f"boot with `{word}`" in finding.remedy.lower():
                yield f"{finding.rule}: the kernel runs with {word} already"


def _opposed(found: tuple[Finding, ...]) -> Iterator[str]:
    aims: dict[tuple[str, str], dict[object, str]] = {}
    for finding in found:
        for aim in finding.aims:
            aims.setdefault((aim.device, aim.fact), {})[aim.value] = finding.rule
    for (device, fact), values in aims.items():
        if len(values) > 1:
            yield f"{' and '.join(values.values())} want different values of {device} {fact}"


def _of_no_loss(found: tuple[Finding, ...]) -> Iterator[str]:
    for finding in found:
        if finding.severity is Severity.INFO and finding.loss is not None:
            yield f"{finding.rule}: a note that costs {finding.loss:.0%}"
        if finding.loss is not None and "nothing is" in f"{finding.diagnosis} {finding.remedy}".lower():
            yield f"{finding.rule}: costs {finding.loss:.0%}, and nothing is lost or wrong"
