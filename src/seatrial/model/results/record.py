"""An experiment and its identity, and the record of one finished repeat.

From the samples of one repeat to its figures: one value for each figure and point, because the repeat is the unit.

Samples inside a process are autocorrelated; counting them as independent gave 73 % false alarms at 1 % noise between
runs (docs/methodology.md). So the value of a repeat is the median of its samples, and statistics use repeats only.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from statistics import median
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure
from seatrial.model.benchmark.copies import COPY, all_of, copies_of, one_of
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.benchmark.quotients import TimePerWork, WorkRate
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_line
from seatrial.model.json_object import all_utf8, json_of, plain, record_of
from seatrial.model.json_shape import Json, Text
from seatrial.model.machine.identity import is_emulated
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record_shape import RECORD_VERSION, check_record
from seatrial.model.results.sample import (
    ColumnedSamples,
    Outcome,
    Sample,
    SampleColumns,
    Stage,
    State,
    cells,
    least,
    pack,
    point_key,
    samples_of,
    unpack,
    values_of,
)


def content_key(document: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of a document in canonical JSON: same content, same key."""
    canonical = json_of(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Experiment(Frozen):
    """One benchmark with its parameters, in one environment, by one build of its program, on one machine.

    `environment`, `program` and `machine` are content keys; the first two are "" if nothing can be built.
    """

    benchmark: Text
    parameters: Params
    environment: str
    program: str
    machine: Text

    def document(self) -> Json:
        """Everything that defines it, as stored in `experiments/<id>.json`."""
        return plain(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Experiment:
        """The experiment that `document()` described. Raises ValueError if it is invalid."""
        return record_of(cls, document)

    @property
    def id(self) -> str:
        """The content key."""
        return content_key(self.document())


class RepeatRecord(Frozen):
    """One process (or job) of an experiment, as kept on disk.

    `repeat` counts from 0 within the experiment; `order` counts the repeats of the run that made it, which shows
    drift; `t0` is the start in seconds since the epoch; `wall_s` is its total time; `seen` is what was observed
    around it (affinity, load, steal, libraries, command, ...). The `samples` of a stored record stay in its file until
    they are used.
    """

    experiment: str
    repeat: int
    order: int
    t0: float
    wall_s: float
    outcome: Outcome
    samples: Sequence[Sample] = ()
    checks: Mapping[str, float | None] = {}
    seen: Mapping[str, Any] = {}


def share_a_cpu(seen: Mapping[str, Any], a: str, b: str) -> bool:
    """Whether two nodes of a repeat have a CPU in common, as those of a cluster of one machine may: what is measured
    between them shows the scheduler, not a link."""
    return a != b and any(a in group and b in group for group in seen.get("shared_cpus", ()))


def encode(record: RepeatRecord) -> bytes:
    """One line of JSON that ends with the CRC-32 of everything before it. NaN and infinities become null."""
    document = {
        "v": RECORD_VERSION,
        "experiment": record.experiment,
        "repeat": record.repeat,
        "order": record.order,
        "t0": record.t0,
        "wall_s": record.wall_s,
        "outcome": record.outcome.state.value,
        "reason": record.outcome.reason,
        "evidence": record.outcome.evidence,
        "stage": record.outcome.stage,
        "check": record.outcome.check,
        "seen": dict(record.seen),
        "samples": pack(record.samples),
        "checks": dict(record.checks),
    }
    try:
        body = msgspec.json.encode(document)[:-1]
    except UnicodeEncodeError:  # a path that is not UTF-8
        body = msgspec.json.encode(all_utf8(document))[:-1]
    return body + crc_tail(body) + b"\n"


def crc_tail(body: bytes | memoryview) -> bytes:
    """The end of a line: the checksum of everything before it."""
    return b',"crc":"%08x"}' % zlib.crc32(body)


_CRC_TAIL = len(crc_tail(b""))


def decode(line: bytes) -> RepeatRecord:
    """The record in one line, without its newline. Raises ProtocolError if the checksum or the form is wrong."""
    body, tail = line[:-_CRC_TAIL], line[-_CRC_TAIL:]
    if tail != crc_tail(body):
        raise ProtocolError("the checksum of a record is wrong")
    try:
        document = parse_line(body + b"}")
        version = document.get("v") if isinstance(document, dict) else None
        if version != RECORD_VERSION:
            raise ProtocolError(f"a record has version {version!r:.40}; this seatrial reads version {RECORD_VERSION}")
        check_record(document)
        return RepeatRecord(
            experiment=document["experiment"],
            repeat=document["repeat"],
            order=document["order"],
            t0=document["t0"],
            wall_s=document["wall_s"],
            outcome=Outcome(
                State(document["outcome"]),
                document["reason"],
                document["evidence"],
                Stage(document["stage"]) if document["stage"] else None,
                document["check"],
            ),
            samples=tuple(unpack(document["samples"])),
            checks=document["checks"],
            seen=document["seen"],
        )
    except ValueError as error:
        raise ProtocolError(f"a record does not have the form of version {RECORD_VERSION}: {error}") from error


def _finite(value: Any) -> Any:
    """The same value with None in place of numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


PointKey = tuple[tuple[str, Value], ...]
PlacesOfPoints = Mapping[str, Sequence[Sequence[int]]]
"""Series -> the positions of the samples of each of its points."""


class Reading(Frozen):
    """One figure at one point in one repeat. `value` is the median over samples; minimum and maximum are over
    samples, which are in `values`, in order of time. `resolution` is the step of the timer or of the printed digits as
    a share of the value, in the coarsest sample; 0: not rounded, or unknown."""

    figure: Figure
    point: Mapping[str, Value]
    value: float
    minimum: float
    maximum: float
    n_samples: int
    limit: Limit | None
    values: tuple[float, ...] = ()
    resolution: float = 0.0


def readings(
    benchmark: Benchmark, machine: Machine, params: Params, samples: Sequence[Sample], clock_step_s: float = 0.0
) -> list[Reading]:
    """The figures of one repeat, in declared order, points in order of appearance; of several copies of a job, those of
    all together. `clock_step_s` is the step of the clock that the samples were timed with, in seconds; 0: unknown. It
    does not limit secondary figures, which are counted, not timed: only a resolution that a sample states does.

    Raises one of `UNREADABLE` if values that a figure needs are missing from a sample, or are impossible; the judge
    turns that into `invalid`.
    """
    has_limits = not is_emulated(machine)
    found = samples.columns() if isinstance(samples, ColumnedSamples) else samples
    copies = copies_of(params)
    each = [
        Reading(
            figure,
            own.point,
            median(values),
            min(values),
            max(values),
            len(values),
            figure.limit(machine, limiting(figure, params), own.samples)
            if figure.limit is not None and has_limits
            else None,
            tuple(values),
            own.resolution(0.0) if figure.is_secondary else resolution,
        )
        for figure, own, values, resolution in figure_values(benchmark.figures, found, clock_step_s)
    ]
    return each if copies == 1 else _of_all_copies(each, copies)


def limiting(figure: Figure, params: Params) -> Params:
    """The parameters that the limit of a figure follows from: rates of copies are summed, so that all their CPUs count;
    the time of the slowest is that of one job."""
    return all_of(params) if figure.is_rate else one_of(params)


def _of_all_copies(each: Sequence[Reading], copies: int) -> list[Reading]:
    """The readings of all copies together: rates are summed, of other figures the one of the worst copy counts. Raises
    ValueError if a copy has no such reading."""
    groups: dict[tuple[str, PointKey], list[Reading]] = {}
    for reading in each:
        point = {name: value for name, value in reading.point.items() if name != COPY}
        groups.setdefault((reading.figure.name, point_key(point)), []).append(reading)
    return [_together(group, dict(point), copies) for (_, point), group in groups.items()]


def _together(group: Sequence[Reading], point: Mapping[str, Value], copies: int) -> Reading:
    first = group[0]
    if COPY not in first.point:  # it was measured of all
        return first
    if len(group) != copies:
        raise ValueError(f"{first.figure.name} is there for {len(group)} of {copies} copies")
    worst = min if first.figure.better is Better.HIGHER else max
    combine = sum if first.figure.is_rate else worst
    value = combine([reading.value for reading in group])
    return replace(
        first,
        point=point,
        value=value,
        minimum=combine([reading.minimum for reading in group]),
        maximum=combine([reading.maximum for reading in group]),
        n_samples=sum(reading.n_samples for reading in group),
        values=(value,),
        resolution=max(reading.resolution for reading in group),
    )


def figure_values(
    figures: Sequence[Figure],
    samples: Sequence[Sample | SampleColumns],
    clock_step_s: float,
    places: PlacesOfPoints | None = None,
) -> Iterator[tuple[Figure, SamplesOfPoint, list[float], float]]:
    """Each figure at each of its points, with its values (one of each sample) and their resolution; see `readings`.
    `places` are those of `samples`, if they are known."""
    if places is None:
        places = places_of_points(samples)
    by_series: dict[str, list[tuple[SamplesOfPoint, float]]] = {}
    for figure in figures:
        if figure.series not in by_series:
            groups = [SamplesOfPoint([samples[k] for k in own]) for own in places.get(figure.series, ())]
            by_series[figure.series] = [(group, group.resolution(clock_step_s)) for group in groups]
        for group, resolution in by_series[figure.series]:
            values = group.values(figure)
            if not all(map(isfinite, values)):
                raise ValueError(f"{figure.name} is not a finite number")
            yield figure, group, values, resolution


def places_of_points(samples: Sequence[Sample | SampleColumns]) -> PlacesOfPoints:
    """Which samples each point of each series has; series and points in order of appearance."""
    found: dict[str, dict[PointKey, list[int]]] = {}
    point: Mapping[str, Value] | None = None
    key: PointKey = ()
    for place, part in enumerate(samples):
        if point is None or part.point is not point:  # samples of one column share it
            point = part.point
            key = point_key(point)
        found.setdefault(part.series, {}).setdefault(key, []).append(place)
    return {series: list(points.values()) for series, points in found.items()}


class SamplesOfPoint:
    """The samples of one series at one point, in order of appearance: samples, or columns of them."""

    __slots__ = ("_parts", "_samples", "point")

    def __init__(self, parts: Sequence[Sample | SampleColumns]) -> None:
        self.point = parts[0].point
        self._parts = parts
        self._samples: list[Sample] | None = None

    @property
    def samples(self) -> list[Sample]:
        """The samples as objects."""
        if self._samples is None:
            self._samples = []
            for part in self._parts:
                self._samples += [part] if isinstance(part, Sample) else samples_of(part)
        return self._samples

    def values(self, figure: Figure) -> list[float]:
        """The value of each sample."""
        value, found = figure.value, list[float]()
        if figure.limit is not None:  # which needs the objects
            return list(map(value, self.samples))
        for part in self._parts:
            if isinstance(part, Sample):
                found.append(value(part))
            elif isinstance(value, WorkRate | TimePerWork):
                found += value.of_columns(part)
            else:
                found += values_of(value, part)
        return found

    def resolution(self, clock_step_s: float) -> float:
        """The coarsest resolution of the samples: as stated with them (`extra["resolution"]`: the printed digits, or
        another timer), else the clock's step over the time. Raises ValueError, TypeError if a stated one is not a
        share."""
        stated: list[float] = []
        for part in self._parts:
            if "resolution" in part.extra:
                own = part.extra["resolution"]
                stated += map(float, [own] if isinstance(part, Sample) else cells(own, part.n))
        if stated:
            if not all(0.0 <= share < inf for share in stated):
                raise ValueError("a resolution is not zero or a positive number")
            return max(stated)
        if clock_step_s <= 0.0:
            return 0.0
        shortest = inf
        for part in self._parts:
            elapsed_s = part.elapsed_s if isinstance(part, Sample) else least(part.elapsed_s)
            if elapsed_s < shortest:
                shortest = elapsed_s
        return clock_step_s / shortest if shortest > 0.0 else 0.0


def recorded_readings(benchmark: Benchmark, machine: Machine, params: Params, record: RepeatRecord) -> list[Reading]:
    """The figures of a recorded repeat. Raises ProtocolError if they cannot be computed: the record is damaged, or was
    written by a version whose program reported other values."""
    try:
        return readings(benchmark, machine, params, record.samples, record.seen.get("clock_step_s", 0.0))
    except UNREADABLE as error:
        raise ProtocolError(
            f"the figures of repeat {record.repeat} cannot be computed from its samples ({error!r:.200})"
        ) from error


def impossible_reason(reading: Reading) -> str | None:
    """Why this figure cannot be true, or None: it is beyond `IMPOSSIBLE_ABOVE` times a physical limit."""
    limit = reading.limit
    if limit is None or not limit.is_physical or not limit.value or reading.value == 0:
        return None
    higher = reading.figure.better is Better.HIGHER
    ratio = reading.value / limit.value if higher else limit.value / reading.value
    if ratio <= IMPOSSIBLE_ABOVE:
        return None
    return f"{reading.figure.name} is {ratio:.3g} x what is physically possible ({limit.derivation})"
