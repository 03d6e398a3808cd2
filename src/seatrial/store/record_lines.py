"""Fast decoding of the lines of record files.

The record of a repeat is mostly what all repeats of its experiment have in common: libraries, variables, the command.
Each such value is decoded and checked once and all records refer to the same object, so that many repeats take little
memory. Samples are checked but not kept: `StoredSamples` reads them again.

`model.results.record.decode` defines what a valid record is. It decodes every line that is not of the usual form: as
`encode` writes it, without spaces. msgspec keeps the last one of equal keys, where `decode` refuses the line; so each
object's keys are counted in the text, too.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from seatrial.errors import ProtocolError
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import LARGEST, parse_json
from seatrial.model.results.record import RepeatRecord, crc_tail, decode
from seatrial.model.results.record_shape import SEEN
from seatrial.model.results.sample import Outcome, SampleColumns, Stage, State
from seatrial.store.stored_samples import KEY, RecordFile, StoredSamples, checked_groups, has_spaces

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


_MOST_SHARED = 20_000
"""Values kept for sharing. Values that differ in every repeat would otherwise fill the table."""
_LONGEST_SHARED_B = 1 << 16
_TAIL = len(crc_tail(b""))
_SAMPLES, _CHECKS = b',"samples":', b',"checks":'
"""Before the samples of a line, and after them."""

_Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class OutcomeFields(msgspec.Struct, gc=False):
    """The fields of a record's line that make its outcome."""

    outcome: State
    reason: str
    evidence: str
    stage: Stage | None
    check: str


class _Line(OutcomeFields, gc=False, forbid_unknown_fields=True):
    """A record as `seatrial.model.results.record.encode` writes it."""

    v: Literal[1]
    experiment: Annotated[str, msgspec.Meta(min_length=1)]
    repeat: _Count
    order: _Count
    t0: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
    wall_s: Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
    seen: msgspec.Raw
    samples: list[SampleColumns]
    checks: dict[str, _Number | None]
    crc: str


_NKEYS = len(_Line.__struct_fields__)


class Seen(Mapping[str, Any]):
    """What was observed around a repeat. Records with the same names share them."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Mapping[str, int], values: tuple[Any, ...]) -> None:
        self._names = names
        self._values = values

    @property
    def names(self) -> Mapping[str, int]:
        """Name -> position of its value."""
        return self._names

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


class DecodedLine(msgspec.Struct, gc=False):
    """A record, its samples by column, and the text of what it observed; these are None if the line is not as usual."""

    record: RepeatRecord
    columns: Sequence[SampleColumns] | None = None
    seen: bytes | None = None


class LineDecoder:
    """Decodes the lines of all record files of a folder, and shares equal values among their records."""

    def __init__(self) -> None:
        self._line = msgspec.json.Decoder(_Line)
        self._mapping = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._shared: dict[tuple[str, bytes], Any] = {}
        self._parts: dict[bytes, Any] = {}
        self._words: dict[str, str] = {}
        self._names: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._outcomes = SharedOutcomes()
        self._latest: _Common | None = None
        self._before: dict[str, msgspec.Raw] = {}

    def decode(self, line: bytes, file: RecordFile, offset: int) -> RepeatRecord:
        """The record in the line at this offset of a file. Raises ProtocolError if the checksum or the form is
        wrong."""
        return self.decoded(line, file, offset).record

    def decoded(self, line: bytes, file: RecordFile, offset: int) -> DecodedLine:
        """The record in the line at this offset of a file, with its texts. Raises ProtocolError as `decode` does."""
        if line[-_TAIL:] != crc_tail(memoryview(line)[:-_TAIL]):
            raise ProtocolError("the checksum of a record is wrong")
        try:
            return self._record(self._line.decode(line), line, file, offset)
        except (msgspec.MsgspecError, ValueError, RecursionError):  # not of the usual form
            return DecodedLine(decode(line))

    def parts(self, seen: bytes) -> Mapping[str, msgspec.Raw]:
        """The texts of the values in the text of what was observed."""
        return self._mapping.decode(seen)

    def _record(self, found: _Line, line: bytes, file: RecordFile, offset: int) -> DecodedLine:
        """Raises ValueError if the line is not of the usual form."""
        seen = bytes(found.seen)
        start, end = line.index(_SAMPLES) + len(_SAMPLES), line.rindex(_CHECKS)
        if not line.startswith(seen, start - len(_SAMPLES) - len(seen)):  # that name is in `seen`, too
            raise ValueError("samples are not where they usually are")
        packed, around = line[start:end], line[:start] + line[end:]  # other keys between these would be counted
        if around.count(KEY) != _NKEYS + len(found.checks) + seen.count(KEY) or has_spaces(around):
            raise ValueError("a key may be there twice")
        groups, n = checked_groups(found.samples, packed)
        record = RepeatRecord(
            self._word(found.experiment),
            found.repeat,
            found.order,
            found.t0,
            found.wall_s,
            self._outcomes.of(found),
            StoredSamples(file, offset + start, len(packed), zlib.crc32(packed), n) if n else (),
            found.checks,
            self._seen(seen),
        )
        return DecodedLine(record, groups, seen)

    def _seen(self, text: bytes) -> Seen:
        """Raises ValueError if the text is not of the usual form."""
        latest = self._latest
        if latest is not None and text.endswith(latest.end):
            found = self._mapping.decode(text[: -len(latest.end)] + b"}")
            if tuple(found) == latest.first:
                return Seen(latest.names, (*self._values(found, len(text) - len(latest.end) + 1), *latest.values))
        found = self._mapping.decode(text)
        values = self._values(found, len(text))
        order = tuple(found)
        names = self._names.get(order)
        if names is None:
            names = {name: place for place, name in enumerate(order)}
            if len(self._names) < _MOST_SHARED:
                self._names[order] = names
        seen = Seen(names, tuple(values))
        self._latest = _common_end(text, found, seen, self._before)
        self._before = found
        return seen

    def _values(self, found: dict[str, msgspec.Raw], expected_length: int) -> list[Any]:
        """The values in an object of this length."""
        shared, values, length = self._shared, [], 1
        for name, raw in found.items():
            part = bytes(raw)
            value = shared.get((name, part))
            values.append(self._checked(name, part) if value is None else value)
            length += len(name) + len(part) + 4  # two quotation marks, a colon, and a comma or the last brace
        if length != expected_length:
            raise ValueError("a key is there twice, or is not plain")
        return values

    def _checked(self, name: str, text: bytes) -> Any:
        """The value of what was observed under a name; it has the declared type."""
        value = self._part(text)
        if name in SEEN:
            SEEN[name](value)
        if value is not None and len(text) <= _LONGEST_SHARED_B:
            _keep(self._shared, (name, text), value)
        return value

    def _part(self, text: bytes) -> Any:
        """The value of a JSON text, whose first level is shared part by part: of a command or of notes, most is equal
        in all repeats, but not all."""
        if text[:1] == b"{":
            parts = self._mapping.decode(text)
            if len(text) != max(2, 1 + sum(len(name) + len(raw) + 4 for name, raw in parts.items())):
                return parse_json(text)
            return {self._word(name): self._shared_part(bytes(raw)) for name, raw in parts.items()}
        value = self._shared_part(text)
        if type(value) is list:
            return [self._word(item) if type(item) is str else item for item in value]
        return value

    def _shared_part(self, text: bytes) -> Any:
        value = self._parts.get(text)
        if value is None:
            value = parse_json(text)
            if value is not None and text[:1] in b'{["' and len(text) <= _LONGEST_SHARED_B:
                _keep(self._parts, text, value)
        return value

    def _word(self, word: str) -> str:
        if len(self._words) >= _MOST_SHARED:
            self._words.clear()
        return self._words.setdefault(word, word)


class _Common(Frozen):
    """What the objects of two records in a row end with: its text, its values, and the names before it."""

    end: bytes
    values: tuple[Any, ...]
    first: tuple[str, ...]
    names: Mapping[str, int]


def _common_end(
    text: bytes, found: dict[str, msgspec.Raw], seen: Seen, before: dict[str, msgspec.Raw]
) -> _Common | None:
    """The values at the end of this object that the one before has as well; None if there are none."""
    if tuple(found) != tuple(before):
        return None
    n, length = 0, 1
    for (name, raw), other in zip(reversed(found.items()), reversed(before.values()), strict=True):
        if bytes(raw) != bytes(other) or n + 1 == len(found):
            break
        n += 1
        length += len(name) + len(bytes(raw)) + 4
    if not n:
        return None
    return _Common(text[-length:], tuple(seen.values())[-n:], tuple(found)[:-n], seen.names)


def _keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    if len(table) >= _MOST_SHARED:
        table.clear()
    table[key] = value
