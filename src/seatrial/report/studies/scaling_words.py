"""Text about scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.benchmark import Better
from seatrial.model.parameter import Value
from seatrial.model.scaling import EFFICIENT, Fit, ScalingPoint, ScalingResult
from seatrial.report.studies.verdicts import varying
from seatrial.report.units import bare_name, count, label, setting_number, show_percent, workers_text

FEWEST_FOR_A_FIT = 5
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


def scaling_headline(result: ScalingResult) -> str:
    """One line: "At least 80 % efficient up to 16 threads; 61 % at 32 threads"."""
    points = [point for point, _ in measured(result)]
    rated = [point for point in points if point.efficiency is not None]
    beyond = [point for point in rated if point.workers > result.baseline_workers]
    if not points:
        return "No scaling: no point succeeded"
    if not beyond:
        return f"No scaling: only the point at {workers(result, points[0].workers)} succeeded"
    text = _efficient_to(result, beyond)
    lost = [point for point in failed(result) if point.workers > result.baseline_workers]
    if lost:
        numbers = ", ".join(setting_number(result.along, point.workers) for point in lost)
        text += f"; {numbers} {bare_name(result.along)} gave no result"
    return text


def _efficient_to(result: ScalingResult, beyond: Sequence[ScalingPoint]) -> str:
    threshold = show_percent(EFFICIENT)
    last = beyond[-1]
    if result.efficient_to is None or result.efficient_to <= result.baseline_workers:
        first = beyond[0]
        text = f"Below {threshold} efficient from the first step on: {efficiency_words(first.efficiency)} at "
        text += workers(result, first.workers)
        return (
            text if last is first else f"{text}, {efficiency_words(last.efficiency)} at {workers(result, last.workers)}"
        )
    reached = f"At least {threshold} efficient up to {workers(result, result.efficient_to)}"
    after = next((point for point in beyond if point.workers > result.efficient_to), None)
    if after is None:
        return f"{reached}, the most measured: {efficiency_words(last.efficiency)} there"
    text = f"{reached}; {efficiency_words(after.efficiency)} at {workers(result, after.workers)}"
    return text if after is last else f"{text}, {efficiency_words(last.efficiency)} at {workers(result, last.workers)}"


def efficiency_words(efficiency: float | None) -> str:
    """An efficiency in percent, with enough digits to distinguish it from the threshold."""
    text = show_percent(efficiency)
    if efficiency is None or efficiency == EFFICIENT or text != show_percent(EFFICIENT):
        return text
    return (
        next(
            (finer for digits in (1, 2, 3) if float(finer := f"{efficiency * 100:.{digits}f}") != EFFICIENT * 100),
            f"{efficiency * 100:.6f}",
        )
        + " %"
    )


def scaling_design(result: ScalingResult) -> str:
    """Strong or weak, the baseline, the definition of efficiency, and the fixed parameters."""
    base = workers(result, result.baseline_workers)
    if result.kind == "strong":
        text = (
            f"Strong scaling: the same work for every number of {bare_name(result.along)}. The baseline is {base}, the "
        )
        text += "smallest that succeeded; efficiency is the speedup over it, divided by the growth in workers."
    else:
        text = f"Weak scaling: the work grows with the {bare_name(result.along)}. The baseline is {base}, the smallest "
        text += "that succeeded; efficiency is "
        text += (
            "the time of the baseline over the time of the point."
            if result.better is Better.LOWER
            else "the rate per worker over that of the baseline."
        )
    held = " · ".join(label(name, value) for name, value in result.parameters.items())
    return f"{text} Fixed: {held}." if held else text


def crossing_words(result: ScalingResult) -> str:
    """Between which numbers of workers the efficiency falls below 80 %; "" if it does not."""
    low, high = result.crossing_bounds
    threshold = show_percent(EFFICIENT)
    if high is not None and low is not None:
        numbers = f"{setting_number(result.along, low)} and {workers(result, high)}"
        return (
            f"Efficiency falls below {threshold} between {numbers}: the intervals on either side exclude {threshold}."
        )
    if high is not None:
        return f"Efficiency is below {threshold} at {workers(result, high)}; where it falls below is not certain."
    if result.crossing is not None:
        return f"Whether efficiency falls below {threshold} is not certain: no interval is entirely below it."
    return ""


def winning_parameters(result: ScalingResult) -> dict[float, str]:
    """Workers -> the settings that won there, without those that are equal at every point."""
    chosen = {point.workers: point.parameters for point, _ in measured(result) if point.parameters}
    distinct = [name for name in varying(list(chosen.values())) if name != result.along] if chosen else []
    return {number: _labels(settings, distinct) for number, settings in chosen.items()} if distinct else {}


def _labels(settings: Mapping[str, Value], names: Sequence[str]) -> str:
    return " · ".join(label(name, settings[name]) for name in names if name in settings)


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
