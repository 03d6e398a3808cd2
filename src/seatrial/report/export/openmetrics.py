"""OpenMetrics 1.0 text, for Prometheus and others: https://github.com/prometheus/OpenMetrics (IETF draft)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seatrial.model.results.figure_result import Exported, ExportedRow

_FIGURES: Mapping[str, tuple[str, Callable[[ExportedRow], float | None]]] = {
    "seatrial_figure": ("Median of a figure over repeats, in the unit of its label.", lambda row: row.median),
    "seatrial_figure_ci95_low": ("Lower end of the 95 % interval of the median.", lambda row: row.ci95_low),
    "seatrial_figure_ci95_high": ("Upper end of the 95 % interval of the median.", lambda row: row.ci95_high),
    "seatrial_figure_repeats": ("Repeats behind the median.", lambda row: float(row.n_repeats)),
    "seatrial_figure_fraction_of_limit": ("Share of the limit that is reached.", lambda row: row.fraction_of_limit),
}


def openmetrics_text(exported: Exported) -> str:
    """Gauges: one sample for each figure, with its parameters as a label in JSON, and the outcome of experiments."""
    lines: list[str] = []
    for name, (meaning, value_of) in _FIGURES.items():
        rows = [(row, value) for row in exported.rows if row.figure and (value := value_of(row)) is not None]
        if rows:
            lines += [f"# TYPE {name} gauge", f"# HELP {name} {meaning}"]
            lines += [f"{name}{_labels(_of_figure(row))} {value!r}" for row, value in rows]
    experiments = {row.experiment: row for row in exported.rows}.values()
    if experiments:
        name = "seatrial_experiment_outcome"
        lines += [f"# TYPE {name} gauge", f"# HELP {name} 1 for the outcome of an experiment."]
        lines += [f"{name}{_labels({**_of_experiment(row), 'outcome': row.outcome})} 1" for row in experiments]
        name = "seatrial_experiment_last_repeat_timestamp_seconds"
        lines += [f"# TYPE {name} gauge", f"# UNIT {name} seconds", f"# HELP {name} Start of its last repeat."]
        lines += [f"{name}{_labels(_of_experiment(row))} {row.last_t0!r}" for row in experiments]
    return "\n".join([*lines, "# EOF", ""])


def _of_experiment(row: ExportedRow) -> dict[str, str]:
    return {
        "experiment": row.experiment,
        "benchmark": row.benchmark,
        "parameters": row.parameters,
        "environment": row.environment,
        "machine": row.machine,
    }


def _of_figure(row: ExportedRow) -> dict[str, str]:
    own = {"parameters": row.figure_parameters, "figure": row.figure, "unit": row.unit, "better": row.better}
    return {**_of_experiment(row), **own}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\r", " ").replace("\0", " ")
