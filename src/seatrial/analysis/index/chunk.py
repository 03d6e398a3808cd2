"""Part of a record file as columns: what the index keeps of each record, and the figures and samples of each repeat.

Chunks are read by their own processes, since decoding is most of the work.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from seatrial.analysis.grouped import Numbering
from seatrial.benchmarks import registry
from seatrial.errors import ProtocolError, StoreError
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.json_check import check_shape
from seatrial.model.json_object import json_of
from seatrial.model.machine.document import KeptMachineJson, machine_from_document
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import share_of
from seatrial.model.results.record import Experiment, Reading, RepeatRecord, impossible_reason, readings
from seatrial.model.results.sample import Outcome, Sample
from seatrial.store.files import opened_file, reason
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import FileSpan
from seatrial.store.record_blocks import CHECKS, BlockMaker
from seatrial.store.record_lines import DecodedLine, LineDecoder
from seatrial.store.stored_samples import PartReader, RecordFile, StoredSamples

_PARSED_MACHINES = 64
_BLOCK_B = 1 << 20
_NAN = float("nan")


_RECORDS: Mapping[str, str] = {
    **dict.fromkeys(("experiment", "repeat", "ord"), "q"),
    **dict.fromkeys(("t0", "wall_s"), "d"),
    **dict.fromkeys(("state", "reason", "evidence", "stage", "checked", "host"), "q"),
    **dict.fromkeys(("start", "length", "n_samples", "error"), "q"),
    **dict.fromkeys(("line", "samples_start", "samples_length", "samples_crc", "block", "row"), "q"),
}
_READINGS: Mapping[str, str] = {
    **dict.fromkeys(("record", "key", "seq"), "q"),
    **dict.fromkeys(("value", "minimum", "maximum"), "d"),
    **{"n": "q", "share": "d", "resolution": "d", "impossible": "b"},
}
_SAMPLES: Mapping[str, str] = {"record": "q", "grp": "q", "i": "q", "elapsed_s": "d", "work": "q"}


class Chunk(Struct):
    """What the lines of a span contain, by column.

    `records` has one row for each accepted record, `readings` one for each figure and point of an ok repeat, `samples`
    one for each sample; the last two refer to records by position. Numbers of `texts`, `keys` and `groups` refer to the
    lists of these names. `end` is the offset behind the last finished line. `block` -1: the line is not as usual.
    """

    span: FileSpan
    end: int
    crc: int
    records: dict[str, array[Any]] = field(default_factory=lambda: _columns(_RECORDS))
    readings: dict[str, array[Any]] = field(default_factory=lambda: _columns(_READINGS))
    samples: dict[str, array[Any]] = field(default_factory=lambda: _columns(_SAMPLES))
    lines: int = 0
    """Finished lines. `records` has the number of each in the span, from 1."""
    blocks: list[tuple[int, bytes]] = []
    """Experiment, and what was observed around some of its repeats (`store.record_blocks`)."""
    texts: list[str] = []
    keys: list[tuple[str, str]] = []
    """Figure and point as JSON."""
    groups: list[tuple[str, str, int]] = []
    """Series, point as JSON, rank."""
    experiments: list[str] = []
    damaged: list[str] = []


def _columns(codes: Mapping[str, str]) -> dict[str, array[Any]]:
    return {name: array(code) for name, code in codes.items()}


def _fill(columns: dict[str, array[Any]], rows: list[tuple[Any, ...]]) -> None:
    """Add rows to columns."""
    for column, cells in zip(columns.values(), zip(*rows, strict=True), strict=False):  # no rows, no cells
        column.extend(cells)


class ChunkReader:
    """Reads the spans of one folder. `experiments` are those of the folder; `machines` names the document of each."""

    def __init__(self, path: Path, experiments: Mapping[str, Experiment], machines: Mapping[str, str]) -> None:
        self.folder = ResultsFolder(path)
        self.experiments = experiments
        self._documents = machines
        self._machines: dict[str, Machine] = {}
        self._reader = PartReader(path)
        self._decoder = LineDecoder()

    def read(self, span: FileSpan) -> Chunk:
        """The records of a span. Damaged lines, and records of unknown experiments, are left out and reported."""
        return _Columns(self, span).chunk

    def record(self, file: str, start: int, length: int) -> RepeatRecord:
        """One record. Raises ProtocolError, StoreError."""
        place = RecordFile(file, self._reader)
        return self._decoder.decode(self._reader.part(place, start, length), place, start)

    def readings(self, record: RepeatRecord, samples: tuple[Sample, ...] | None = None) -> list[Reading]:
        """The figures of a record. Raises ProtocolError if they cannot be computed."""
        experiment = self.experiments[record.experiment]
        benchmark = registry().get(experiment.benchmark)
        if benchmark is None:
            return []
        samples = tuple(record.samples) if samples is None else samples
        machine, step_s = self.machine(experiment.machine), record.seen.get("clock_step_s", 0.0)
        try:
            return readings(benchmark, machine, experiment.parameters, samples, step_s)
        except UNREADABLE as error:
            why = f"the figures of repeat {record.repeat} cannot be computed from its samples ({error!r:.200})"
            raise ProtocolError(why) from error

    def machine(self, identity: str) -> Machine:
        """The machine of that identity, from its most complete document."""
        found = self._machines.get(identity)
        if found is None:
            document = self.folder.get("machines", self._documents[identity])
            check_shape(KeptMachineJson, document)
            found = machine_from_document(document)
            if len(self._machines) >= _PARSED_MACHINES:
                self._machines.clear()
            self._machines[identity] = found
        return found


class _Columns:
    """Fills a chunk."""

    def __init__(self, reader: ChunkReader, span: FileSpan) -> None:
        self._reader = reader
        self._decoder = LineDecoder()
        names = ("texts", "keys", "groups", "experiments")
        self._numbers: dict[str, Numbering[Any]] = {name: Numbering() for name in names}
        self._points: dict[tuple[Any, ...], str] = {}
        self._lost = Counter[str]()
        self._records: list[tuple[Any, ...]] = []
        self._readings: list[tuple[Any, ...]] = []
        self._outcome: tuple[Outcome | None, tuple[int, ...]] = (None, ())
        self._host: tuple[Any, int] = (None, 0)
        self._blocks = Numbering[tuple[int, tuple[str, ...]]]()
        self._makers: list[BlockMaker] = []
        self.chunk = Chunk(span, span.start, 0)
        place = RecordFile(span.file, PartReader(reader.folder.path))
        try:
            for start, line in reader.folder.record_lines(span.file, span.start):
                if start >= span.end:
                    break
                self._line(place, start, line)
            self.chunk.crc = crc_of(reader.folder.path, FileSpan(span.file, span.start, self.chunk.end))
        except StoreError as error:
            self.chunk.damaged.append(error.message)
        _fill(self.chunk.records, self._records)
        _fill(self.chunk.readings, self._readings)
        self.chunk.blocks = [
            (experiment, maker.packed()) for (experiment, _), maker in zip(self._blocks, self._makers, strict=True)
        ]
        for name, numbers in self._numbers.items():
            setattr(self.chunk, name, list(numbers))
        for key, n in self._lost.items():
            self.chunk.damaged.append(f"{span.file}: experiment {key[:80]} is missing or damaged: {n} repeats ignored")

    def _line(self, place: RecordFile, start: int, line: bytes | None) -> None:
        self.chunk.lines += 1
        if line is None:
            self.chunk.damaged.append(f"{place.name} at byte {start}: the line is too long")
            return
        self.chunk.end = start + len(line) + 1
        try:
            decoded = self._decoder.decoded(line, place, start)
        except ProtocolError as error:
            self.chunk.damaged.append(f"{place.name} at byte {start}: {error.message}")
            return
        if decoded.record.experiment in self._reader.experiments:
            self._add(decoded, start, len(line))
        else:
            self._lost[decoded.record.experiment] += 1

    def _add(self, decoded: DecodedLine, start: int, length: int) -> None:
        number, record = len(self._records), decoded.record
        samples = tuple(record.samples)
        error = -1
        if record.outcome.is_ok:
            try:
                self._add_readings(number, self._reader.readings(record, samples))
            except ProtocolError as problem:
                error = self._numbers["texts"][problem.message]
        self._add_samples(number, samples)
        experiment = self._numbers["experiments"][record.experiment]
        position = record.samples.position if isinstance(record.samples, StoredSamples) else (0, 0, 0)
        # In the order of `_RECORDS`.
        self._records.append(
            (
                experiment,
                record.repeat,
                record.order,
                record.t0,
                record.wall_s,
                *self._outcome_numbers(record.outcome),
                self._host_number(record.seen),
                start,
                length,
                len(samples),
                error,
                self.chunk.lines,
                *position,
                *self._block_row(experiment, decoded),
            )
        )

    def _block_row(self, experiment: int, decoded: DecodedLine) -> tuple[int, int]:
        """The block of a record in this chunk, and its row; (-1, 0): it is read from its line."""
        parts = {} if decoded.seen is None else self._decoder.parts(decoded.seen)
        if decoded.seen is None or CHECKS in parts:
            return -1, 0
        block = self._blocks[experiment, tuple(parts)]
        if block == len(self._makers):
            self._makers.append(BlockMaker((CHECKS, *parts)))
        checks = msgspec.json.encode(decoded.record.checks)
        return block, self._makers[block].add((checks, *map(bytes, parts.values())))

    def _outcome_numbers(self, outcome: Outcome) -> tuple[int, ...]:
        """The texts of an outcome, which the decoder shares among records."""
        if outcome is not self._outcome[0]:
            stage = outcome.stage.value if outcome.stage else ""
            texts = (outcome.state.value, outcome.reason, outcome.evidence, stage, outcome.check)
            self._outcome = (outcome, tuple(self._numbers["texts"][text] for text in texts))
        return self._outcome[1]

    def _host_number(self, seen: Mapping[str, Any]) -> int:
        """The text of the hosts, whose list the decoder shares among records."""
        found = seen.get("hosts") or seen.get("host", "")
        if found is not self._host[0]:
            hosts = [found] if isinstance(found, str) else found
            self._host = (found, self._numbers["texts"][" ".join(dict.fromkeys(hosts))])
        return self._host[1]

    def _add_readings(self, number: int, found: list[Reading]) -> None:
        for seq, reading in enumerate(found):
            share = share_of(reading.value, reading.limit, reading.figure.better)
            # In the order of `_READINGS`.
            self._readings.append(
                (
                    number,
                    self._numbers["keys"][reading.figure.name, self._json(reading.point)],
                    seq,
                    reading.value,
                    reading.minimum,
                    reading.maximum,
                    reading.n_samples,
                    _NAN if share is None else share,
                    reading.resolution,
                    impossible_reason(reading) is not None,
                )
            )

    def _add_samples(self, number: int, samples: tuple[Sample, ...]) -> None:
        columns = self.chunk.samples
        point, series, rank, group = None, None, None, 0
        work, text = None, 0
        groups: list[int] = []
        works: list[int] = []
        for sample in samples:
            if sample.point is not point or sample.series != series or sample.rank != rank:
                point, series, rank = sample.point, sample.series, sample.rank
                group = self._numbers["groups"][series, self._json(point), rank]
            if sample.work is not work:
                work = sample.work
                text = self._numbers["texts"][self._json(work)]
            groups.append(group)
            works.append(text)
        columns["grp"].extend(groups)
        columns["work"].extend(works)
        columns["i"].extend([sample.i for sample in samples])
        columns["elapsed_s"].extend([_NAN if sample.elapsed_s is None else sample.elapsed_s for sample in samples])
        columns["record"].extend([number] * len(samples))

    def _json(self, point: Mapping[str, Any]) -> str:
        key = tuple(point.items())
        try:
            found = self._points.get(key)
        except TypeError:  # a list
            return json_text(point)
        if found is None or any(type(value) is bool or value in (0, 1) for _, value in key):
            found = self._points[key] = json_text(point)  # True == 1, as keys
        return found


def json_text(value: Any) -> str:
    """A value as JSON."""
    return json_of(value, ensure_ascii=False)


def crc_of(folder: Path, span: FileSpan) -> int:
    """The CRC-32 of the bytes of a span. Raises StoreError."""
    crc, left = 0, span.end - span.start
    try:
        with opened_file(folder, "records", span.file) as stream:
            stream.seek(span.start)
            while left > 0 and (part := stream.read(min(_BLOCK_B, left))):
                crc, left = zlib.crc32(part, crc), left - len(part)
    except OSError as error:
        raise StoreError(f"{folder / 'records' / span.file} cannot be read: {reason(error)}") from error
    return crc if left <= 0 else -1


def chunk_reader(
    path: Path, experiments: Mapping[str, Experiment], machines: Mapping[str, str]
) -> Callable[[FileSpan], Chunk]:
    """What reads the spans of a folder in its own process."""
    return ChunkReader(path, experiments, machines).read
