"""Scaling of figures with the number of workers: speedup, efficiency, and fitted laws.

Figures of several devices at once, made comparable over the number of devices.

If copies of a problem run on several devices (EP), each has its figure, and NAME_all is the sum; a single device has
only NAME. For scaling over the number of devices, the figure of a single device is its sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import why_no_interval
from seatrial.analysis.sweep import Blocks, Given, MeasuredPoint, Sweep, SweepPoint, point_ratio, sweeps
from seatrial.benchmarks import declared_figure
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import setting_number, show_percent, workers_text
from seatrial.model.study.result import EFFICIENT, Fit, ScalingPoint, ScalingResult, judged_points, workers_of
from seatrial.stats.fits import AMDAHL, FEWEST_POINTS, GUSTAFSON, law_interval
from seatrial.stats.interval import MINIMUM_REPEATS

DEVICES = "devices"
"""The parameter with the number of devices used at once."""
ALL = "_all"

Key = tuple[str, Value | None]


def sums_of_devices(results: Sequence[ExperimentResult]) -> tuple[ExperimentResult, ...]:
    """The results with figures of all devices together: those of single devices are removed, and the figure of one
    device alone gets the name of the sum."""
    summed = summed_figures(results)
    return tuple(
        replace(
            result, figures=tuple(whole for figure in result.figures if (whole := whole_of(result, figure, summed)))
        )
        for result in results
    )


def summed_figures(results: Sequence[ExperimentResult]) -> dict[Key, frozenset[str]]:
    """Benchmark and mode -> the figures that have a NAME_all there."""
    found: dict[Key, frozenset[str]] = {}
    for result in results:
        names = {figure.name.removesuffix(ALL) for figure in result.figures if figure.name.endswith(ALL)}
        found[_key(result)] = found.get(_key(result), frozenset()) | names
    return found


def whole_of(result: ExperimentResult, figure: FigureResult, summed: dict[Key, frozenset[str]]) -> FigureResult | None:
    """The figure as one of all devices of its experiment; None if it is of one of several."""
    if figure.name not in summed.get(_key(result), frozenset()):
        return figure
    return replace(figure, name=figure.name + ALL) if result.experiment.parameters.get(DEVICES) == 1 else None


def _key(result: ExperimentResult) -> Key:
    return result.experiment.benchmark, result.experiment.parameters.get("mode")


Kind = Literal["strong", "weak"]
Interval = tuple[float, float]


def scaling(
    results: Sequence[ExperimentResult], kind: Kind, along: str, blocks: Blocks, given: Given | None = None
) -> tuple[ScalingResult, ...]:
    """One for each figure and each combination of what else varies, in order of appearance.

    `along` is a numeric parameter, or a coordinate of a sweep inside the program. The baseline is the smallest number
    of workers that succeeded. With p the ratio of workers, the speedup S for fixed work (strong) is T0/T for times and
    r/r0 for rates; for work that grows with the workers (weak), it is p T0/T (Gustafson's scaled speedup) or r/r0. The
    efficiency is S/p in all cases. Ratios are Hodges-Lehmann estimates, paired by block if there are blocks, so they
    may differ from ratios of medians in the last digits. `given` has axes that are not parameters.

    Amdahl's law is fitted to strong and Gustafson's to weak scaling, since each assumes how the work grows.
    """
    if along == DEVICES:
        results = sums_of_devices(results)
    found = [_result(sweep, kind, along, blocks) for sweep in sweeps(results, (along,), None, given)]
    return tuple(result for result in found if result is not None)


def _result(sweep: Sweep, kind: Kind, along: str, blocks: Blocks) -> ScalingResult | None:
    """The scaling of one sweep; None where no point succeeded at any number of workers."""
    workers = [(number, point) for point in sweep.points if (number := workers_of(point.settings[along]))]
    workers.sort(key=lambda worker: (worker[0], worker[1].figure is None))
    measured = [(number, point.result.id, point.figure) for number, point in workers if point.figure is not None]
    if not measured:
        return None
    fewest, base, base_figure = measured[0]
    if _is_no_work(sweep.benchmark, base_figure):
        return None
    origin = MeasuredPoint(base, base_figure)
    # The first has a figure if any of its number does: failures were then fixed.
    once = reversed(dict(reversed(workers)).items())
    points = tuple(_point(worker, fewest, origin, sweep, kind, along, blocks) for worker in once)
    judged = judged_points(points, fewest)
    fits: tuple[Fit, ...] = ()
    why_not = "No law is fitted: programs had no CPU for part of their time."
    if len(judged) == len(points):
        fits, why_not = _fits(points, fewest, kind, _block_speedups(measured, fewest, kind, blocks))
    efficient_to, crossing = _crossing(judged)
    return ScalingResult(
        benchmark=sweep.benchmark,
        figure=sweep.figure,
        kind=kind,
        along=along,
        parameters={name: value for name, value in sweep.shared.items() if name != along},
        unit=base_figure.unit,
        better=base_figure.better,
        baseline_workers=fewest,
        points=points,
        fits=fits,
        efficient_to=efficient_to,
        crossing=crossing,
        note=" ".join(filter(None, (why_not, *_remarks(points, judged, fewest, along, crossing)))),
        crossing_bounds=_crossing_bounds(judged),
        is_secondary=base_figure.is_secondary,
    )


def _is_no_work(benchmark: str, figure: FigureResult) -> bool:
    """Whether it is neither a rate nor a time of all workers, but a share or a size beside them, or the rate of one."""
    declared = declared_figure(benchmark, figure.name)
    is_of_one = declared is not None and declared.is_of_one_worker
    return is_of_one or (figure.is_secondary and figure.unit in ("1", "B"))


_Worker = tuple[float, SweepPoint]
"""A point with its number of workers."""


def _point(
    worker: _Worker, fewest: float, origin: MeasuredPoint, sweep: Sweep, kind: Kind, along: str, blocks: Blocks
) -> ScalingPoint:
    number, point = worker
    result, figure, growth = point.result, point.figure, number / fewest
    own = {name: value for name, value in point.settings.items() if name != along and sweep.shared.get(name) != value}
    if figure is None:
        reason = f"{result.outcome.state}: {result.outcome.reason}".rstrip(": ")
        return ScalingPoint(number, result.id, None, reason=reason, parameters=own)
    no_cpu = None if result.no_cpu is None else replace(result.no_cpu, who=workers_text(along, number))
    found = ScalingPoint(
        number,
        result.id,
        figure.median,
        figure.ci95,
        figure.n_repeats,
        reason=why_no_interval(figure),
        parameters=own,
        no_cpu=no_cpu,
    )
    if number == fewest:
        return replace(found, speedup=1.0, efficiency=1.0)
    speedup, interval = _speedup(origin, MeasuredPoint(result.id, figure), growth, kind, blocks)
    if speedup is None:
        return replace(found, reason="no speedup: a value is not positive")
    return replace(
        found,
        speedup=speedup,
        speedup_ci95=interval,
        efficiency=speedup / growth,
        efficiency_ci95=None if interval is None else (interval[0] / growth, interval[1] / growth),
    )


def _speedup(
    origin: MeasuredPoint, point: MeasuredPoint, growth: float, kind: Kind, blocks: Blocks
) -> tuple[float | None, Interval | None]:
    """The work per time relative to the baseline, with its 95 % interval."""
    found = point_ratio(origin, point, blocks)
    if found is None:
        return None, None
    ratio, ends = found.interval.ratio, found.interval.ends
    if _is_rate(point.figure):
        return ratio, ends
    work = growth if kind == "weak" else 1.0
    return work / ratio, None if ends is None else (work / ends[1], work / ends[0])


def _is_rate(figure: FigureResult) -> bool:
    return figure.better is Better.HIGHER


def _crossing(points: Sequence[ScalingPoint]) -> tuple[float | None, float | None]:
    """(last efficient number of workers, number at which efficiency drops below the threshold, interpolated in log)."""
    last: tuple[float, float] | None = None
    for point in points:
        if point.efficiency is None:
            continue
        if point.efficiency >= EFFICIENT or last is None:
            last = (point.workers, point.efficiency)
            continue
        share = (last[1] - EFFICIENT) / (last[1] - point.efficiency)
        return last[0], last[0] * (point.workers / last[0]) ** share
    return (None if last is None else last[0]), None


def _crossing_bounds(points: Sequence[ScalingPoint]) -> tuple[float | None, float | None]:
    """(the last number of workers up to which every interval is above the threshold, the first one after it whose
    interval is below)."""
    above: float | None = None
    rated = [point for point in points if point.efficiency is not None]
    for point in rated:
        ends = point.efficiency_ci95 or (point.efficiency == 1.0 and point is rated[0] and (1.0, 1.0)) or None
        if ends is None or ends[0] < EFFICIENT:
            break
        above = point.workers
    below = (
        point.workers
        for point in rated
        if point.efficiency_ci95 is not None
        and point.efficiency_ci95[1] < EFFICIENT
        and (above is None or point.workers > above)
    )
    return above, next(below, None)


def _block_speedups(
    measured: Sequence[tuple[float, str, FigureResult]], fewest: float, kind: Kind, blocks: Blocks
) -> dict[float, list[float]]:
    """Workers -> the speedup in each block: repeats of all numbers of workers that were made together or, if these are
    fewer than six, assigned in order of time."""
    figures = {number: (key, figure) for number, key, figure in reversed(measured)}
    is_one = len({key for key, _ in figures.values()}) == 1
    placed = {
        number: {
            place: repeat.value
            for repeat in figure.repeats
            if (place := repeat.repeat if is_one else blocks.get((key, repeat.repeat))) is not None
        }
        for number, (key, figure) in figures.items()
    }
    common = sorted(set.intersection(*(set(own) for own in placed.values())), key=str)
    if len(common) >= MINIMUM_REPEATS:
        values = {number: [own[place] for place in common] for number, own in placed.items()}
    else:
        n = min(len(figure.values) for _, figure in figures.values())
        values = {number: list(figure.values[:n]) for number, (_, figure) in figures.items()}
    is_rate = _is_rate(measured[0][2])
    found: dict[float, list[float]] = {}
    for number, own in values.items():
        work = number / fewest if kind == "weak" and not is_rate else 1.0
        found[number] = [
            (value / base if is_rate else work * base / value) if value > 0 and base > 0 else 0.0
            for value, base in zip(own, values[fewest], strict=True)
        ]
    return found


def _fits(
    points: Sequence[ScalingPoint], fewest: float, kind: Kind, blocks: Mapping[float, Sequence[float]]
) -> tuple[tuple[Fit, ...], str]:
    """The fitted law for this kind of scaling, and a remark if it is missing or does not describe the points."""
    measured = [(point.workers, point.speedup) for point in points if point.speedup is not None]
    law = AMDAHL if kind == "strong" else GUSTAFSON
    fitted = law.fit([(number / fewest, speedup) for number, speedup in measured])
    if fitted is None:
        needed = f"at least {FEWEST_POINTS} numbers of workers are needed, and {len(measured)} succeeded."
        return (), f"No law is fitted: {needed}"
    numbers, speedups = [number for number, _ in measured], [speedup for _, speedup in measured]
    by_block = list(zip(*(blocks[number] for number in numbers), strict=True))
    known = None
    if all(value > 0.0 for block in by_block for value in block):
        known = law_interval(law, [number / fewest for number in numbers], speedups, by_block)
    misfit = None if known is None or known.misfit is None else numbers[known.misfit]
    ceiling = 1.0 / fitted.share if kind == "strong" and fitted.share > 0.0 and misfit is None else None
    residuals = tuple(zip(numbers, fitted.residuals, strict=True))
    fit = Fit(law.name, fitted.share, residuals, ceiling, None if known is None else known.ends, misfit)
    if fitted.share < 0.0:
        return (fit,), "The fitted serial share is below 0: superlinear scaling, which the law does not describe."
    if fitted.share > 1.0:
        return (fit,), "The fitted serial share is above 1: more workers are slower, which the law does not describe."
    return (fit,), ""


def _remarks(
    points: Sequence[ScalingPoint], judged: Sequence[ScalingPoint], fewest: float, along: str, crossing: float | None
) -> list[str]:
    """Remarks for reading the efficiencies that are judged."""
    remarks: list[str] = []
    before = [point for point in points if point.value is None and point.workers < fewest]
    if before:
        numbers = ", ".join(setting_number(along, point.workers) for point in before)
        remarks.append(f"{numbers} gave no result, so efficiencies are relative to {workers_text(along, fewest)}.")
    if crossing is None:
        return remarks
    doubtful = [point for point in judged if (i := point.efficiency_ci95) is not None and i[0] < EFFICIENT <= i[1]]
    for point in doubtful:
        low, high = point.efficiency_ci95 or (0.0, 0.0)
        remarks.append(
            f"At {setting_number(along, point.workers)}, the interval from {show_percent(low)} to {show_percent(high)} "
            f"includes {show_percent(EFFICIENT)}."
        )
    again = [p for p in judged if p.efficiency is not None and p.efficiency >= EFFICIENT and p.workers > crossing]
    if again:
        numbers = ", ".join(setting_number(along, point.workers) for point in again)
        remarks.append(f"It is {show_percent(EFFICIENT)} or more again at {numbers}.")
    return remarks
