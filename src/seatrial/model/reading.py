"""From the samples of one repeat to its figures: one value for each figure and point, because the repeat is the unit.

Samples inside a process are autocorrelated; counting them as independent gave 73 % false alarms at 1 % noise between
runs (docs/methodology.md). So the value of a repeat is the median of its samples, and statistics use repeats only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from seatrial.errors import ProtocolError
from seatrial.model.benchmark import Benchmark, Better, Figure
from seatrial.model.emulation import is_emulated
from seatrial.model.limit import IMPOSSIBLE_ABOVE, Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params, Value
from seatrial.model.protocol import UNREADABLE
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import Sample, point_key

PointKey = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Reading:
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
    """The figures of one repeat, in declared order, points in order of appearance. `clock_step_s` is the step of the
    clock that the samples were timed with, in seconds; 0: unknown. It does not limit secondary figures, which are
    counted, not timed.

    Raises one of `UNREADABLE` if values that a figure needs are missing from a sample, or are impossible; the judge
    turns that into `invalid`.
    """
    has_limits = not is_emulated(machine)
    found: list[Reading] = []
    by_series: dict[str, list[tuple[list[Sample], float]]] = {}
    for figure in benchmark.figures:
        if figure.series not in by_series:
            groups = _by_point(figure.series, samples).values()
            by_series[figure.series] = [(group, _resolution(group, clock_step_s)) for group in groups]
        for group, resolution in by_series[figure.series]:
            values = [figure.value(sample) for sample in group]
            if not all(map(isfinite, values)):
                raise ValueError(f"{figure.name} is not a finite number")
            found.append(
                Reading(
                    figure,
                    group[0].point,
                    median(values),
                    min(values),
                    max(values),
                    len(values),
                    figure.limit(machine, params, group) if figure.limit is not None and has_limits else None,
                    tuple(values),
                    0.0 if figure.is_secondary else resolution,
                )
            )
    return found


def _resolution(samples: Sequence[Sample], clock_step_s: float) -> float:
    """The coarsest resolution of samples: as stated with them (`extra["resolution"]`: the printed digits, or another
    timer), else the clock's step over the time. Raises ValueError, TypeError if a stated one is not a share."""
    stated = [float(sample.extra["resolution"]) for sample in samples if "resolution" in sample.extra]
    if stated:
        if not all(0.0 <= share < float("inf") for share in stated):
            raise ValueError("a resolution is not zero or a positive number")
        return max(stated)
    shortest = min(sample.elapsed_s for sample in samples) if clock_step_s > 0.0 else 0.0
    return clock_step_s / shortest if shortest > 0.0 else 0.0


def _by_point(series: str, samples: Sequence[Sample]) -> Mapping[PointKey, list[Sample]]:
    """The samples of a series by point, in order of appearance."""
    groups: dict[PointKey, list[Sample]] = {}
    point: Mapping[str, Value] | None = None
    group: list[Sample] = []
    for sample in samples:
        if sample.series == series:
            if sample.point is not point:  # samples of one column share it
                point = sample.point
                group = groups.setdefault(point_key(point), [])
            group.append(sample)
    return groups


def recorded_readings(benchmark: Benchmark, machine: Machine, params: Params, record: RepeatRecord) -> list[Reading]:
    """The figures of a recorded repeat. Raises ProtocolError if they cannot be computed: the record is damaged, or was
    written by a version whose program reported other values."""
    samples = tuple(record.samples)  # read from their file once: every figure goes through them
    try:
        return readings(benchmark, machine, params, samples, record.seen.get("clock_step_s", 0.0))
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
