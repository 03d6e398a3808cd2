"""An export without hosts, users, serial numbers and paths: each is replaced by a name such as "host-1", always the
same one, so that rows of one host still belong together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.model.results.exported import Exported, ExportedRow, ExportedVerdict

_PATH = re.compile(r"(?:[A-Za-z]+://|~|\.{0,2}/|[A-Za-z]:\\)[^\s\"'=,;]*|[\w.+-]+(?:/[\w.+-]+)+", re.ASCII)
_UNITS = frozenset({"B/s", "flop/s", "op/s", "flop/J", "op/J", "bit/s"})
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b|[\w.+-]+@[\w.-]+")
_LEAST = 3
"""Shorter words than this are replaced only where they are a whole value: others would be found everywhere."""


class Anonymizer:
    """Replaces what identifies somebody. `known`: kind -> words that occur in the results."""

    def __init__(self, known: Mapping[str, Iterable[str]]) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, str] = {}
        for kind in ("serial", "user", "host"):
            for word in known.get(kind, ()):
                for part in {word, word.split(".")[0]}:
                    if part.strip():
                        self._kinds[part] = kind
        words = sorted((re.escape(word) for word in self._kinds if len(word) >= _LEAST), key=len, reverse=True)
        self._words = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(words)})(?![A-Za-z0-9])") if words else None

    def exported(self, found: Exported) -> Exported:
        """The same without identifying words."""
        return Exported(tuple(map(self._row, found.rows)), tuple(map(self._verdict, found.verdicts)))

    def text(self, text: str) -> str:
        """A text without paths, addresses and known words."""
        if text in self._kinds:
            return self._name(self._kinds[text], text)
        text = _PATH.sub(lambda match: match[0] if match[0] in _UNITS else self._name("path", match[0]), text)
        text = _ADDRESS.sub(lambda match: self._name("address", match[0]), text)
        if self._words is not None:
            text = self._words.sub(lambda match: self._name(self._kinds[match[0]], match[0]), text)
        return text

    def _row(self, row: ExportedRow) -> ExportedRow:
        return replace(
            row,
            experiment=self._name("experiment", row.experiment),  # a hash of what is left out could be guessed
            environment=self._name("environment", row.environment) if row.environment else "",
            machine=self._name("host", row.machine) if row.machine else "",
            parameters=self._parameters(row.parameters),
            figure=self.text(row.figure),
            figure_parameters=self._parameters(row.figure_parameters),
            reason=row.reason.partition(":")[0] if ":" in row.reason else row.outcome,
            evidence="",
            remarks=self.text(row.remarks),
        )

    def _verdict(self, verdict: ExportedVerdict) -> ExportedVerdict:
        return replace(verdict, what=self.text(verdict.what), detail=self.text(verdict.detail))

    def _parameters(self, text: str) -> str:
        return json.dumps({name: self._value(value) for name, value in json.loads(text).items()}, ensure_ascii=False)

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):  # a command: its words may be anything, but options and numbers
            return [word if _is_plain(word) else self._name("word", word) for word in value]
        return self.text(value) if isinstance(value, str) else value

    def _name(self, kind: str, word: str) -> str:
        key = (kind, word)
        if key not in self._names:
            n = sum(known == kind for known, _ in self._names) + 1
            self._names[key] = f"{kind}-{n}"
        return self._names[key]


def _is_plain(word: str) -> bool:
    return (
        re.fullmatch(r"-{1,2}[A-Za-z][A-Za-z-]{0,15}|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?[A-Za-z]{0,3}", word) is not None
    )
