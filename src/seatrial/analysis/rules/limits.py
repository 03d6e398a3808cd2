"""Rules about figures and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import is_of_devices
from seatrial.analysis.rules.blas import has_older_kernels
from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.expectation import (
    ABOVE_CEILING,
    FAR_BELOW,
    LOW_SHARE,
    Judge,
    OneLimit,
    settings_of_limit,
    under,
)
from seatrial.analysis.rules.finding import Subject, note, rule, warning
from seatrial.analysis.rules.words import Names, again, listed
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import count, show, show_percent
from seatrial.model.units import Unit


class Reach(Frozen):
    """A figure with a known limit; `ceiling` is the limit's value, `of_attainable` is compared with thresholds."""

    share: float
    of_attainable: float
    result: ExperimentResult
    figure: FigureResult
    limit: Limit
    ceiling: float


@rule(Subject.LIMITS)
def below_limit(case: Case) -> Iterator[Finding]:
    """Fires if even the best figure of a benchmark is far below a physical limit; see `expectation`.

    Figures of one benchmark under one limit (copy, scale, add and triad under that of DRAM) are one finding.
    """
    judge, names = Judge(case.results), Names(case.results)
    groups: dict[tuple[OneLimit, float], list[Reach]] = {}
    for reach in _reaches(case):
        one = under(reach.result, reach.figure)
        if one is not None and judge.is_low(reach.result, reach.figure):
            groups.setdefault((one, reach.ceiling), []).append(reach)
    for group in groups.values():
        yield _below(case.machine, sorted(group, key=lambda reach: reach.of_attainable), names)


@rule(Subject.LIMITS)
def far_below_limit(case: Case) -> Iterator[Finding]:
    """Fires if even the best figure under an unconfirmed limit is below `FAR_BELOW` of it: no doubt about the limit is
    that large. What `blas_kernels_older` explains is left to it."""
    names, explained = Names(case.results), has_older_kernels(case)
    best: dict[object, Reach] = {}
    for reach in _reaches(case):
        if reach.limit.basis is Basis.PHYSICAL and not reach.limit.confirmed:
            key = (settings_of_limit(reach.result, reach.figure), reach.figure.name)
            if key not in best or reach.of_attainable > best[key].of_attainable:
                best[key] = reach
    for reach in best.values():
        if reach.of_attainable >= FAR_BELOW or reach.result.id in explained:
            continue
        yield warning(
            "far-below-limit",
            observation=f"{names.figure(reach.result, reach.figure)} reaches "
            f"{show(reach.figure.median, reach.figure.unit)}, {show_percent(reach.share)} of its unconfirmed limit of "
            f"{show(reach.ceiling, reach.figure.unit)}.",
            diagnosis="The limit rests on a value that was not confirmed for this machine, but it would have to be "
            f"wrong by more than a factor of {1 / FAR_BELOW:.0f}"
            f"{_possible_causes(reach.result, reach.figure.unit).replace(', protocol and refresh included', '')}.",
            remedy=f"Fix the other findings, then measure again: `{again(case.machine, reach.result)}`",
            evidence=f"{_interval(reach.figure)}; limit: {reach.limit.derivation}",
        )


def _below(machine: Machine, reaches: Sequence[Reach], names: Names) -> Finding:
    worst, others = reaches[0], reaches[1:]
    figure = worst.figure
    least = LOW_SHARE * figure.attainable.share
    expected = worst.ceiling * least if figure.better is Better.HIGHER else worst.ceiling / least
    also = listed(f"{reach.figure.name} ({show_percent(reach.share)})" for reach in others)
    why = f" ({figure.attainable.why})" if figure.attainable.why else ""
    healthy = show_percent(LOW_SHARE) + (" of the attainable share" if why else "")
    return warning(
        "below-physical-limit",
        observation=f"{names.figure(worst.result, figure)} reaches {show(figure.median, figure.unit)}, "
        f"{show_percent(worst.share)} of its physical limit of {show(worst.ceiling, figure.unit)}{why}."
        + (f" Also far below this limit: {also}." if others else ""),
        diagnosis=f"Expected: {show(expected, figure.unit)} or better. A healthy machine reaches {healthy}"
        f"{_possible_causes(worst.result, figure.unit)}, or the limit does not apply to this machine.",
        remedy=f"Fix the other findings, then measure again: `{again(machine, worst.result)}`",
        evidence=f"{_interval(figure)}; limit: {worst.limit.derivation}",
        loss=1 - worst.of_attainable,
    )


def _possible_causes(result: ExperimentResult, unit: Unit) -> str:
    if is_of_devices(result):
        return (
            ". Possible causes: a lowered clock (power, heat), other work on the device; for copies to and from the "
            "host also unpinned memory, memory on the far socket, or a link that slows down under load"
        )
    if unit == "flop/s":
        return (
            ". Possible causes: a library or compiler without code for this processor, other work on the machine, "
            "threads that share a core"
        )
    return (
        ", protocol and refresh included. Possible causes: a setting, missing memory channels, other work on the "
        "machine, too few threads for the limit"
    )


@rule(Subject.LIMITS)
def above_ceiling(case: Case) -> Iterator[Finding]:
    """Fires if figures exceed a ceiling that another benchmark measured, or a limit that rests on an unconfirmed value:
    unusual, but possible."""
    names = Names(case.results)
    above = sorted(
        (reach for reach in _reaches(case) if not reach.limit.is_physical and reach.share > ABOVE_CEILING),
        key=lambda reach: -reach.share,
    )
    if not above:
        return
    result, figure = above[0].result, above[0].figure
    is_measured = above[0].limit.basis is Basis.MEASURED
    what = "a measured ceiling" if is_measured else "an unconfirmed limit"
    others = f" So are {len(above) - 1} more." if len(above) > 1 else ""
    yield note(
        "above-expected",
        observation=f"{names.figure(result, figure)} is above expected: {show(figure.median, figure.unit)} is "
        f"{show_percent(above[0].share)} of {what}.{others}",
        diagnosis="A measured ceiling is what another program reached, not the maximum of the hardware. This program "
        "reached more: its instructions or data suit the machine better, or the ceiling was measured under load."
        if is_measured
        else "The limit rests on a value that was not confirmed for this machine: the figure may be right and the "
        "limit too low.",
        remedy=f"Measure both again side by side: `{again(case.machine, result)}`",
        evidence=f"ceiling: {above[0].limit.derivation}; "
        + listed(f"{names.figure(reach.result, reach.figure)}: {show_percent(reach.share)}" for reach in above),
    )


def _reaches(case: Case) -> Iterator[Reach]:
    """Every figure with a known limit."""
    for result in case.results:
        for figure in result.figures:
            share, of_attainable, limit = figure.fraction_of_limit, figure.share_of_attainable, figure.limit
            if share is not None and of_attainable is not None and limit is not None and limit.value is not None:
                yield Reach(share, of_attainable, result, figure, limit, limit.value)


def _interval(figure: FigureResult) -> str:
    repeats = f"{count(figure.n_repeats, 'repeat')}, {count(figure.n_samples, 'sample')}"
    if figure.ci95 is None:
        return f"median of {repeats}"
    low, high = (show(end, figure.unit) for end in figure.ci95)
    return f"median of {repeats}, 95 % interval {low} to {high}"
