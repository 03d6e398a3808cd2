"""Records in blocks: what the repeats of one experiment observed, by column. An index keeps them, so that many records
are read without decoding and checking each line again (docs/adr/0075)."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, overload

import msgspec

from seatrial.errors import ProtocolError
from seatrial.model.frozen import Frozen
from seatrial.model.lazy import Lazy
from seatrial.model.results.record import RepeatRecord, decode
from seatrial.model.results.sample import Outcome
from seatrial.model.study.result import PerRepeat, RecordPlace
from seatrial.store.contents import RecordPlaces
from seatrial.store.record_lines import Seen
from seatrial.store.stored_samples import PartReader, RecordFile, StoredSamples, changed

CHECKS = ""
"""The name of the checks of a record among what it observed."""
_LEVEL = 1
_MOST_HEADS = 64
_MANY = 2000
"""Repeats of an experiment beyond which they share the names of what they observed: a dict each takes more memory."""


class BlockMaker:
    """Packs records of one experiment that observed the same names, in the order in which they come."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._rows: list[tuple[bytes, ...]] = []

    def add(self, texts: tuple[bytes, ...]) -> int:
        """Add the texts of the values of a record. Returns its row."""
        self._rows.append(texts)
        return len(self._rows) - 1

    def packed(self) -> bytes:
        """Two lines of JSON, compressed: the values that are equal in all rows, null for others; and the number of rows
        with the columns of the others, each with its values, or with few values and the position of each row's."""
        common, varied = list[bytes](), list[bytes]()
        for name, column in zip(self._names, zip(*self._rows, strict=True), strict=True):
            key = msgspec.json.encode(name) + b":"
            places = {value: place for place, value in enumerate(dict.fromkeys(column))}
            common.append(key + (column[0] if len(places) == 1 else b"null"))
            if len(places) == 1:
                continue
            if 2 * len(places) > len(column):
                varied.append(b"%s[[%s]]" % (key, b",".join(column)))
            else:
                codes = msgspec.json.encode([places[value] for value in column])
                varied.append(b"%s[[%s],%s]" % (key, b",".join(places), codes))
        rest = b"[%d,{%s}]" % (len(self._rows), b",".join(varied))
        return zlib.compress(b"{%s}\n%s" % (b",".join(common), rest), _LEVEL)


class Columns(Frozen):
    """The records of all experiments by column (arrays of numpy), those of an experiment in order of repeat.

    `outcome` and `file` are positions in lists; `line` counts from 1; `start` and `length` are of the line,
    `samples_...` of the samples in it. `block` is the number of a block and `row` a row of it; -1: the line is not as
    usual.
    """

    repeat: Any
    order: Any
    t0: Any
    wall_s: Any
    outcome: Any
    file: Any
    line: Any
    start: Any
    length: Any
    n_samples: Any
    samples_start: Any
    samples_length: Any
    samples_crc: Any
    block: Any
    row: Any

    def rows(self, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
        """Some of the rows."""
        return zip(*(getattr(self, name)[start:stop].tolist() for name in self.__struct_fields__), strict=True)


class _Block(Frozen):
    checks: Sequence[Mapping[str, float | None]]
    seen: Sequence[Mapping[str, Any]]


class KeptRecords:
    """Makes the records of experiments. `bounds` are the rows of each experiment, `blocks` the packed blocks by number.
    Reading raises StoreError if a file has changed."""

    def __init__(
        self,
        folder: Path,
        bounds: Mapping[str, tuple[int, int]],
        columns: Columns,
        outcomes: Sequence[Outcome],
        files: Sequence[str],
        blocks: Mapping[int, bytes],
    ) -> None:
        self._bounds, self._columns, self._outcomes, self._blocks = bounds, columns, outcomes, blocks
        self._reader = PartReader(folder)
        self._files = [RecordFile(name, self._reader) for name in files]
        self._paths = [f"records/{name}" for name in files]
        self._heads: OrderedDict[bytes, dict[str, Any]] = OrderedDict()

    @property
    def records(self) -> Mapping[str, Sequence[RepeatRecord]]:
        """The records of each experiment in order of repeat."""
        return Lazy(self._bounds, lambda key: KeptRepeats(self, key))

    def numbers(self, key: str) -> Sequence[tuple[int, int, float]]:
        """Repeat, order and start of each record of an experiment."""
        start, stop = self._bounds[key]
        columns = self._columns
        return list(
            zip(*(own[start:stop].tolist() for own in (columns.repeat, columns.order, columns.t0)), strict=True)
        )

    def number(self, key: str) -> int:
        """How many records an experiment has."""
        start, stop = self._bounds[key]
        return stop - start

    @property
    def places(self) -> PerRepeat[RecordPlace]:
        """Where they are, those of an experiment as they follow each other in the files."""
        return PerRepeat(Lazy(self._bounds, self._places))

    def _places(self, key: str) -> RecordPlaces:
        start, stop = self._bounds[key]
        cells = (getattr(self._columns, name)[start:stop].tolist() for name in ("file", "line", "repeat"))
        return RecordPlaces.of(self._paths, sorted(zip(*cells, strict=True)))

    def made(self, key: str) -> Iterator[RepeatRecord]:
        """The records of an experiment."""
        blocks: dict[int, _Block] = {}
        start, stop = self._bounds[key]
        is_many = stop - start > _MANY
        for (number, order, t0, wall_s, outcome, place, _, at, length, n, samples_at, samples_length, crc, block,
             row) in self._columns.rows(start, stop):  # fmt: skip
            file = self._files[place]
            if block < 0:
                yield self._unusual(key, number, file, at, length)
                continue
            own = blocks.get(block)
            if own is None:
                own = blocks[block] = self._unpacked(self._blocks[block], is_many)
            samples = StoredSamples(file, samples_at, samples_length, crc, n) if n else ()
            outcome_of = self._outcomes[outcome]
            yield RepeatRecord(key, number, order, t0, wall_s, outcome_of, samples, own.checks[row], own.seen[row])

    def _unusual(self, key: str, number: int, file: RecordFile, start: int, length: int) -> RepeatRecord:
        with suppress(ProtocolError):
            record = decode(self._reader.part(file, start, length))
            if (record.experiment, record.repeat) == (key, number):
                return record
        raise changed(self._reader.path(file))

    def _unpacked(self, packed: bytes, is_many: bool) -> _Block:
        head, _, rest = zlib.decompress(packed).partition(b"\n")
        common = self._heads.get(head)
        if common is None:
            common = self._heads[head] = msgspec.json.decode(head)
            if len(self._heads) > _MOST_HEADS:
                self._heads.popitem(last=False)
        n, varied = msgspec.json.decode(rest)
        columns = {
            name: _column(*varied[name]) if name in varied else repeat(value, n) for name, value in common.items()
        }
        checks = tuple(columns.pop(CHECKS))
        rows = zip(*columns.values(), strict=True) if columns else repeat((), n)
        names = {name: place for place, name in enumerate(columns)}
        return _Block(checks, [Seen(names, row) if is_many else dict(zip(names, row, strict=True)) for row in rows])


def _column(values: list[Any], places: Sequence[int] | None = None) -> Iterable[Any]:
    """The values of a column, from its few values and the position of each row's if these are given."""
    return values if places is None else [values[place] for place in places]


class KeptRepeats(Sequence[RepeatRecord]):
    """The records of one experiment, made when one is used; their numbers are known before."""

    __slots__ = ("_kept", "_key", "_records")

    def __init__(self, kept: KeptRecords, key: str) -> None:
        self._kept, self._key = kept, key
        self._records: tuple[RepeatRecord, ...] | None = None

    def __len__(self) -> int:
        return self._kept.number(self._key)

    @overload
    def __getitem__(self, index: int) -> RepeatRecord: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[RepeatRecord, ...]: ...

    def __getitem__(self, index: int | slice) -> RepeatRecord | tuple[RepeatRecord, ...]:
        return self._all()[index]

    def __iter__(self) -> Iterator[RepeatRecord]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # not hashable, as lists are not

    @property
    def numbers(self) -> Sequence[tuple[int, int, float]]:
        """Repeat, order and start of each, without making them."""
        return self._kept.numbers(self._key)

    def _all(self) -> tuple[RepeatRecord, ...]:
        if self._records is None:
            self._records = tuple(self._kept.made(self._key))
        return self._records
