"""Costs as rows of an export: they follow from the site's tariff of today, and so are in no index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.index.chunk import json_text
from seatrial.model.results.exported import ExportedRow
from seatrial.model.results.figure_result import ExperimentResult


def with_costs(rows: Sequence[ExportedRow], results: Sequence[ExperimentResult]) -> tuple[ExportedRow, ...]:
    """The rows, with those of the costs after the others of each experiment."""
    priced = {result.id: result for result in results}
    return tuple(
        row for key, own in grouped((row.experiment, row) for row in rows).items() for row in _of(own, priced.get(key))
    )


def _of(rows: Sequence[ExportedRow], result: ExperimentResult | None) -> Iterator[ExportedRow]:
    yield from rows
    known = {row.figure for row in rows}
    for figure in () if result is None else result.figures:
        if figure.name not in known:
            low, high = figure.ci95 or (None, None)
            yield replace(
                rows[0],
                figure=figure.name,
                figure_parameters=json_text({**result.experiment.parameters, **figure.point}) if result else "{}",
                unit=figure.unit,
                better=figure.better.value,
                median=figure.median,
                ci95_low=low,
                ci95_high=high,
                n_repeats=figure.n_repeats,
                fraction_of_limit=None,
            )
