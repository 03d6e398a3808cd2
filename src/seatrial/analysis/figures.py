"""Figures of an experiment from the records of its repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from seatrial.model.benchmark import Benchmark
from seatrial.model.figure_result import FigureResult, RepeatValue
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.outcome import Outcome, State
from seatrial.model.parameter import Params
from seatrial.model.reading import Reading, readings
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import point_key
from seatrial.stats.interval import median_interval


def outcome_of(records: Sequence[RepeatRecord]) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome of an experiment: that of its latest repeat, with a note on earlier ones that came out otherwise.

    The latest decides because a repeat that is not ok ends its experiment: what follows was asked for again, after
    somebody mended the cause.
    """
    if not records:
        return Outcome.skipped("no repeat of it has finished"), ()
    latest = max(records, key=lambda record: record.t0).outcome
    if not latest.is_ok:
        return latest, ()
    earlier = [record for record in records if not record.outcome.is_ok]
    return latest, tuple(
        f"repeat {record.repeat} is left out: {record.outcome.state} ({record.outcome.reason})" for record in earlier
    )


def figures_of(
    benchmark: Benchmark, machine: Machine, params: Params, records: Sequence[RepeatRecord]
) -> tuple[FigureResult, ...]:
    """The figures of the ok repeats, in declared order; empty where there is none."""
    gathered: dict[tuple[object, ...], _Gathered] = {}
    for record in records:
        if record.outcome.state is not State.OK:
            continue
        for reading in readings(benchmark, machine, params, record.samples):
            key = (reading.figure.name, point_key(reading.point))
            gathered.setdefault(key, _Gathered()).add(record, reading)
    order = {figure.name: position for position, figure in enumerate(benchmark.figures)}
    return tuple(entry.result() for _, entry in sorted(gathered.items(), key=lambda item: order[str(item[0][0])]))


@dataclass(slots=True)
class _Gathered:
    """The readings of one figure at one point over repeats."""

    readings: list[Reading] = field(default_factory=list)
    repeats: list[RepeatValue] = field(default_factory=list)

    def add(self, record: RepeatRecord, reading: Reading) -> None:
        self.readings.append(reading)
        self.repeats.append(RepeatValue(record.repeat, record.order, record.t0, reading.value))

    def result(self) -> FigureResult:
        figure = self.readings[0].figure
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
            limit=self._limit(),
            repeats=tuple(self.repeats),
        )

    def _limit(self) -> Limit | None:
        """The limit of the middle repeat, by value: each carries the clock of its own run."""
        limits = [reading.limit for reading in self.readings if reading.limit is not None]
        known = sorted((limit for limit in limits if limit.value is not None), key=lambda limit: limit.value or 0.0)
        if known:
            return known[len(known) // 2]
        return limits[0] if limits else None
