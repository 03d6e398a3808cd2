"""How a rule states a finding, and how it is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import partial

from seatrial.analysis.rules.case import Case
from seatrial.model.machine.finding import Aim, Finding, NamedCause, Severity
from seatrial.model.machine.machine import Device

Rule = Callable[[Case], Iterable[Finding]]


class Subject(Enum):
    """What rules are about, a file each. Findings that are alike in loss and severity are in this order, those of one
    subject in that of their rules in the file."""

    OUTCOMES = auto()
    LIBRARIES = auto()
    LIMITS = auto()
    STEADINESS = auto()
    WAITING = auto()
    LINK_COUNTERS = auto()
    SETTINGS = auto()
    MEMORY_SIZES = auto()
    MEMORY_MODULES = auto()
    MEMORY_KINDS = auto()
    MEMORY_ERRORS = auto()
    MEASURED_LINKS = auto()
    LINKS = auto()
    SIBLINGS = auto()
    UPLINKS = auto()
    COPIES = auto()
    PCIE_SETTINGS = auto()
    GPU_LINKS = auto()
    MISPLACED = auto()
    DISTANCES = auto()
    PORTS = auto()
    SOCKETS = auto()
    PLACES = auto()
    SURROUNDINGS = auto()


registered: dict[Subject, list[Rule]] = {subject: [] for subject in Subject}
"""The rules of each subject, in the order in which its file defines them."""


def rule(subject: Subject) -> Callable[[Rule], Rule]:
    """Registers a rule of that subject."""

    def register(function: Rule) -> Rule:
        registered[subject].append(function)
        return function

    return register


def finding(
    rule: str,
    *,
    severity: Severity,
    observation: str,
    diagnosis: str,
    remedy: str,
    evidence: str | Iterable[str],
    devices: Iterable[Device | str] = (),
    loss: float | None = None,
    aims: Iterable[Aim] = (),
    causes: tuple[NamedCause, ...] = (),
) -> Finding:
    """A finding under the name `rule`. It names each of `devices` once; empty parts of `evidence` are left out."""
    return Finding(
        rule,
        severity,
        tuple(dict.fromkeys(device if isinstance(device, str) else device.id for device in devices)),
        observation,
        diagnosis,
        remedy,
        evidence if isinstance(evidence, str) else "; ".join(filter(None, evidence)),
        loss,
        tuple(aims),
        causes,
    )


note = partial(finding, severity=Severity.INFO)
warning = partial(finding, severity=Severity.WARNING)
error = partial(finding, severity=Severity.ERROR)
