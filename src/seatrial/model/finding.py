"""A finding: what is wrong, what it means, what to do about it, and how we know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `remedy` holds a command where there is one. `loss` is the share of a figure that it costs, 0..1,
    where that is known: findings are shown in its order."""

    rule: str
    severity: Severity
    devices: tuple[str, ...]
    observation: str
    diagnosis: str
    remedy: str
    evidence: str
    loss: float | None = None
