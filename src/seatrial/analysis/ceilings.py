"""Measured ceilings: the best rate of another experiment on the machine, used if the physical limit is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.analysis.roles import figures_with
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Benchmark, Ceiling
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, share_of
from seatrial.model.results.reading import limiting


def with_ceilings(
    benchmark: Benchmark, result: ExperimentResult, others: Sequence[ExperimentResult]
) -> ExperimentResult:
    """The same result with a measured ceiling on each figure whose physical limit is unknown and that declares one."""
    figures = tuple(_with_ceiling(benchmark, result, figure, others) for figure in result.figures)
    return replace(result, figures=figures)


def _with_ceiling(
    benchmark: Benchmark, result: ExperimentResult, figure: FigureResult, others: Sequence[ExperimentResult]
) -> FigureResult:
    declared = benchmark.figure(figure.name)
    if declared.ceiling is None or (figure.limit is not None and figure.limit.value is not None):
        return figure
    found = declared.ceiling(limiting(declared, result.experiment.parameters))
    ceilings = (found,) if isinstance(found, Ceiling) else found or ()
    limits = [
        limit
        for ceiling in ceilings
        if (limit := _measured(ceiling, figure, result, others)) is not None and limit.value is not None
    ]
    if not limits:
        return figure
    limit = min(limits, key=lambda limit: limit.value or 0.0)
    share = share_of(figure.median, limit, figure.better)
    # The factor already refers to counted work: all of such a ceiling is attainable.
    return replace(figure, limit=limit, fraction_of_limit=share, attainable=ALL_OF_IT)


def _measured(
    ceiling: Ceiling, figure: FigureResult, result: ExperimentResult, others: Sequence[ExperimentResult]
) -> Limit | None:
    """What the best of the selected figures allows; None if there is none."""
    parameters = result.experiment.parameters
    sources = [
        (other_figure.median, other.experiment.benchmark)
        for other, other_figure in figures_with(others, *ceiling.roles)
        if _is_source(ceiling, parameters, result, other)
    ]
    if not sources:
        return None
    rate, source = max(sources)
    derivation = ceiling.derivation.replace("{benchmark}", source)
    return Limit(rate * ceiling.factor, figure.unit, derivation, Basis.MEASURED)


def _is_source(ceiling: Ceiling, parameters: Params, result: ExperimentResult, other: ExperimentResult) -> bool:
    """Whether `other` is from the same machine, with the parameters of `result` except those that the ceiling
    states."""
    known = other.experiment.parameters
    wanted = {**{name: value for name, value in parameters.items() if name in known}, **ceiling.parameters}
    wanted |= {name: known[name] for name in ceiling.ignored if name in known}
    return other.experiment.machine == result.experiment.machine and dict(other.experiment.parameters) == wanted
