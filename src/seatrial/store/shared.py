"""Documents and outcomes in little memory: equal ones are one object."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from seatrial.model.results.outcome import Outcome, Stage, State

_PARSED = 32
"""Documents that stay parsed."""


class KeptDocuments(Mapping[str, Mapping[str, Any]]):
    """Key -> document, compressed until it is used. The documents were checked before."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._parsed: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    def keep(self, key: str, document: Mapping[str, Any]) -> None:
        """Add a document, or replace it."""
        self._parsed.pop(key, None)
        self._packed[key] = zlib.compress(msgspec.json.encode(document), 1)

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        found = self._parsed.get(key)
        if found is None:
            found = self._parsed[key] = msgspec.json.decode(zlib.decompress(self._packed[key]))
            if len(self._parsed) > _PARSED:
                self._parsed.popitem(last=False)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


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
