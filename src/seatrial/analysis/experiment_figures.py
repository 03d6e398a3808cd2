"""Figures of an experiment from the records of its repeats."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, TypeVar

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Benchmark, Better, Figure
from seatrial.model.benchmark.parameter import Params, Value, value_from_json
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import (
    STATED,
    FigureResult,
    MissingFigure,
    RepeatValues,
    StatedRepeats,
    share_of,
)
from seatrial.model.results.record import Reading, RepeatRecord, impossible_reason, recorded_readings
from seatrial.model.results.sample import Outcome, State, point_key
from seatrial.model.units import is_unit
from seatrial.stats.interval import MINIMUM_REPEATS, dependence, median_interval
from seatrial.stats.ratio import widened_ends
from seatrial.store.record_blocks import KeptRepeats


def in_time(records: Iterable[RepeatRecord]) -> Sequence[RepeatRecord]:
    """The records in order of time, which may differ from the order of their numbers."""
    if not isinstance(records, Sequence):
        records = tuple(records)
    if all(first.t0 < second.t0 for first, second in pairwise(records)):
        return records  # as usual; many are not copied
    return sorted(records, key=lambda record: (record.t0, record.order))


def repeats_in_time(records: Sequence[RepeatRecord]) -> list[int]:
    """The numbers of repeats in order of time, as `in_time` orders records."""
    own = records.numbers if isinstance(records, KeptRepeats) else [(one.repeat, one.order, one.t0) for one in records]
    return [repeat for repeat, _, _ in sorted(own, key=lambda one: (one[2], one[1]))]


def outcome_of(records: Sequence[RepeatRecord]) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome of an experiment: that of its latest repeat, with notes on earlier ones that were not ok.

    The latest decides because a repeat that is not ok ends its experiment: later ones were requested again, after the
    cause was fixed.
    """
    if not records:
        return Outcome.skipped("no repeat of it has finished"), ()
    records = in_time(records)
    latest = records[-1].outcome
    if not latest.is_ok:
        return latest, ()
    earlier = [record for record in records if not record.outcome.is_ok]
    return latest, tuple(
        f"repeat {record.repeat} is ignored: {record.outcome.state} ({record.outcome.reason})" for record in earlier
    )


def figures_of(
    benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]
) -> tuple[FigureResult, ...]:
    """The figures of the ok repeats, in declared order; empty if there are none."""
    return Repeats(benchmark, machine, params, records).figures()


Computed = tuple[Outcome, tuple[FigureResult, ...]]
"""The outcome of an experiment whose latest repeat is ok, and its figures without ceilings."""


def computed(benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]) -> Computed:
    """`invalid` without figures if samples are damaged, or a figure exceeds what is possible. Raises StoreError."""
    try:
        repeats = Repeats(benchmark, machine, params, records)
    except ProtocolError as error:
        return Outcome.invalid("samples", error.message), ()
    return (repeats.impossible, ()) if repeats.impossible else (Outcome.ok(), repeats.figures())


_MOST_LIMITS = 500
"""Repeats of which every limit is kept: each states its derivation, so many take much memory."""


class Repeats:
    """The figures of the ok repeats of an experiment, in order of time, with the limits that are known now.

    The samples of one repeat at a time are read. Raises ProtocolError if the figures of one cannot be computed from
    its samples, StoreError if its file has changed.
    """

    def __init__(self, benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]) -> None:
        self._benchmark, self._machine, self._params = benchmark, machine, params
        self._ok = [record for record in in_time(records) if record.outcome.state is State.OK]
        self._gathered: dict[tuple[object, ...], _Gathered] = {}
        self._impossible, self._n_impossible = "", 0
        keeps_limits = len(self._ok) <= _MOST_LIMITS
        for place, record in enumerate(self._ok):
            reasons = []
            for reading in self._readings(record):
                key = _key(reading)
                if key not in self._gathered:
                    self._gathered[key] = _Gathered(reading, keeps_limits)
                self._gathered[key].add(place, reading, bool(record.seen.get("together")))
                if reason := impossible_reason(reading):
                    reasons.append(reason)
            if reasons:
                self._impossible = self._impossible or reasons[0]
                self._n_impossible += 1

    def _readings(self, record: RepeatRecord) -> list[Reading]:
        return recorded_readings(self._benchmark, self._machine, self._params, record)

    @property
    def impossible(self) -> Outcome | None:
        """`invalid` if a repeat exceeds a limit that is known now, else None.

        Facts of a machine may be added after its repeats (memory modules need root). One such repeat is enough: to drop
        only the repeats above the limit would be selection by the result.
        """
        if not self._n_impossible:
            return None
        seen = f"{self._impossible}, in {self._n_impossible} of {len(self._ok)} repeats, by what is known now"
        return Outcome.invalid("limit", seen)

    def figures(self) -> tuple[FigureResult, ...]:
        """The figures, in declared order."""
        order = {figure.name: position for position, figure in enumerate(self._benchmark.figures)}
        found = sorted(self._gathered.items(), key=lambda item: order[str(item[0][0])])
        limits = self._limits_of({key: entry.middle for key, entry in found if entry.limits is None})
        columns = (
            array("q", [record.repeat for record in self._ok]),
            array("q", [record.order for record in self._ok]),
            array("d", [record.t0 for record in self._ok]),
        )
        return tuple(entry.result(self._params, columns, limits.get(key, ())) for key, entry in found)

    def _limits_of(self, wanted: Mapping[_Key, Sequence[int]]) -> dict[_Key, list[Limit | None]]:
        """The limits of figures in some repeats, each repeat read once more."""
        by_place = grouped((place, key) for key, places in wanted.items() for place in places)
        return grouped(
            (key, reading.limit)
            for place, keys in by_place.items()
            for reading in self._readings(self._ok[place])
            if (key := _key(reading)) in keys
        )


_Key = tuple[object, ...]


def _key(reading: Reading) -> _Key:
    return reading.figure.name, point_key(reading.point)


class _Gathered:
    """The readings of one figure at one point over repeats: `places` are the positions of these repeats."""

    def __init__(self, first: Reading, keeps_limits: bool) -> None:
        self.figure, self.point = first.figure, first.point
        self.places, self.values, self.resolutions = array("q"), list[float](), array("d")
        self.turns: list[tuple[float, ...]] = []
        self.minimum, self.maximum, self.n_samples = first.minimum, first.maximum, 0
        self.limited = array("q")
        self.limits: list[Limit | None] | None = [] if keeps_limits else None
        self.first_limit: Limit | None = None

    def add(self, place: int, reading: Reading, in_turns: bool) -> None:
        """Add the reading of the repeat at this position."""
        if in_turns and not self.turns:
            self.turns = [()] * len(self.values)
        if in_turns or self.turns:
            self.turns.append(reading.values if in_turns else ())
        self.places.append(place)
        self.values.append(reading.value)
        self.resolutions.append(reading.resolution)
        self.minimum = min(self.minimum, reading.minimum)
        self.maximum = max(self.maximum, reading.maximum)
        self.n_samples += reading.n_samples
        if self.first_limit is None:
            self.first_limit = reading.limit
        if share_of(reading.value, reading.limit, reading.figure.better) is not None:
            self.limited.append(len(self.values) - 1)
            if self.limits is not None:
                self.limits.append(reading.limit)

    @property
    def middle(self) -> list[int]:
        """The positions of the repeats whose limits the figure has."""
        return [self.places[place] for place in middle_places(self.values, self.limited)]

    def result(self, params: Params, columns: _Columns, limits: Sequence[Limit | None]) -> FigureResult:
        """The figure. `columns` are of all repeats; `limits` are those of the middle repeats, unless they were kept."""
        if self.limits is not None:
            order = {place: n for n, place in enumerate(self.limited)}
            limits = [self.limits[order[place]] for place in middle_places(self.values, self.limited)]
        limit = middle_limit(limits) if self.limited else self.first_limit
        if len(self.places) < len(columns[0]):
            numbers, orders, starts = columns
            columns = (
                array("q", [numbers[place] for place in self.places]),
                array("q", [orders[place] for place in self.places]),
                array("d", [starts[place] for place in self.places]),
            )
        resolutions = self.resolutions if any(self.resolutions) else ()
        repeats = RepeatValues(*columns, array("d", self.values), self.turns, resolutions)
        seen = Extent(self.minimum, self.maximum, self.n_samples)
        return summarised(self.figure, self.point, params, repeats, seen, limit)


def middle_places(values: Sequence[float], limited: Sequence[int]) -> list[int]:
    """The positions of the one or two values that the median is made of; if they have no limit, of the nearest value
    that has one (`limited` are their positions). Empty if none has.

    A figure is compared with the limit of the same repeats: that may use the clock of the run, and the median over the
    clock of another run is not the share of any.
    """
    ordered = sorted(range(len(values)), key=lambda place: values[place])
    half = len(ordered) // 2
    middle = ordered[half : half + 1] if len(ordered) % 2 else ordered[half - 1 : half + 1]
    known = set(limited)
    if all(place in known for place in middle):
        return middle
    centre = median(values)
    return [min(limited, key=lambda place: abs(values[place] - centre))] if limited else []


def middle_limit(limits: Sequence[Limit | None]) -> Limit | None:
    """The limit of a median: that of its repeat or, as the median itself, the mean of those of two."""
    known = [limit for limit in limits if limit is not None and limit.value is not None]
    if not known or len({limit.value for limit in known}) == 1:
        return known[0] if known else None
    value = sum(limit.value or 0.0 for limit in known) / len(known)
    derivation = f"mean of the two middle repeats; one of them: {known[0].derivation}"
    return replace(known[0], value=value, derivation=derivation)


def why_no_interval(figure: FigureResult | MissingFigure) -> str:
    """Why a figure has no interval, without a full stop; "" if it has one."""
    if isinstance(figure, MissingFigure):
        return figure.reason
    n = figure.n_repeats
    if figure.ci95 is not None:
        return ""
    if isinstance(figure.repeats, StatedRepeats):
        return "its source states no interval"
    if n < MINIMUM_REPEATS:
        return f"an interval needs {MINIMUM_REPEATS} repeats, {n} made"
    return f"successive repeats are correlated (r = {figure.dependence:.2f}): {n} are too few for an interval"


class Extent(Frozen):
    """The smallest and largest of all samples, and their number."""

    minimum: float
    maximum: float
    n_samples: int


def summarised(
    figure: Figure,
    point: Mapping[str, Value],
    params: Params,
    repeats: RepeatValues,
    seen: Extent,
    limit: Limit | None,
) -> FigureResult:
    """A figure from its values in repeats, which are in order of time. `limit` is that of the middle repeats, so that
    the median over it is the share."""
    values = repeats.values
    middle = median(values)
    correlation = dependence(values)
    resolution = max(repeats.resolutions, default=0.0)
    return FigureResult(
        name=figure.name,
        point=point,
        unit=figure.unit,
        better=figure.better,
        work=figure.work,
        median=middle,
        ci95=widened_ends(median_interval(values, correlation=correlation), resolution),
        dependence=correlation,
        resolution=resolution,
        minimum=seen.minimum,
        maximum=seen.maximum,
        n_samples=seen.n_samples,
        limit=limit,
        repeats=repeats,
        fraction_of_limit=share_of(middle, limit, figure.better),
        attainable=_declared(lambda: figure.attainable(params), ALL_OF_IT),
        one_limit_over=figure.one_limit_over,
        customary=_declared(lambda: "" if figure.customary is None else figure.customary(params, middle), ""),
        is_secondary=figure.is_secondary,
    )


_T = TypeVar("_T")


def _declared(ask: Callable[[], _T], otherwise: _T) -> _T:
    """What a figure declares for these parameters; `otherwise` if some are missing: the experiment is of another
    version, or was changed."""
    try:
        return ask()
    except UNREADABLE:
        return otherwise


_Columns = tuple[Sequence[int], Sequence[int], Sequence[float]]
"""Number, order and start of repeats."""


def stated_figures(record: RepeatRecord) -> tuple[FigureResult, ...]:
    """The figures that a record states; empty if it states none, or not in the form of `stated_document`."""
    stated = record.seen.get(STATED)
    if not isinstance(stated, list):
        return ()
    try:
        return tuple(_figure(one, record) for one in stated)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _figure(one: Mapping[str, Any], record: RepeatRecord) -> FigureResult:
    middle, ends, n = float(one["median"]), one["ci95"], int(one["n_repeats"])
    if not is_unit(one["unit"]) or not 1 <= n <= 2**53:
        raise ValueError("not a figure")
    interval = None if ends is None else (float(ends[0]), float(ends[1]))
    repeats = StatedRepeats(record.repeat, record.order, record.t0, middle, n)
    return FigureResult(
        name=str(one["name"]),
        point={str(name): value_from_json(value) for name, value in one["parameters"].items()},
        unit=one["unit"],
        better=Better(one["better"]),
        work="",
        median=middle,
        ci95=interval,
        minimum=middle,
        maximum=middle,
        n_samples=n,
        limit=None,
        repeats=repeats,
    )
