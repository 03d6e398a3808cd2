"""Text about scaling."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.no_cpu import NOT_JUDGED, no_cpu_sentence
from seatrial.model.spelling import (
    arrow,
    bare_name,
    count,
    label,
    setting_number,
    show,
    show_percent,
    spark_line,
    workers_text,
)
from seatrial.model.study.result import EFFICIENT, Fit, ScalingPoint, ScalingResult, judged_points
from seatrial.model.study.study import varying
from seatrial.report.studies.effect import ratio_rule

FEWEST_FOR_A_FIT = 5
_WIDE = 0.02
"""In an interval of an efficiency this wide, tenths of a percent are meaningless."""
_MOST_DIGITS = 4
_LAWS = {"amdahl": "Amdahl's law", "gustafson": "Gustafson's law"}


def measured(result: ScalingResult) -> list[tuple[ScalingPoint, float]]:
    """The points with a value, and the value, sorted by number of workers."""
    points = sorted(result.points, key=lambda point: point.workers)
    return [(point, point.value) for point in points if point.value is not None]


def failed(result: ScalingResult) -> list[ScalingPoint]:
    """The points without a value."""
    return sorted((point for point in result.points if point.value is None), key=lambda point: point.workers)


def workers(result: ScalingResult, number: float) -> str:
    """A number of workers with its name: "16 threads", "1 node"."""
    return workers_text(result.along, number)


def ends_words(result: ScalingResult) -> str:
    """The first and the last point in one line, with a bar for each: "8.20 s at 1 thread to 1.31 s at 8 threads
    (efficiency 78 % [77, 80]) █▄▂▁"."""
    points = measured(result)
    if not points:
        return "no result"
    (first, low), (last, high) = points[0], points[-1]
    start = f"{show(low, result.unit)} {arrow(result.better)} at {workers(result, first.workers)}"
    if len(points) == 1:
        return start
    efficiency = efficiency_words(result, last)
    rated = f" (efficiency {efficiency})" if efficiency else ""
    bars = spark_line([value for _, value in points])
    return f"{start} to {show(high, result.unit)} at {workers(result, last.workers)}{rated} {bars}"


def efficiency_words(result: ScalingResult, point: ScalingPoint) -> str:
    """An efficiency with its interval: "61 % [58, 64]"; "" if there is none. The baseline is 100 % by definition."""
    if point.efficiency is None:
        return ""
    if point.workers == result.baseline_workers:
        return show_percent(point.efficiency)
    text = efficiency_range((point.efficiency, point.efficiency), point.efficiency_ci95)
    return text if point in judged_points(result.points, result.baseline_workers) else f"{text}, {NOT_JUDGED}"


def efficiency_range(values: tuple[float, float], ci95: tuple[float, float] | None) -> str:
    """Efficiencies of several figures at one point: "61 to 63 % [58, 66]". They have enough digits that none looks like
    the threshold unless it is, and as many as their interval."""
    least = 0 if ci95 is None or ci95[1] - ci95[0] >= _WIDE else 1
    digits = _digits((*values, *(ci95 or ())), least)
    low, high = (f"{value * 100:.{digits}f}" for value in values)
    shown = f"{low if low == high else f'{low} to {high}'} %"
    if ci95 is None:
        return f"{shown}, no interval"
    return f"{shown} [{', '.join(f'{end * 100:.{digits}f}' for end in ci95)}]"


def _digits(shares: Sequence[float], least: int) -> int:
    threshold = EFFICIENT * 100
    digits = least
    while digits < _MOST_DIGITS and any(
        share != EFFICIENT and f"{share * 100:.{digits}f}" == f"{threshold:.{digits}f}" for share in shares
    ):
        digits += 1
    return digits


def scaling_design(result: ScalingResult) -> str:
    """Strong or weak, the baseline, the definition of efficiency, and the fixed parameters."""
    along, base = bare_name(result.along), workers(result, result.baseline_workers)
    if result.kind == "strong":
        work, efficiency = "the same work for every number of", "the speedup over it, divided by the growth in workers"
    elif result.better is Better.LOWER:
        work, efficiency = "the work grows with the", "the time of the baseline over the time of the point"
    else:
        work, efficiency = "the work grows with the", "the rate per worker over that of the baseline"
    text = (
        f"{result.kind.capitalize()} scaling: {work} {along}. The baseline is {base}, the smallest that succeeded; "
        f"efficiency is {efficiency}."
    )
    first = next((point.value for point in result.points if point.workers == result.baseline_workers), None)
    if first is not None and (result.kind == "strong" or result.better is Better.HIGHER):
        values = ((point.speedup, point.value, first) for point in result.points)
        swapped = ((speedup, base, value) for speedup, value, base in values)
        note = ratio_rule(swapped if result.better is Better.LOWER else values)
        text = " ".join(filter(None, (text, note.replace("A ratio is", "A speedup is"))))
    held = " · ".join(label(name, value) for name, value in result.parameters.items())
    return f"{text} Fixed: {held}." if held else text


def crossing_words(result: ScalingResult) -> str:
    """Between which numbers of workers the efficiency falls below 80 %; "" if it does not."""
    missing = [point.no_cpu for point in result.points if point.no_cpu is not None]
    if len(judged_points(result.points, result.baseline_workers)) < len(result.points):
        return f"{no_cpu_sentence(missing, f'the efficiency is {NOT_JUDGED} where CPUs were missing', noun='point')}."
    low, high = result.crossing_bounds
    least = show_percent(EFFICIENT)
    if high is not None and low is not None:
        numbers = f"{setting_number(result.along, low)} and {workers(result, high)}"
        return f"Efficiency falls below {least} between {numbers}: the intervals on either side exclude {least}."
    if high is not None:
        return f"Efficiency is below {least} at {workers(result, high)}; where it falls below is not certain."
    if result.crossing is not None:
        return f"Whether efficiency falls below {least} is not certain: no interval is entirely below it."
    return ""


def winning_parameters(result: ScalingResult) -> dict[float, str]:
    """Workers -> the settings that won there, without those that are equal at every point."""
    chosen = {point.workers: point.parameters for point, _ in measured(result) if point.parameters}
    distinct = [name for name in varying(list(chosen.values())) if name != result.along] if chosen else []
    return {
        number: " · ".join(label(name, settings[name]) for name in distinct if name in settings)
        for number, settings in (chosen.items() if distinct else ())
    }


def fit_words(result: ScalingResult, fit: Fit) -> str:
    """A fitted law: its constant with the interval, the maximum speedup, and the largest residual; or that it does not
    describe the points."""
    law, points = _LAWS[fit.law], count(len(fit.residuals), "point")
    if fit.misfit is not None:
        text = (
            f"{law} does not describe the {points}: at {workers(result, fit.misfit)}, it is off by more than the noise."
        )
    else:
        interval = "no interval (fewer than 6 blocks of repeats)"
        if fit.ci95 is not None:
            interval = f"95 % interval {fit.ci95[0] * 100:.3g} to {fit.ci95[1] * 100:.3g} %"
        text = f"{law}: serial fraction {fit.parameter * 100:.3g} %, {interval}, fitted to {points}."
    if fit.ceiling is not None:
        text += f" By this law, the speedup over the baseline is at most {fit.ceiling:.3g}{_ceiling_interval(fit)}."
    share = largest_residual(result, fit)
    if share is not None:
        text += f" The largest residual is {show_percent(share)} of the measured speedup."
    return text


def _ceiling_interval(fit: Fit) -> str:
    if fit.ci95 is None or fit.ci95[1] <= 0.0:
        return ""
    low, high = 1.0 / fit.ci95[1], fit.ci95[0]
    return f" (at least {low:.3g})" if high <= 0.0 else f" ({low:.3g} to {1.0 / high:.3g})"


def largest_residual(result: ScalingResult, fit: Fit) -> float | None:
    """The largest residual as a fraction of the speedup at its point, or None."""
    speedups = {point.workers: point.speedup for point in result.points}
    shares = [
        abs(residual) / speedup
        for number, residual in fit.residuals
        if (speedup := speedups.get(number)) is not None and speedup > 0
    ]
    return max(shares, default=None)


def no_fit_words(result: ScalingResult) -> str:
    """The reason for a missing fit, or a note on the efficiencies, or ""."""
    if result.note or result.fits:
        return result.note
    number = len(measured(result))
    return f"No law was fitted: a fit needs at least {FEWEST_FOR_A_FIT} points, and {number} succeeded."
