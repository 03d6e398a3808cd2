"""`seatrial.results/1`: results as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.limit import Basis
from seatrial.model.parameter import Params
from seatrial.report.documents.compare import outlier_document


def results_document(
    results: Sequence[ExperimentResult], environments: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The object that CONTRACT names; every number is finite, what is unknown is null.

    Beyond the contract: `outliers`, of the form that `compare` gives them, with the id of their experiment. It is there
    where pairs of ranks were screened for slow ones; an empty list says that none was found.
    """
    document = {
        "schema": "seatrial.results/1",
        "environments": {key: dict(document) for key, document in environments.items()},
        "experiments": [_experiment(result) for result in results],
    }
    screened = [(result.id, result.screening) for result in results if result.screening is not None]
    if screened:
        document["outliers"] = [
            {**outlier_document(one), "experiment": key} for key, screening in screened for one in screening.outliers
        ]
    return document


def _experiment(result: ExperimentResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "benchmark": result.experiment.benchmark,
        "parameters": dict(result.experiment.parameters),
        "environment": result.experiment.environment or None,
        "machine": result.experiment.machine,
        "outcome": result.outcome.state.value,
        "reason": result.outcome.reason,
        "evidence": result.outcome.evidence,
        "notes": list(result.notes),
        "reused": result.reused,
        "figures": [_figure(figure, result.experiment.parameters) for figure in result.figures],
    }


def _figure(figure: FigureResult, parameters: Params) -> dict[str, Any]:
    """A figure stands on its own: its parameters are those of its experiment and its point in a sweep."""
    limit = figure.limit
    known = limit is not None and limit.basis is not Basis.UNKNOWN
    return {
        "name": figure.name,
        "parameters": {**parameters, **figure.point},
        "unit": figure.unit,
        "better": figure.better.value,
        "median": figure.median,
        "ci95": None if figure.ci95 is None else list(figure.ci95),
        "min": figure.minimum,
        "max": figure.maximum,
        "n_repeats": figure.n_repeats,
        "n_samples": figure.n_samples,
        "limit": {"value": limit.value, "derivation": limit.derivation, "basis": limit.basis.value}
        if limit is not None and known
        else None,
        "limit_unknown_because": limit.derivation if limit is not None and not known else None,
        "fraction_of_limit": figure.fraction_of_limit,
    }
