"""Figures of an experiment from the records of its repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from seatrial.model.benchmark import Benchmark
from seatrial.model.figure_result import FigureResult, RepeatValue, share_of
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.outcome import Outcome, State
from seatrial.model.parameter import Params
from seatrial.model.reading import Reading, impossible_reason, recorded_readings
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import point_key
from seatrial.stats.interval import median_interval


def in_time(records: Iterable[RepeatRecord]) -> list[RepeatRecord]:
    """The records in order of time, which may differ from the order of their numbers."""
    return sorted(records, key=lambda record: (record.t0, record.order))


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


Read = Sequence[tuple[RepeatRecord, Sequence[Reading]]]
"""The ok repeats of an experiment in order of time, each with its figures."""


def read(benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]) -> Read:
    """The ok repeats, in order of time, with the limits that are known now. Raises ProtocolError if the figures of one
    cannot be computed from its samples."""
    return [
        (record, recorded_readings(benchmark, machine, params, record))
        for record in in_time(records)
        if record.outcome.state is State.OK
    ]


def impossible(repeats: Read) -> Outcome | None:
    """`invalid` if a repeat exceeds a limit that is known now, else None.

    Facts of a machine may be added after its repeats (memory modules need root). One such repeat is enough: to drop
    only the repeats above the limit would be selection by the result.
    """
    found = [reason for _, figures in repeats if (reason := next(filter(None, map(impossible_reason, figures)), None))]
    if not found:
        return None
    return Outcome.invalid("limit", f"{found[0]}, in {len(found)} of {len(repeats)} repeats, by what is known now")


def figures_of(
    benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]
) -> tuple[FigureResult, ...]:
    """The figures of the ok repeats, in declared order; empty if there are none."""
    return figures(benchmark, params, read(benchmark, machine, params, records))


def figures(benchmark: Benchmark, params: Params, repeats: Read) -> tuple[FigureResult, ...]:
    """The figures of repeats that were read, in declared order."""
    gathered: dict[tuple[object, ...], _Gathered] = {}
    for record, found in repeats:
        for reading in found:
            key = (reading.figure.name, point_key(reading.point))
            gathered.setdefault(key, _Gathered()).add(record, reading)
    order = {figure.name: position for position, figure in enumerate(benchmark.figures)}
    return tuple(entry.result(params) for _, entry in sorted(gathered.items(), key=lambda item: order[str(item[0][0])]))


@dataclass(slots=True)
class _Gathered:
    """The readings of one figure at one point over repeats."""

    readings: list[Reading] = field(default_factory=list)
    repeats: list[RepeatValue] = field(default_factory=list)

    def add(self, record: RepeatRecord, reading: Reading) -> None:
        self.readings.append(reading)
        turns = reading.values if record.seen.get("together") else ()
        self.repeats.append(RepeatValue(record.repeat, record.order, record.t0, reading.value, turns))

    def result(self, params: Params) -> FigureResult:
        figure = self.readings[0].figure
        share, limit = self._share()
        values = [repeat.value for repeat in self.repeats]
        return FigureResult(
            name=figure.name,
            point=self.readings[0].point,
            unit=figure.unit,
            better=figure.better,
            work=figure.work,
            median=median(values),
            ci95=median_interval(values),
            minimum=min(reading.minimum for reading in self.readings),
            maximum=max(reading.maximum for reading in self.readings),
            n_samples=sum(reading.n_samples for reading in self.readings),
            limit=limit,
            repeats=tuple(self.repeats),
            fraction_of_limit=share,
            attainable=figure.attainable(params),
            one_limit_over=figure.one_limit_over,
            customary="" if figure.customary is None else figure.customary(params, median(values)),
        )

    def _share(self) -> tuple[float | None, Limit | None]:
        """(median over repeats of the share of the limit, the limit of the repeat whose share is nearest to it).

        Each repeat is compared with its own limit, which uses the clock of its run: a median value over the clock of
        another repeat would not be the share of any run.
        """
        pairs = [
            (share, reading.limit)
            for reading in self.readings
            if (share := share_of(reading.value, reading.limit, reading.figure.better)) is not None
        ]
        if not pairs:
            return None, next((reading.limit for reading in self.readings if reading.limit is not None), None)
        middle = median(share for share, _ in pairs)
        return middle, min(pairs, key=lambda pair: abs(pair[0] - middle))[1]
