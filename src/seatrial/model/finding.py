"""A finding: what was observed, what it means, what to do about it, and the evidence."""

from __future__ import annotations

from enum import StrEnum

from seatrial.model.fact import FactValue
from seatrial.model.frozen import Frozen


class Severity(StrEnum):
    """How serious a finding is; INFO is shown as "note"."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Aim(Frozen):
    """The value that a fact of a device (of the machine if `device` is "") has once a remedy is done."""

    fact: str
    value: FactValue
    device: str = ""


class NamedCause(Frozen):
    """A cause by its name in a closed set, and the share of the time that it explains, 0..1; None: not measured."""

    cause: str
    share: float | None


class Finding(Frozen):
    """One finding; `remedy` contains a command if there is one. `loss` is the share of a figure that it costs, 0..1, if
    known; findings are sorted by it. `aims` is what the remedy changes: none of them may be a fact already. `causes`
    are the values behind the sentences, the main one first."""

    rule: str
    severity: Severity
    devices: tuple[str, ...]
    observation: str
    diagnosis: str
    remedy: str
    evidence: str
    loss: float | None = None
    aims: tuple[Aim, ...] = ()
    causes: tuple[NamedCause, ...] = ()
