"""Results as rows: plain dicts, ready for `pandas.DataFrame(rows)` and `csv.DictWriter`; and in one short line each.

A parameter has the key `parameter.NAME`, as in a CSV export with a column for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.results.exported import PARAMETER
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import count, label, settings, show, show_range
from seatrial.model.study.comparison import Comparison

Row = dict[str, Any]


def figure_rows(results: Iterable[ExperimentResult]) -> list[Row]:
    """A row for each figure, in SI units; one with `figure` None for an experiment without figures."""
    return [row for result in results for row in _rows_of(result)]


def _rows_of(result: ExperimentResult) -> list[Row]:
    experiment = result.experiment
    base = {"experiment": result.id, "benchmark": experiment.benchmark, "environment": experiment.environment}
    end = {"outcome": result.outcome.state.value, "reason": result.outcome.reason}
    figures = [(_figure(one), {**experiment.parameters, **one.point}) for one in result.figures]
    rows = figures or [(dict.fromkeys(_FIGURE), dict(experiment.parameters))]
    return [{**base, **own, **end, **_parameters(parameters)} for own, parameters in rows]


_FIGURE = (
    *("figure", "unit", "better", "median", "ci95_low", "ci95_high", "minimum", "maximum"),
    *("n_repeats", "n_samples", "fraction_of_limit"),
)


def _figure(one: FigureResult) -> Row:
    low, high = one.ci95 or (None, None)
    values = (
        *(one.name, one.unit, one.better.value, one.median, low, high, one.minimum, one.maximum),
        *(one.n_repeats, one.n_samples, one.fraction_of_limit),
    )
    return dict(zip(_FIGURE, values, strict=True))


def comparison_rows(comparisons: Iterable[Comparison]) -> list[Row]:
    """A row for each comparison; `ratio` is candidate over baseline."""
    rows = []
    for one in comparisons:
        low, high = one.ci95 or (None, None)
        family_low, family_high = one.ci95_family or (None, None)
        rows.append(
            {
                "benchmark": one.benchmark,
                "figure": one.figure,
                "unit": one.unit,
                "better": one.better.value,
                "baseline": one.baseline.name,
                "candidate": one.candidate.name,
                "baseline_median": one.baseline.median,
                "candidate_median": one.candidate.median,
                "ratio": one.ratio,
                "ci95_low": low,
                "ci95_high": high,
                "ci95_family_low": family_low,
                "ci95_family_high": family_high,
                "verdict": one.verdict.value,
                "margin": one.margin,
                "n_repeats": one.n_repeats,
                **_parameters(one.parameters),
            }
        )
    return rows


def _parameters(parameters: Mapping[str, Value]) -> Row:
    return {f"{PARAMETER}{name}": value for name, value in parameters.items()}


def figure_line(one: FigureResult) -> str:
    """Such as "<triad 57.3 GB/s, 95 % interval 56.9 to 57.8 GB/s, 12 repeats>"."""
    point = "".join(f" {label(name, value)}" for name, value in one.point.items())
    interval = "no interval" if one.ci95 is None else f"95 % interval {show_range(*one.ci95, one.unit)}"
    return f"<{one.name}{point} {show(one.median, one.unit)}, {interval}, {count(one.n_repeats, 'repeat')}>"


def experiment_line(one: ExperimentResult) -> str:
    """Such as "<memory.stream threads=2: ok, 4 figures>"."""
    what = count(len(one.figures), "figure") if one.outcome.is_ok else one.outcome.reason
    return f"<{_named(one.experiment.benchmark, one.experiment.parameters)}: {one.outcome.state.value}, {what}>"


def comparison_line(one: Comparison) -> str:
    """Such as "<wall of ./b against ./a: ratio 0.748 [0.742, 0.754], faster>"."""
    ends = "" if one.ci95 is None else f" [{one.ci95[0]:.3g}, {one.ci95[1]:.3g}]"
    sides = f"{one.candidate.name} against {one.baseline.name}"
    return f"<{one.figure} of {sides}: ratio {one.ratio:.3g}{ends}, {one.verdict.value}>"


def outcomes_text(results: Iterable[ExperimentResult]) -> str:
    """Such as "3 experiments (2 ok, 1 skipped)"."""
    states = Counter(one.outcome.state.value for one in results)
    return _counted(states, "experiment")


def verdicts_text(comparisons: Iterable[Comparison]) -> str:
    """Such as "4 comparisons (1 faster, 3 same)"."""
    return _counted(Counter(one.verdict.value for one in comparisons), "comparison")


def _counted(found: Counter[str], noun: str) -> str:
    each = ", ".join(f"{number} {name}" for name, number in found.items())
    return f"{count(found.total(), noun)} ({each})" if each else count(0, noun)


def _named(benchmark: str, parameters: Params) -> str:
    return f"{benchmark} {settings(parameters)}".rstrip()
