"""Fast decoding of the lines of record files.

The record of a repeat is mostly what all repeats of its experiment have in common: libraries, variables, the command.
Each such value is decoded once and all records refer to the same object, so that many repeats take little memory.
Samples are checked but not kept: `StoredSamples` reads them again.

`seatrial.model.record.decode` defines what a valid record is. It decodes every line that is not of the usual form.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from seatrial.errors import ProtocolError
from seatrial.model.outcome import Outcome, Stage, State
from seatrial.model.record import RECORD_VERSION, RepeatRecord, crc_tail, decode
from seatrial.store.stored_samples import RecordFile, StoredSamples

_MOST_SHARED = 20_000
"""Values kept for sharing. Values that differ in every repeat would otherwise fill the table."""
_DEEPEST_SHARED = 3
_TAIL = len(crc_tail(b""))


class _Line(msgspec.Struct, gc=False):
    """A record as `seatrial.model.record.encode` writes it."""

    v: int
    experiment: str
    repeat: int
    order: int
    t0: int | float
    wall_s: int | float
    outcome: str
    reason: str
    evidence: str
    stage: str | None
    check: str
    seen: dict[str, msgspec.Raw]
    samples: msgspec.Raw
    checks: msgspec.Raw


class _Columns(msgspec.Struct, gc=False):
    """The samples of one series, point and rank, as `seatrial.model.sample.pack` makes them."""

    series: str
    point: dict[str, Any]
    rank: int
    n: int
    i: list[int]
    elapsed_s: list[int | float] | dict[str, int | float]
    work: dict[str, list[Any] | dict[str, Any]]
    extra: dict[str, list[Any] | dict[str, Any]]


class Seen(Mapping[str, Any]):
    """What was observed around a repeat. Records with the same names share them."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Mapping[str, int], values: tuple[Any, ...]) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._names[name]]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of that name, or the default."""
        place = self._names.get(name)
        return default if place is None else self._values[place]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))


class LineDecoder:
    """Decodes the lines of all record files of a folder, and shares equal values among their records."""

    def __init__(self) -> None:
        self._line = msgspec.json.Decoder(_Line)
        self._columns = msgspec.json.Decoder(list[_Columns])
        self._any = msgspec.json.Decoder()
        self._mapping = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._texts = msgspec.json.Decoder(list[str])
        self._list = msgspec.json.Decoder(list[msgspec.Raw])
        self._shared: dict[bytes, Any] = {}
        self._words: dict[str, str] = {}
        self._names: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._outcomes: dict[tuple[str, ...], Outcome] = {}

    def decode(self, line: bytes, file: RecordFile, offset: int) -> RepeatRecord:
        """The record in the line at this offset of a file. Raises ProtocolError if the checksum or the form is
        wrong."""
        body = memoryview(line)[:-_TAIL]
        if line[-_TAIL:] != crc_tail(body):
            raise ProtocolError("the checksum of a record is wrong")
        try:
            found = self._line.decode(line)
            if found.v == RECORD_VERSION:
                return self._record(found, line, file, offset)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # not of the usual form
        return decode(line)

    def _record(self, found: _Line, line: bytes, file: RecordFile, offset: int) -> RepeatRecord:
        packed = bytes(found.samples)
        n = self._n_samples(packed)
        checks = self._value(bytes(found.checks), 1)
        if not isinstance(checks, dict):
            raise ValueError("checks are an object")
        return RepeatRecord(
            self._word(found.experiment),
            found.repeat,
            found.order,
            found.t0,
            found.wall_s,
            self._outcome(found),
            StoredSamples(file, offset + line.index(packed), len(packed), zlib.crc32(packed), n) if n else (),
            checks,
            self._seen(found.seen),
        )

    def _n_samples(self, packed: bytes) -> int:
        """The number of samples. Raises ValueError if a column has another length than it states."""
        total = 0
        for group in self._columns.decode(packed):
            n = group.n
            if len(group.i) != n:
                raise ValueError("the length of a column is wrong")
            for column in (group.elapsed_s, *group.work.values(), *group.extra.values()):
                if len(column) != n if isinstance(column, list) else "all" not in column:
                    raise ValueError("the length of a column is wrong")
            total += n
        return total

    def _outcome(self, found: _Line) -> Outcome:
        key = (found.outcome, found.reason, found.evidence, found.stage or "", found.check)
        known = self._outcomes.get(key)
        if known is None:
            known = Outcome(
                State(found.outcome),
                found.reason,
                found.evidence,
                Stage(found.stage) if found.stage else None,
                found.check,
            )
            if len(self._outcomes) < _MOST_SHARED:
                self._outcomes[key] = known
        return known

    def _seen(self, found: dict[str, msgspec.Raw]) -> Seen:
        shared, values = self._shared, []
        for raw in found.values():
            text = bytes(raw)
            value = shared.get(text)
            values.append(self._value(text, _DEEPEST_SHARED) if value is None else value)
        order = tuple(found)
        names = self._names.get(order)
        if names is None:
            names = {name: place for place, name in enumerate(order)}
            if len(self._names) < _MOST_SHARED:
                self._names[order] = names
        return Seen(names, tuple(values))

    def _list_of(self, text: bytes, depth: int) -> list[Any]:
        """A list that begins with a text, such as a command."""
        words = self._words
        try:
            return [words.get(word) or self._word(word) for word in self._texts.decode(text)]
        except msgspec.ValidationError:
            return [self._value(bytes(raw), depth - 1) for raw in self._list.decode(text)]

    def _word(self, word: str) -> str:
        if len(self._words) >= _MOST_SHARED:
            self._words.clear()
        return self._words.setdefault(word, word)

    def _value(self, text: bytes, depth: int) -> Any:
        """The value of a JSON text: the shared one, if it was decoded before. Numbers are not shared."""
        value = self._shared.get(text)
        if value is not None:
            return value
        start = text[:1]
        if start == b"{" and depth:
            pairs = self._mapping.decode(text).items()
            value = {self._word(name): self._value(bytes(raw), depth - 1) for name, raw in pairs}
        elif text[:2] == b'["' and depth:
            value = self._list_of(text, depth)
        else:
            value = self._any.decode(text)
            if start not in (b"{", b"[", b'"'):
                return value
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        self._shared[text] = value
        return value
