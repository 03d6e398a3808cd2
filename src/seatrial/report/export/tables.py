"""Exports with one entry for each figure.

Tables, as CONTRACT names the columns: CSV, which `seatrial import csv=FILE` reads back, and Parquet with types;
parameters stay JSON text. A Markdown table, for a paper or a merge request; numbers in units that people read.
OpenMetrics 1.0 text, for Prometheus and others: https://github.com/prometheus/OpenMetrics (IETF draft).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape

from seatrial.analysis.grouped import grouped
from seatrial.benchmarks import registry
from seatrial.model.benchmark.parameter import Value, value_from_json
from seatrial.model.results.exported import COLUMNS, PARAMETER, REMARKS, Exported, ExportedRow
from seatrial.model.spelling import PROGRAM, settings, show, written
from seatrial.printable import printable
from seatrial.processes.own_folder import temporary_folder


def csv_text(exported: Exported, *, with_parameters: bool = False, with_remarks: bool = False) -> str:
    """RFC 4180 with line feeds; an unknown value is an empty cell, numbers have all their digits. `with_parameters`: a
    column `parameter.NAME` for each parameter follows, with values as on the command line; `with_remarks`: then what
    qualifies the figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    values = [_parameters(row) if with_parameters else {} for row in exported.rows]
    names = list(dict.fromkeys(name for own in values for name in own))
    writer.writerow([*COLUMNS, *(f"{PARAMETER}{name}" for name in names), *[REMARKS] * with_remarks])
    for row, own in zip(exported.rows, values, strict=True):
        writer.writerow(
            _no_formula(cell)
            for cell in [
                row.benchmark,
                row.parameters,
                row.environment,
                row.figure,
                row.figure_parameters if row.figure else "",
                row.unit,
                row.better,
                *("" if value is None else repr(value) for value in (row.median, row.ci95_low, row.ci95_high)),
                row.n_repeats if row.figure else "",
                row.outcome,
                *(written(name, own[name]) if name in own else "" for name in names),
                *[row.remarks] * with_remarks,
            ]
        )
    return out.getvalue()


_FORMULA = re.compile(r"[=@\t\r]|[+-].*[(|!]", re.DOTALL)


def _no_formula(cell: object) -> object:
    """A text that a spreadsheet would compute begins with an apostrophe, which makes it text; numbers and flags such as
    -O3 stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _parameters(row: ExportedRow) -> dict[str, Value]:
    """All parameters of a row: of its experiment, and the point of its figure."""
    found = {**json.loads(row.parameters), **(json.loads(row.figure_parameters) if row.figure else {})}
    return {name: value_from_json(value) for name, value in found.items()}


_NUMBERS = {"median": "DOUBLE", "ci95_low": "DOUBLE", "ci95_high": "DOUBLE", "n_repeats": "BIGINT"}


def parquet_bytes(exported: Exported, *, with_remarks: bool = False) -> bytes:
    """The file. An unknown value is null. `with_remarks`: the last column is what qualifies the figure."""
    import duckdb
    import numpy as np

    columns: dict[str, object] = {}
    chosen = []
    for name in (*COLUMNS, *[REMARKS] * with_remarks):
        cells = [getattr(row, name) for row in exported.rows]
        is_empty = [
            cell is None or (name in _OF_FIGURES and not row.figure)
            for cell, row in zip(cells, exported.rows, strict=True)
        ]
        columns[f"no_{name}"] = np.asarray(is_empty, bool)
        if name in _NUMBERS:
            columns[name] = np.asarray([0 if cell is None else cell for cell in cells], float)
        else:
            texts = np.empty(len(cells), object)
            texts[:] = cells
            columns[name] = texts if cells else np.asarray([], np.str_)
        kind = _NUMBERS.get(name, "VARCHAR")
        chosen.append(f'CASE WHEN no_{name} THEN NULL ELSE "{name}" END::{kind} AS "{name}"')
    with temporary_folder("export") as folder, duckdb.connect() as connection:
        path = folder / "export.parquet"
        connection.register("exported", columns)
        target = str(path).replace("'", "''")
        selected = ", ".join(chosen)
        connection.execute(f"COPY (SELECT {selected} FROM exported) TO '{target}' (FORMAT parquet)")  # noqa: S608 - our names
        return path.read_bytes()


_OF_FIGURES = frozenset(COLUMNS[3:11])


_HEAD = ("Benchmark", "Parameters", "Figure", "Median", "95 % interval", "Relative", "Repeats", "Outcome")


def markdown_text(exported: Exported) -> str:
    """The table, in the form that GitHub and pandoc read. `Relative` is the ratio to the best of the experiments with
    the same figure of the same benchmark, with that of the ends of the intervals."""
    lines = [_line(_HEAD), _line("---" for _ in _HEAD)]
    best = _best(exported.rows)
    lines += [_line(_cells(row, best.get(_same_figure(row)))) for row in exported.rows]
    return "\n".join(lines) + "\n"


def _same_figure(row: ExportedRow) -> tuple[object, ...]:
    """What rows have in common that are compared: the figure, and the point of a sweep inside the program."""
    experiment, point = json.loads(row.parameters), json.loads(row.figure_parameters)
    own = sorted((name, repr(value)) for name, value in point.items() if name not in experiment)
    return row.benchmark, row.figure, row.unit, row.better, tuple(own)


def _best(rows: Iterable[ExportedRow]) -> dict[tuple[object, ...], ExportedRow]:
    """The best of each figure that several experiments have."""
    groups = grouped((_same_figure(row), row) for row in rows if row.figure and row.median is not None)
    return {
        key: (max if own[0].better == "higher" else min)(own, key=lambda row: row.median or 0.0)
        for key, own in groups.items()
        if len(own) > 1 and all(row.median for row in own)
    }


def _relative(row: ExportedRow, best: ExportedRow | None) -> str:
    """Such as "1.35 (1.30 to 1.41)"; the ends are the widest that the two intervals allow."""
    if best is None or not row.median or not best.median:
        return ""
    ratio = show(row.median / best.median, "1")
    ends = (row.ci95_low, row.ci95_high, best.ci95_low, best.ci95_high)
    low, high, best_low, best_high = (end or 0.0 for end in ends)
    if row is best or min(low, high, best_low, best_high) <= 0:
        return ratio
    return f"{ratio} ({show(low / best_high, '1')} to {show(high / best_low, '1')})"


def _shown(benchmark: str, parameters: Mapping[str, Value]) -> dict[str, Value]:
    """All parameters; beside a program of the user, those without their default."""
    if PROGRAM not in parameters or (known := registry().get(benchmark)) is None:
        return dict(parameters)
    defaults = {one.name: one.default for one in known.parameters if one.name != PROGRAM}
    return {name: value for name, value in parameters.items() if value != defaults.get(name)}


def _cells(row: ExportedRow, best: ExportedRow | None) -> tuple[str, ...]:
    shown = settings(_shown(row.benchmark, _parameters(row)))
    why = row.remarks or row.reason
    outcome = f"{row.outcome}: {why}" if why else row.outcome
    if not row.figure or row.median is None:
        return row.benchmark, shown, "", "", "", "", "", outcome
    unit = row.unit
    interval = "none"
    if row.ci95_low is not None and row.ci95_high is not None:
        interval = f"{show(row.ci95_low, unit)} to {show(row.ci95_high, unit)}"
    median = f"{show(row.median, unit)} {'↑' if row.better == 'higher' else '↓'}"
    return row.benchmark, shown, row.figure, median, interval, _relative(row, best), str(row.n_repeats), outcome


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return escape(re.sub(r"([\\|`\[\]*])", r"\\\1", printable(text, instead=" ")), quote=False)


_FIGURES: Mapping[str, tuple[str, Callable[[ExportedRow], float | None]]] = {
    "seatrial_figure": ("Median of a figure over repeats, in the unit of its label.", lambda row: row.median),
    "seatrial_figure_ci95_low": ("Lower end of the 95 % interval of the median.", lambda row: row.ci95_low),
    "seatrial_figure_ci95_high": ("Upper end of the 95 % interval of the median.", lambda row: row.ci95_high),
    "seatrial_figure_repeats": ("Repeats behind the median.", lambda row: float(row.n_repeats)),
    "seatrial_figure_fraction_of_limit": ("Share of the limit that is reached.", lambda row: row.fraction_of_limit),
}


def openmetrics_text(exported: Exported) -> str:
    """Gauges: one sample for each figure, with a label `parameter_NAME` for each parameter and all of them in JSON, and
    the outcome of experiments."""
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
    each = {f"parameter_{_NOT_IN_LABELS.sub('_', name)}": written(name, v) for name, v in _parameters(row).items()}
    return {**_of_experiment(row), **own, **each}


_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_]")


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_label_text(value)}"' for name, value in labels.items()) + "}"


def _label_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\r", " ").replace("\0", " ")
