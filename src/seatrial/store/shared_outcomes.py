"""Equal outcomes of many records as one object."""

from __future__ import annotations

from typing import Protocol

from seatrial.model.outcome import Outcome, Stage, State

_MOST = 20_000
"""Outcomes that are kept. Reasons that differ in every repeat would otherwise fill the table."""


class OutcomeFields(Protocol):
    """The fields of a record's line that make its outcome."""

    outcome: State
    reason: str
    evidence: str
    stage: Stage | None
    check: str


class SharedOutcomes:
    """Makes outcomes, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Outcome] = {}

    def of(self, line: OutcomeFields) -> Outcome:
        """The outcome in a line."""
        key = (line.outcome, line.reason, line.evidence, line.stage or "", line.check)
        known = self._known.get(key)
        if known is None:
            known = Outcome(line.outcome, line.reason, line.evidence, line.stage, line.check)
            if len(self._known) < _MOST:
                self._known[key] = known
        return known
