"""What a screen uses of records, by column. A folder of 10,000 nodes has 240,000 records with 10 million samples, so
each line is decoded once, by their own processes if there are many, and goes at once to the values of its figures.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from seatrial.analysis.grouped import Numbering, grouped
from seatrial.analysis.pairs import pair_of, pair_values
from seatrial.benchmarks import benchmark_of, registry
from seatrial.diagnosis.disturbance.missing import missing_of_repeat
from seatrial.errors import ProtocolError, StoreError
from seatrial.model.benchmark.benchmark import Benchmark, Figure, Role
from seatrial.model.benchmark.declaration import PREFIX
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import LATE_BURSTS
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import (
    Experiment,
    PlacesOfPoints,
    RepeatRecord,
    SamplesOfPoint,
    figure_values,
    places_of_points,
    share_a_cpu,
)
from seatrial.model.results.sample import Outcome, Sample, SampleColumns
from seatrial.model.study.screen import FINGERPRINT, NodePair
from seatrial.store.contents import kept_experiment
from seatrial.store.folder import MOST_LINE_B, ResultsFolder
from seatrial.store.reading import FileSpan, parts_of, spans_of
from seatrial.store.record_lines import LineDecoder
from seatrial.store.stored_samples import PartReader, RecordFile, layout_text

TASK_B = 16 << 20
"""Bytes of records that are read at a time."""

_MOST_LAYOUTS = 10_000


class Hosts(NamedTuple):
    """Where a repeat ran: the host that it states, and the host of each rank (or the only one)."""

    stated: str
    of_ranks: tuple[str, ...]

    @property
    def are_several(self) -> bool:
        """Whether it ran on more than one node."""
        return len(set(self.of_ranks)) > 1


class FigureKey(NamedTuple):
    """A figure at a point of its sweep. `point` is in the order of the record."""

    figure: str
    point: tuple[tuple[str, Value], ...]
    types: tuple[type, ...]
    """Of the values: True and 1 are shown differently."""


FOLDER_USE = ("claim_s", "write_s", "clock_s", "clock_error_s")
"""Columns of what a repeat saw of the results folder; NaN: not known."""
_RECORDS = {"experiment": "q", "repeat": "q", "order": "q", "t0": "d", "outcome": "q", "hosts": "q", "span": "q",
            "line": "q", "is_unreadable": "b", **dict.fromkeys(FOLDER_USE, "d")}  # fmt: skip
_VALUES = {"record": "i", "key": "i", "value": "d"}


def _columns(codes: Mapping[str, str]) -> dict[str, array[Any]]:
    return {name: array(code) for name, code in codes.items()}


class ScreenColumns(Struct):
    """The records in some spans. `records` has a row for each accepted record, `values` one for each figure and point
    of an ok repeat; columns refer to the lists and the spans by position, `values` to records too. Lines count from 1
    in their span."""

    experiments: list[str] = []
    outcomes: list[Outcome] = []
    hosts: list[Hosts] = []
    keys: list[FigureKey] = []
    records: dict[str, array[Any]] = field(default_factory=lambda: _columns(_RECORDS))
    values: dict[str, array[Any]] = field(default_factory=lambda: _columns(_VALUES))
    links: dict[int, Sequence[Mapping[str, Any]]] = {}
    """Record -> the counters of links that grew."""
    no_cpu: dict[int, NoCpu] = {}
    """Record -> that its programs had no CPU for a tenth of its time or more."""
    fingerprints: dict[int, str] = {}
    """Record -> the fingerprint of the deterministic run of its program."""
    file_systems: dict[str, str] = {}
    """Node -> the type of the results folder's file system there."""
    pairs: dict[int, dict[str, dict[NodePair, float]]] = {}
    """Record -> figure -> the value between two nodes."""
    declared: dict[int, tuple[int, int]] = {}
    """Record of a declared benchmark, whose values are not here -> offset and length of its line: which figures there
    are, all declarations of the folder tell together."""
    damaged: list[tuple[int, int, str]] = []
    """Span, line (0: its file) and what is wrong."""
    n_lines: list[int] = []
    """Of each span."""


def tasks_of(folder: ResultsFolder) -> tuple[list[tuple[FileSpan, ...]], int]:
    """All spans of a folder, some at a time, and their bytes. Raises StoreError."""
    tasks: list[tuple[FileSpan, ...]] = []
    own: list[FileSpan] = []
    own_B = total_B = 0
    for whole in spans_of(folder):
        try:
            parts = list(parts_of(folder, whole))
        except StoreError:
            parts = [whole]  # whoever reads it says why it cannot be read
        for span in parts:
            own.append(span)
            own_B += span.end - span.start
            total_B += span.end - span.start
            if own_B >= TASK_B:
                tasks.append(tuple(own))
                own, own_B = [], 0
    return [*tasks, tuple(own)] if own else tasks, total_B


class ColumnReader:
    """Reads records of one folder."""

    def __init__(self, path: Path) -> None:
        self.folder = ResultsFolder(path)
        self.parts = PartReader(path)
        self.decoder = LineDecoder()
        self._experiments: dict[str, Experiment | None] = {}
        self._figures: dict[str, tuple[Figure, ...]] = {}
        self._layouts: dict[tuple[str, bytes], ColumnLayout] = {}

    def read(self, spans: Sequence[FileSpan]) -> ScreenColumns:
        """The records in these spans."""
        found = _Filler(self)
        for span in spans:
            found.add(span)
        return found.filled()

    def again(self, name: str, offset: int, length: int) -> tuple[RepeatRecord, Sequence[SampleColumns] | None]:
        """The record in the line there, and its samples by column if the line is as usual. Raises ProtocolError,
        StoreError."""
        file = RecordFile(name, self.parts)
        read = self.decoder.decoded(self.parts.part(file, offset, length), file, offset)
        return read.record, read.columns

    def experiment(self, key: str) -> Experiment | None:
        """The experiment of that key; None if the folder has no valid one."""
        if key not in self._experiments:
            try:
                self._experiments[key] = kept_experiment(self.folder, key)
            except StoreError:
                self._experiments[key] = None
        return self._experiments[key]

    def values(
        self, benchmark: str, record: RepeatRecord, groups: Sequence[SampleColumns] | None
    ) -> tuple[ColumnLayout, list[float]]:
        """The figures of a repeat, as `model.results.reading` defines them, without their limits, which would need the
        machine of each node. Raises `UNREADABLE`."""
        figures = self._figures.get(benchmark)
        if figures is None:
            declared = registry().get(benchmark)
            figures = () if declared is None else tuple(replace(one, limit=None) for one in declared.figures)
            self._figures[benchmark] = figures
        samples: Sequence[Sample | SampleColumns] = record.samples if groups is None else groups
        same = None if groups is None else (benchmark, layout_text(groups))
        layout = None if same is None else self._layouts.get(same)
        places = places_of_points(samples) if layout is None else layout.places
        found = list(figure_values(figures, samples, record.seen.get("clock_step_s", 0.0), places))
        if layout is None:
            layout = ColumnLayout(places, [_key(figure, own) for figure, own, _, _ in found])
            if same is not None and len(self._layouts) < _MOST_LAYOUTS:
                self._layouts[same] = layout
        return layout, [median(values) for _, _, values, _ in found]


class ColumnLayout(Frozen, eq=False):
    """What all repeats of a benchmark whose samples have the same series and points share."""

    places: PlacesOfPoints
    keys: Sequence[FigureKey]
    """Of their figures, in order."""


def _key(figure: Figure, own: SamplesOfPoint) -> FigureKey:
    point = tuple(own.point.items())
    return FigureKey(figure.name, point, tuple([type(value) for _, value in point]))


class _Filler:
    """Fills columns."""

    def __init__(self, reader: ColumnReader) -> None:
        self._reader = reader
        self._numbers = numberings()
        self._keys: dict[ColumnLayout, Sequence[int]] = {}
        """The numbers of the keys of each."""
        self.columns = ScreenColumns()

    def add(self, span: FileSpan) -> None:
        """Add a span."""
        reader, columns, numbers = self._reader, self.columns, self._numbers
        file = RecordFile(span.file, reader.parts)
        place, line_number = len(columns.n_lines), 0
        try:
            for offset, line in reader.folder.record_lines(span.file, span.start):
                if offset >= span.end:
                    break
                line_number += 1
                try:
                    if line is None:
                        raise ProtocolError(f"longer than {MOST_LINE_B >> 20} MiB")
                    read = reader.decoder.decoded(line, file, offset)
                    record, groups = read.record, read.columns
                except ProtocolError as error:
                    columns.damaged.append((place, line_number, error.message))
                    continue
                number, hosts = len(columns.records["repeat"]), hosts_of(record)
                is_unreadable = self._add_values(number, record, groups, hosts, (offset, len(line)))
                row = (
                    numbers["experiments"][record.experiment],
                    record.repeat,
                    record.order,
                    record.t0,
                    numbers["outcomes"][record.outcome],
                    numbers["hosts"][hosts],
                    place,
                    line_number,
                    is_unreadable,
                    *(record.seen.get("folder", {}).get(name, nan) for name in FOLDER_USE),
                )
                for column, cell in zip(columns.records.values(), row, strict=True):
                    column.append(cell)
                if kind := record.seen.get("folder", {}).get("type"):
                    columns.file_systems[hosts.stated] = kind
                if isinstance(bits := record.seen.get("notes", {}).get(FINGERPRINT), str):
                    columns.fingerprints[number] = bits
                if links := record.seen.get("links"):
                    columns.links.setdefault(number, links)
                if (missing := missing_of_repeat(record.seen, "a node")) is not None:
                    columns.no_cpu[number] = missing
        except StoreError as error:
            columns.damaged.append((place, 0, error.message))
        columns.n_lines.append(line_number)

    def _add_values(
        self,
        number: int,
        record: RepeatRecord,
        groups: Sequence[SampleColumns] | None,
        hosts: Hosts,
        place: tuple[int, int],
    ) -> bool:
        """Add the values of an ok repeat; whether they cannot be computed."""
        experiment = self._reader.experiment(record.experiment)
        if experiment is None or not record.outcome.is_ok:
            return False
        if experiment.benchmark.startswith(PREFIX):
            self.columns.declared[number] = place
            return False
        try:
            layout, values = self._reader.values(experiment.benchmark, record, groups)
        except UNREADABLE:
            return True
        keys = self._keys.get(layout)
        if keys is None:
            keys = self._keys[layout] = [self._numbers["keys"][key] for key in layout.keys]
        add_values(self.columns, number, keys, values)
        if experiment.benchmark == benchmark_of(Role.RANK_PAIRS) and hosts.are_several:
            benchmark, each = registry()[experiment.benchmark], tuple(record.samples)
            if any(pair_of(sample.point) for sample in each):
                self.columns.pairs[number] = _pairs(benchmark, experiment, hosts.of_ranks, record)
                if late := late_bursts(hosts.of_ranks, record):
                    self.columns.links[number] = [*record.seen.get("links", ()), *late]
        return False

    def filled(self) -> ScreenColumns:
        """The columns, with the lists that they refer to."""
        for name, numbers in self._numbers.items():
            setattr(self.columns, name, list(numbers))
        return self.columns


def numberings() -> dict[str, Numbering[Any]]:
    """For the lists of `ScreenColumns`."""
    return {name: Numbering() for name in ("experiments", "outcomes", "hosts", "keys")}


def add_values(columns: ScreenColumns, number: int, keys: Sequence[int], values: Sequence[Any]) -> None:
    """Add the values of a record to the rows of values."""
    kept = columns.values
    kept["record"].extend([number] * len(values))
    kept["key"].extend(keys)
    kept["value"].extend(values)


def hosts_of(record: RepeatRecord) -> Hosts:
    """Where a repeat ran."""
    stated = str(record.seen.get("host") or "")
    return Hosts(stated, tuple(map(str, record.seen.get("hosts") or ())) or ((stated,) if stated else ()))


def _pairs(
    benchmark: Benchmark, experiment: Experiment, hosts: Sequence[str], record: RepeatRecord
) -> dict[str, dict[NodePair, float]]:
    """Of each figure and pair of nodes that share no CPU the median over its pairs of ranks."""
    is_alone = experiment.parameters.get("at_once") == 1
    found: dict[str, dict[NodePair, float]] = {}
    for figure in benchmark.figures:
        values = pair_values(figure, record.samples, is_alone=is_alone)
        known = ((hosts[a], hosts[b], value) for (a, b), value in values.items() if max(a, b) < len(hosts))
        apart = ((sorted((a, b), key=natural), value) for a, b, value in known if a != b and value > 0)
        own = grouped(
            ((one, other), value) for (one, other), value in apart if not share_a_cpu(record.seen, one, other)
        )
        found[figure.name] = {pair: median(values) for pair, values in own.items()}
    return found


_LATE_S = 0.1
"""TCP waits 0.2 s or longer for a segment whose loss it cannot see otherwise."""


def late_bursts(hosts: Sequence[str], record: RepeatRecord) -> list[dict[str, Any]]:
    """As counters of links: of each node in how many measurements of its pairs a burst was late."""
    found: Counter[str] = Counter()
    for sample in record.samples:
        worst_s, pair = sample.extra.get("worst_s"), pair_of(sample.point)
        if pair is None or max(pair) >= len(hosts) or not isinstance(worst_s, int | float):
            continue
        a, b = (hosts[rank] for rank in pair)
        if worst_s >= sample.elapsed_s + _LATE_S and a != b and not share_a_cpu(record.seen, a, b):
            found.update((a, b))
    return [{"host": node, "port": "messages", "counter": LATE_BURSTS, "grew_by": n} for node, n in found.items()]


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key: n2 before n10."""
    parts: list[str] = []
    for letter in name:
        if parts and parts[-1].isdecimal() == letter.isdecimal():
            parts[-1] += letter
        else:
            parts.append(letter)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
