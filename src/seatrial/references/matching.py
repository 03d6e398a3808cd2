"""The references for a figure, and a reference as one side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Reference
from seatrial.model.study.comparison import Side
from seatrial.model.units import Unit
from seatrial.references.loader import all_references
from seatrial.references.words import machine_of, value_text


def references_for(benchmark: str, figure: str, parameters: Mapping[str, Value], unit: Unit) -> tuple[Reference, ...]:
    """The references for a figure, in file order.

    `parameters` are those of the experiment and of the point inside the program. A reference matches if each parameter
    that it states has the same value there.
    """
    wanted = (benchmark, figure, unit)
    return tuple(
        reference
        for reference in all_references()
        if (reference.benchmark, reference.figure, reference.unit) == wanted
        and _states(reference.parameters, parameters)
    )


def figures_of_reference(
    reference: Reference, results: Iterable[ExperimentResult]
) -> tuple[tuple[ExperimentResult, FigureResult], ...]:
    """The figures that match a reference, each with its experiment, in the order of the results.

    The matching is that of `references_for`. Experiments that did not succeed have no figures.
    """
    return tuple(
        (result, figure)
        for result in results
        if result.experiment.benchmark == reference.benchmark and result.outcome.is_ok
        for figure in result.figures
        if (figure.name, figure.unit) == (reference.figure, reference.unit)
        and _states(reference.parameters, {**result.experiment.parameters, **figure.point})
    )


def reference_side(reference: Reference) -> Side:
    """The reference as a side of a comparison: its value without repeats, labelled with machine and qualifier.

    A comparison with it has no interval, and its verdict is ambiguous.
    """
    where = machine_of(reference)
    name = (
        f"reference {reference.id}: {value_text(reference)}{f', {where}' if where else ''} (other machine, no interval)"
    )
    return Side(name=name, median=reference.value, is_reference=True)


def _states(stated: Mapping[str, Value], given: Mapping[str, Value]) -> bool:
    return all(name in given and _same(value, given[name]) for name, value in stated.items())


def _same(stated: Value, given: Value) -> bool:
    """Whether two settings are equal; true is not 1."""
    return isinstance(stated, bool) == isinstance(given, bool) and stated == given
