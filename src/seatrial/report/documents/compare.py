"""`seatrial.compare/1`: comparisons, what else differed, and what follows, as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.best_of import BestOfResult
from seatrial.model.breakdown import Breakdown, Part
from seatrial.model.comparison import Comparison
from seatrial.model.difference import Difference
from seatrial.model.outlier import Outlier
from seatrial.model.parameter import Value
from seatrial.model.scaling import Fit, ScalingPoint, ScalingResult
from seatrial.model.study_result import Compared, StudyResult
from seatrial.report.studies.breakdown_words import breakdown_sentence, breakdowns_of
from seatrial.report.studies.design import scopes, unintended_first


def compare_document(
    compared: Sequence[Compared],
    outliers: Sequence[Outlier] | None = None,
    *,
    best_of: Sequence[BestOfResult] = (),
    scaling: Sequence[ScalingResult] = (),
) -> dict[str, Any]:
    """The object that CONTRACT names; every number is finite, what is unknown is null.

    `baseline` and `candidate` of a comparison are the medians of the raw figure in SI (`unit`). Differences that nobody
    asked for come first. Beyond the contract: `where`, `scope`, `best_of`, `scaling`. `outliers` is there only where a
    screen was made; an empty list says that it found none.
    """
    document = {"schema": "seatrial.compare/1", **_answers(compared, scaling, best_of)}
    if outliers is not None:
        document["outliers"] = [outlier_document(one) for one in outliers]
    return document


def study_document(result: StudyResult) -> dict[str, Any]:
    """What a study came to, as it stands under `study` in the answer of `run`: the same parts as `compare` has."""
    return {
        "study": result.study.name,
        "question": result.study.question,
        "spent_s": _finite(result.spent_s),
        **_answers(result.compared, result.scaling, result.best_of),
    }


def _answers(
    compared: Sequence[Compared], scaling: Sequence[ScalingResult], best_of: Sequence[BestOfResult]
) -> dict[str, Any]:
    return {
        "comparisons": [_comparison(one) for each in compared for one in each.comparisons],
        "differences": [_difference(each, difference) for each, difference in unintended_first(compared)],
        "where": [_where(one) for one in breakdowns_of(compared)],
        "scope": scopes(compared),
        "best_of": [_best_of(one) for one in best_of],
        "scaling": [_scaling(one) for one in scaling],
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "figure": one.figure,
        "parameters": _settings(one.parameters),
        "unit": one.unit,
        "better": one.better.value,
        "baseline": _finite(one.baseline.median),
        "candidate": _finite(one.candidate.median),
        "baseline_name": one.baseline.name,
        "candidate_name": one.candidate.name,
        "reference": "baseline" if one.baseline.is_reference else "candidate" if one.candidate.is_reference else None,
        "ratio": _finite(one.ratio),
        "ci95": _interval(one.ci95),
        "ci95_family": _interval(one.ci95_family),
        "verdict": one.verdict.value,
        "margin": one.margin,
        "n_repeats": one.n_repeats,
        "p_family": _finite(one.p_family),
        "family": one.family,
        "design": {
            "interleaved": one.design.is_interleaved,
            "blocks": one.design.blocks,
            "looks": list(one.design.looks),
            "stopped": one.design.stopped.value,
            "alpha": _finite(one.design.alpha),
            "baseline_hosts": list(one.baseline.hosts),
            "candidate_hosts": list(one.candidate.hosts),
        },
        "baseline_experiments": list(one.baseline.experiments),
        "candidate_experiments": list(one.candidate.experiments),
        "note": one.note,
    }


def _where(one: Breakdown) -> dict[str, Any]:
    """Seconds of one rank by call and size, and bytes of input and output, on both sides."""
    return {
        "benchmark": one.benchmark,
        "parameters": _settings(one.parameters),
        "baseline_name": one.baseline,
        "candidate_name": one.candidate,
        "said": breakdown_sentence(one),
        "whole": None if one.whole is None else _part(one.whole),
        "parts": [_part(part) for part in one.parts],
        "io": [{"what": m.what, "baseline_B": m.baseline_B, "candidate_B": m.candidate_B} for m in one.moved],
        "n_repeats": list(one.repeats),
        "incomplete": one.incomplete,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "what": part.what,
        "size_B": part.size_B,
        "baseline_s": part.baseline_s,
        "candidate_s": part.candidate_s,
        "difference_s": part.difference_s,
        "baseline_count": part.baseline_count,
        "candidate_count": part.candidate_count,
        "p": part.p_value,
        "is_beyond_noise": part.is_beyond_noise,
    }


def _difference(compared: Compared, one: Difference) -> dict[str, Any]:
    return {
        "what": one.what,
        "baseline": one.baseline,
        "candidate": one.candidate,
        "intended": one.intended,
        "follows_from": one.follows_from,
        "baseline_name": compared.baseline,
        "candidate_name": compared.candidate,
    }


def _best_of(one: BestOfResult) -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "figure": one.figure,
        "over": list(one.over),
        "parameters": _settings(one.parameters),
        "unit": one.unit,
        "better": one.better.value,
        "contenders": [
            {
                "parameters": _settings(contender.parameters),
                "experiment": contender.experiment,
                "median": _finite(contender.median),
                "ci95": _interval(contender.ci95),
                "n_repeats": contender.n_repeats,
                "reason": contender.reason,
            }
            for contender in one.contenders
        ],
        "gap": None if one.gap is None else _comparison(one.gap),
        "is_beyond_noise": one.is_beyond_noise,
        "tied": list(one.tied),
        "cost_s": _finite(one.cost_s),
        "repeats": one.repeats,
    }


def _scaling(one: ScalingResult) -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "figure": one.figure,
        "kind": one.kind,
        "along": one.along,
        "parameters": _settings(one.parameters),
        "unit": one.unit,
        "better": one.better.value,
        "baseline_workers": _finite(one.baseline_workers),
        "points": [_point(point) for point in one.points],
        "fits": [_fit(fit) for fit in one.fits],
        "efficient_to": _finite(one.efficient_to),
        "crossing": _finite(one.crossing),
        "note": one.note,
    }


def _point(one: ScalingPoint) -> dict[str, Any]:
    return {
        "workers": _finite(one.workers),
        "experiment": one.experiment,
        "value": _finite(one.value),
        "ci95": _interval(one.ci95),
        "n_repeats": one.n_repeats,
        "speedup": _finite(one.speedup),
        "speedup_ci95": _interval(one.speedup_ci95),
        "efficiency": _finite(one.efficiency),
        "efficiency_ci95": _interval(one.efficiency_ci95),
        "reason": one.reason,
        "parameters": None if one.parameters is None else _settings(one.parameters),
    }


def _fit(one: Fit) -> dict[str, Any]:
    return {
        "law": one.law,
        "parameter": _finite(one.parameter),
        "standard_error": _finite(one.standard_error),
        "residuals": [{"workers": _finite(at), "residual": _finite(residual)} for at, residual in one.residuals],
        "ceiling": _finite(one.ceiling),
    }


def outlier_document(one: Outlier) -> dict[str, Any]:
    """One outlier, as it stands in the answers of `compare` and of `run`."""
    return {
        "what": one.what,
        "benchmark": one.benchmark,
        "figure": one.figure,
        "parameters": _settings(one.parameters),
        "value": _finite(one.value),
        "ratio": _finite(one.ratio),
        "sureness": _finite(one.sureness),
        "false_alarm_rate": _finite(one.false_alarm_rate),
        "n": one.n,
    }


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _interval(interval: tuple[float, float] | None) -> list[float] | None:
    return list(interval) if interval is not None and all(map(math.isfinite, interval)) else None


def _settings(parameters: Mapping[str, Value]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
