"""Whether figures are within their stored references (docs/adr/0066).

A reference states a range: its two ends, one bound ("more than", "up to"), or a value, which a figure may miss by the
margin on the side that is worse. A figure fails if its whole interval is beyond the range, and passes if none of it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from seatrial.analysis.grouped import grouped
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import JsonParams
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Finite, Number, published
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Qualifier, Reference
from seatrial.model.study.study import DEFAULT_MARGIN
from seatrial.model.units import Unit
from seatrial.references.loader import own_references, reference_named
from seatrial.references.words import figures_of_reference

_LEAST = frozenset({Qualifier.MORE_THAN, Qualifier.LOWEST})
_MOST = frozenset({Qualifier.UP_TO, Qualifier.LESS_THAN, Qualifier.WITHIN, Qualifier.HIGHEST})
_ENDS = {Qualifier.LOWEST: "-low", Qualifier.HIGHEST: "-high"}


@published("ReferenceCheck")
class ReferenceCheck(Frozen):
    """A figure beside its stored reference. `low` and `high` are what it must be within (null: no bound)."""

    reference: Annotated[str, "its id; of a range without -low or -high"]
    benchmark: str
    figure: str
    parameters: JsonParams
    unit: Unit
    low: Finite
    high: Finite
    median: Number
    ends: Annotated[tuple[Number, Number], "the 95 % interval; without one, the least and the greatest repeat"]
    has_interval: bool
    verdict: Literal["pass", "fail", "undecided"]
    why: Annotated[str, "why it is not judged; empty: it is"] = ""


class _Range(Frozen):
    low: float | None
    high: float | None
    references: tuple[Reference, ...]


def stored_references(named: Iterable[str] = ()) -> tuple[Reference, ...]:
    """The references of the site's own file, and those with these ids. Raises UsageError if there are none."""
    found = {one.id: one for one in (*own_references(), *map(reference_named, named))}
    if not found:
        raise UsageError(
            "there are no stored references",
            "write them to ~/.config/seatrial/references.toml, or name the file in SEATRIAL_REFERENCES",
        )
    return tuple(found.values())


def checked_references(
    references: Sequence[Reference], results: Sequence[ExperimentResult], margin: float = DEFAULT_MARGIN
) -> tuple[ReferenceCheck, ...]:
    """Each figure beside each reference that matches it, in the order of the references."""
    return tuple(
        _check(name, allowed, result, figure)
        for name, allowed in _ranges(references, margin).items()
        for result, figure in figures_of_reference(allowed.references[0], results)
    )


def _ranges(references: Sequence[Reference], margin: float) -> dict[str, _Range]:
    by_name = grouped((one.id.removesuffix(_ENDS.get(one.qualifier, "")), one) for one in references)
    found = {}
    for name, own in by_name.items():
        bounds = [_bounds(one, margin) for one in own]
        low = next((low for low, _ in bounds if low is not None), None)
        high = next((high for _, high in bounds if high is not None), None)
        found[name] = _Range(low, high, tuple(own))
    return found


def _bounds(one: Reference, margin: float) -> tuple[float | None, float | None]:
    if one.qualifier in _LEAST:
        return one.value, None
    if one.qualifier in _MOST:
        return None, one.value
    if one.better is Better.HIGHER:
        return one.value / (1.0 + margin), None
    return None, one.value * (1.0 + margin)


def _check(name: str, allowed: _Range, result: ExperimentResult, figure: FigureResult) -> ReferenceCheck:
    ends = figure.ci95 or (figure.minimum, figure.maximum)
    low, high = allowed.low, allowed.high
    verdict: Literal["pass", "fail", "undecided"] = "undecided"
    why = ""
    if (low is None or ends[0] >= low) and (high is None or ends[1] <= high):
        verdict = "pass"
    elif result.no_cpu is not None:
        why = "its programs had no CPU for a part of the time"
    elif (low is not None and ends[1] < low) or (high is not None and ends[0] > high):
        verdict = "fail"
    return ReferenceCheck(
        name,
        result.experiment.benchmark,
        figure.name,
        {**result.experiment.parameters, **figure.point},
        figure.unit,
        low,
        high,
        figure.median,
        ends,
        figure.ci95 is not None,
        verdict,
        why,
    )
