"""The references for a figure, a reference as one side of a comparison, and text about references: the published value,
the machine, the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Qualifier, Reference
from seatrial.model.spelling import show
from seatrial.model.study.comparison import Side
from seatrial.model.units import Unit
from seatrial.references.loader import all_references

ANOTHER_MACHINE = "another machine, no interval"
_MOST_DIGITS = 9
_RATIO = "1"
_ENDS = {Qualifier.LOWEST: "lowest of a range", Qualifier.HIGHEST: "highest of a range"}
_SHOWN_SEPARATELY = ("machine", "of", "over")
_LONG_S = 120.0
"""Longer times are shown in minutes elsewhere; a published number of seconds keeps its digits."""


def value_text(reference: Reference) -> str:
    """The value with its published digits and qualifier: "about 5.5 TFLOP/s"."""
    value, unit = reference.value, reference.unit
    digits = next(d for d in range(1, _MOST_DIGITS + 1) if _is_same(value, d) or d == _MOST_DIGITS)
    is_long = unit == "s" and value >= _LONG_S
    number = f"{value:.10g}{' s' if is_long else ''}" if is_long or unit == _RATIO else show(value, unit, digits)
    if reference.qualifier in _ENDS:
        return f"{number} ({_ENDS[reference.qualifier]})"
    return f"{reference.qualifier.value} {number}".strip()


def machine_of(reference: Reference) -> str:
    """The machine as published, or ""."""
    return reference.configuration.get("machine", "")


def configuration_text(reference: Reference, without: Collection[str] = ()) -> str:
    """The other published settings: "V100 over P100; gpus: 1, 2 and 4". `without` are names to skip."""
    settings = reference.configuration
    of, over = settings.get("of"), settings.get("over")
    quotient = f"{of or ''} over {over}".strip() if over else of or ""
    others = (
        f"{name.replace('_', ' ')}: {text}"
        for name, text in settings.items()
        if name not in (*_SHOWN_SEPARATELY, *without)
    )
    return "; ".join(filter(None, (quotient, *others)))


def source_text(reference: Reference) -> str:
    """The source, with the year if the source does not contain it."""
    year = "" if reference.year is None or str(reference.year) in reference.source else str(reference.year)
    return ", ".join(filter(None, (reference.source, year))) or "no source given"


def contradiction_text(reference: Reference) -> str:
    """The values of its source that it contradicts, or ""."""
    return f"contradicts {', '.join(reference.contradicts)}" if reference.contradicts else ""


def _is_same(value: float, digits: int) -> bool:
    return abs(float(f"{value:.{digits - 1}e}") - value) <= 1e-9 * abs(value)


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
