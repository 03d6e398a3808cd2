"""A finding: what was observed, what it means, what to do about it, and the evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Hidden, Keywords, Later, Text, published
from seatrial.model.machine.fact import FactValue


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


@published("Cause")
class NamedCause(Frozen):
    """A cause, and the share of the time that it explains (null: not measured).

    Its name is one of a closed set, `share` is 0..1.
    """

    cause: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    share: Annotated[float | None, Keywords(minimum=0, maximum=1)]


class Finding(Frozen):
    """A problem, what it means, and what to do about it.

    `remedy` contains a command if there is one. `loss` is the share of a figure that it costs, 0..1, if known; findings
    are sorted by it. `aims` is what the remedy changes: none of them may be a fact already. `causes` are the values
    behind the sentences, the main one first.
    """

    rule: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    severity: Severity
    devices: Annotated[tuple[str, ...], Keywords(uniqueItems=True)]
    observation: Text
    diagnosis: Text
    remedy: Text
    evidence: Text
    loss: Later[Annotated[float | None, Keywords(exclusiveMinimum=0, maximum=1)]] = None
    aims: Hidden[tuple[Aim, ...]] = ()
    causes: Later[tuple[NamedCause, ...]] = ()
