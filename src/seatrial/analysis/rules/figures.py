"""Rules about figures and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.judge import ABOVE_CEILING, LOW_SHARE, Judge
from seatrial.analysis.rules.words import Names, amount, listed, percent
from seatrial.model.benchmark import Better
from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.finding import Finding, Severity
from seatrial.model.limit import Basis, Limit


@dataclass(frozen=True, slots=True)
class Reach:
    """A figure with a known limit; `ceiling` is the limit's value."""

    share: float
    result: ExperimentResult
    figure: FigureResult
    limit: Limit
    ceiling: float


def below_limit(case: Case) -> Iterator[Finding]:
    """Fires where even the best point of a benchmark stays far below a physical limit; see `judge`.

    Figures of one benchmark under one limit (copy, scale, add and triad under that of DRAM) make one finding.
    """
    judge, names = Judge(case.results), Names(case.results)
    groups: dict[tuple[str, str], list[Reach]] = {}
    for reach in _reaches(case):
        ceiling = judge.ceiling(reach.result, reach.figure)
        if ceiling is not None and judge.is_low(reach.result, reach.figure):
            benchmark, _, derivation = ceiling
            groups.setdefault((benchmark, derivation), []).append(reach)
    for group in groups.values():
        yield _below(sorted(group, key=lambda reach: reach.share), names)


def _below(reaches: Sequence[Reach], names: Names) -> Finding:
    worst, others = reaches[0], reaches[1:]
    figure = worst.figure
    ought = worst.ceiling * LOW_SHARE if figure.better is Better.HIGHER else worst.ceiling / LOW_SHARE
    also = listed(f"{reach.figure.name} ({percent(reach.share)})" for reach in others)
    return Finding(
        rule="below-physical-limit",
        severity=Severity.WARNING,
        devices=(),
        observation=f"{names.figure(worst.result, figure)} reaches {amount(figure.median, figure.unit)}, "
        f"{percent(worst.share)} of its physical limit of {amount(worst.ceiling, figure.unit)}."
        + (f" Below the same limit stay {also}." if others else ""),
        diagnosis=f"Expected: {amount(ought, figure.unit)} or better. A sound machine reaches {percent(LOW_SHARE)}, "
        "protocol and refresh included, so something holds it back: a setting, missing memory channels, other work on "
        "the machine, too few threads for the limit, or a limit that is not this machine's.",
        remedy="Mend what the other findings name, then measure again: "
        f"`seatrial run {worst.result.experiment.benchmark} --again`",
        evidence=f"{_interval(figure)}; limit: {worst.limit.derivation}",
        loss=1 - worst.share,
    )


def above_ceiling(case: Case) -> Iterator[Finding]:
    """Says so where figures exceed a ceiling that another benchmark measured: unusual, but possible."""
    names = Names(case.results)
    above = sorted(
        (reach for reach in _reaches(case) if reach.limit.basis is Basis.MEASURED and reach.share > ABOVE_CEILING),
        key=lambda reach: -reach.share,
    )
    if not above:
        return
    result, figure = above[0].result, above[0].figure
    others = f" So are {len(above) - 1} more." if len(above) > 1 else ""
    yield Finding(
        rule="above-expected",
        severity=Severity.INFO,
        devices=(),
        observation=f"{names.figure(result, figure)} is above expected: {amount(figure.median, figure.unit)} is "
        f"{percent(above[0].share)} of a measured ceiling.{others}",
        diagnosis="A measured ceiling is what another program reached, not what the hardware can do at most. This one "
        "reached more: its instructions or its data suit the machine better, or the ceiling was measured under load.",
        remedy=f"Measure both again side by side: `seatrial run {result.experiment.benchmark} --again`",
        evidence=f"ceiling: {above[0].limit.derivation}; "
        + listed(f"{names.figure(reach.result, reach.figure)}: {percent(reach.share)}" for reach in above),
    )


def _reaches(case: Case) -> Iterator[Reach]:
    """Every figure that has a limit with a value."""
    for result in case.results:
        for figure in result.figures:
            share, limit = figure.fraction_of_limit, figure.limit
            if share is not None and limit is not None and limit.value is not None:
                yield Reach(share, result, figure, limit, limit.value)


def _interval(figure: FigureResult) -> str:
    repeats = f"{figure.n_repeats} repeats, {figure.n_samples} samples"
    if figure.ci95 is None:
        return f"median of {repeats}"
    low, high = (amount(end, figure.unit) for end in figure.ci95)
    return f"median of {repeats}, 95 % interval {low} to {high}"
