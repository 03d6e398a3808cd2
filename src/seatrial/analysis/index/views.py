"""The views that queries use: their columns, with meaning, unit and SQL (also listed in docs/results-folder.md); and
the rows of an export, in an order that depends on their content only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.results.exported import ExportedRow

if TYPE_CHECKING:
    import duckdb


class ViewColumn(Frozen):
    """A column of a view: its SQL type, its meaning with its unit, and its SQL over the tables of the view."""

    name: str
    type: str
    meaning: str
    sql: str


class View(Frozen):
    """A view: what one row is, its columns, and the tables that they are of (of the schema `stored`)."""

    name: str
    row: str
    columns: tuple[ViewColumn, ...]
    tables: str


def _time(seconds: str) -> str:
    """A timestamp from seconds since the epoch."""
    return f"make_timestamp(({seconds} * 1e6)::BIGINT)"


def _columns(table: str, shared: Sequence[ViewColumn], *columns: tuple[str, ...]) -> tuple[ViewColumn, ...]:
    """After the shared ones, name, type and meaning of each, and its SQL if it has another name or is of another table
    than this one."""
    made = [*shared]
    for name, kind, meaning, *sql in columns:
        own = f"{table}.{name}::JSON" if kind == "JSON" else f"{table}.{name}"
        made.append(ViewColumn(name, kind, meaning, sql[0] if sql else own))
    return tuple(made)


_ID, _BENCHMARK, *_EXPERIMENT = _columns(
    "e",
    (),
    ("experiment", "VARCHAR", "id of the experiment", "e.id"),
    ("benchmark", "VARCHAR", "name of the benchmark"),
    ("parameters", "JSON", "all parameters of the experiment"),
    ("environment", "VARCHAR", "key of the environment; NULL: none"),
    ("machine", "VARCHAR", "key of the machine"),
)
_REPEAT = ViewColumn("repeat", "BIGINT", "number of the repeat in its experiment", "r.repeat")

EXPERIMENTS = View(
    "experiments",
    "an experiment",
    _columns(
        "e",
        (_ID, _BENCHMARK, *_EXPERIMENT),
        ("machine_name", "VARCHAR", "name of the machine", "m.name"),
        ("environment_name", "VARCHAR", "name of the environment", "v.name"),
        ("outcome", "VARCHAR", "ok, skipped, unsupported, invalid, failed or timed_out"),
        ("reason", "VARCHAR", "why it is not ok; empty if it is"),
        ("n_repeats", "BIGINT", "repeats of any outcome"),
        ("n_ok", "BIGINT", "repeats that are ok"),
        ("first_at", "TIMESTAMP", "start of the first repeat, UTC", _time("e.first_t0")),
        ("last_at", "TIMESTAMP", "start of the last repeat, UTC", _time("e.last_t0")),
        ("wall_s", "DOUBLE", "time of all repeats together, s"),
        ("superseded", "BOOLEAN", "it could not run, and was run later in another environment"),
    ),
    "stored.experiments e LEFT JOIN stored.machines m ON m.key = e.machine "
    "LEFT JOIN stored.environments v ON v.key = e.environment",
)
FIGURES = View(
    "figures",
    "a figure of an experiment at one point of its sweep; an experiment without figures has no row",
    _columns(
        "f",
        (_ID, _BENCHMARK, *_EXPERIMENT),
        ("figure", "VARCHAR", "name of the figure"),
        ("figure_parameters", "JSON", "parameters of the experiment and coordinates of the point"),
        ("unit", "VARCHAR", "unit of median, ci95_low, ci95_high, min, max and limit_value"),
        ("better", "VARCHAR", "higher or lower"),
        ("median", "DOUBLE", "median over repeats, in `unit`"),
        ("ci95_low", "DOUBLE", "lower end of the 95 % interval of the median, in `unit`; NULL: too few repeats"),
        ("ci95_high", "DOUBLE", "upper end, in `unit`"),
        ("min", "DOUBLE", "smallest sample, in `unit`", "f.minimum"),
        ("max", "DOUBLE", "largest sample, in `unit`", "f.maximum"),
        ("n_repeats", "BIGINT", "repeats behind the median"),
        ("n_samples", "BIGINT", "samples of these repeats"),
        ("limit_value", "DOUBLE", "most that the hardware allows, in `unit`; NULL: unknown"),
        ("limit_basis", "VARCHAR", "physical or measured; NULL: unknown"),
        ("limit_derivation", "VARCHAR", "how the limit follows, or why it is unknown"),
        ("fraction_of_limit", "DOUBLE", "share of the limit that is reached, 1; NULL: unknown"),
        ("outcome", "VARCHAR", "outcome of the experiment", "e.outcome"),
        ("last_at", "TIMESTAMP", "start of the last repeat of the experiment, UTC", _time("e.last_t0")),
    ),
    "stored.figures f JOIN stored.experiments e ON e.number = f.experiment WHERE NOT e.superseded",
)
REPEATS = View(
    "repeats",
    "a figure at one point in one repeat; a repeat without figures has one row, whose figure is NULL",
    _columns(
        "k",
        (_ID, _BENCHMARK, _REPEAT),
        ("host", "VARCHAR", "hosts that it ran on, separated by spaces", "h.text"),
        ("at", "TIMESTAMP", "start, UTC", _time("r.t0")),
        ("wall_s", "DOUBLE", "total time, s", "r.wall_s"),
        ("outcome", "VARCHAR", "outcome of the repeat", "s.text"),
        ("reason", "VARCHAR", "why it is not ok; empty if it is", "y.text"),
        ("figure", "VARCHAR", "name of the figure"),
        ("point", "JSON", "coordinates of the point"),
        ("value", "DOUBLE", "median over the samples of the repeat, in the unit of the figure", "d.value"),
        ("file", "VARCHAR", "file of the record, in the folder `records`", "n.name"),
    ),
    "stored.records r JOIN stored.experiments e ON e.number = r.experiment "
    "JOIN stored.texts h ON h.number = r.host JOIN stored.texts s ON s.number = r.state "
    "JOIN stored.texts y ON y.number = r.reason JOIN stored.files n ON n.number = r.file "
    "LEFT JOIN stored.readings d ON d.record = r.number LEFT JOIN stored.keys k ON k.number = d.key",
)
SAMPLES = View(
    "samples",
    "a sample: one timed measurement within a repeat, of any outcome",
    _columns(
        "g",
        (_ID, _BENCHMARK, _REPEAT),
        ("series", "VARCHAR", "series of samples, as the program names it"),
        ("point", "JSON", "coordinates of the point"),
        ("rank", "BIGINT", "rank that measured it"),
        ("i", "BIGINT", "number of the sample in its series, point and rank", "s.i"),
        ("elapsed_s", "DOUBLE", "time, s; NULL: none", "CASE WHEN isnan(s.elapsed_s) THEN NULL ELSE s.elapsed_s END"),
        ("work", "JSON", "work done in that time: name -> count (bytes: B, flops: flop, ops: op, ...)", "w.text::JSON"),
    ),
    "stored.samples s JOIN stored.records r ON r.number = s.record "
    "JOIN stored.experiments e ON e.number = r.experiment "
    "JOIN stored.groups g ON g.number = s.grp JOIN stored.texts w ON w.number = s.work",
)
FACTS = View(
    "facts",
    "a fact about a machine from one source, or a value of an environment",
    _columns(
        "facts",
        (),
        ("subject", "VARCHAR", "machine or environment"),
        ("key", "VARCHAR", "key of the machine or environment"),
        ("device", "VARCHAR", "device of the machine; empty: the machine as a whole"),
        ("name", "VARCHAR", "name of the fact"),
        ("value", "VARCHAR", "its value as text"),
        ("number", "DOUBLE", "its value as a number, in `unit`; NULL: not a number"),
        ("unit", "VARCHAR", "unit of the number; NULL: none"),
        ("source", "VARCHAR", "where it comes from"),
        ("kind", "VARCHAR", "discovered, measured or asserted; NULL for an environment"),
    ),
    "stored.facts",
)

VIEWS: tuple[View, ...] = (FIGURES, SAMPLES, EXPERIMENTS, FACTS, REPEATS)


def view_statements() -> str:
    """The statements that make the views."""
    made = []
    for view in VIEWS:
        columns = ", ".join(f"{column.sql} AS {column.name}" for column in view.columns)
        made.append(f"CREATE VIEW {view.name} AS SELECT {columns} FROM {view.tables};")  # noqa: S608 - our own text
    return "\n".join(made)


def exported_rows(connection: duckdb.DuckDBPyConnection) -> tuple[ExportedRow, ...]:
    """All figures, and the experiments without any: by benchmark, parameters and environment."""
    found = connection.execute(
        """SELECT e.id, e.benchmark, e.parameters, coalesce(e.environment, ''), coalesce(m.name, ''), e.outcome,
          e.reason, e.evidence, coalesce(f.figure, ''), coalesce(f.figure_parameters, '{}'), coalesce(f.unit, ''),
          coalesce(f.better, ''), f.median, f.ci95_low, f.ci95_high, coalesce(f.n_repeats, 0), f.fraction_of_limit,
          e.last_t0, e.wall_s
        FROM stored.experiments e LEFT JOIN stored.figures f ON f.experiment = e.number
          LEFT JOIN stored.machines m ON m.key = e.machine
        WHERE NOT e.superseded ORDER BY e.number, f.place"""
    ).fetchall()
    own = grouped((row[0], ExportedRow(*row)) for row in found)
    return tuple(row for rows in sorted(own.values(), key=_order) for row in rows)


def identifiers(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """What identifies hosts, machines and users in an index: kind ("host", "serial", "user") -> words."""
    hosts = {name for (name,) in connection.execute("SELECT name FROM stored.machines").fetchall()}
    for (text,) in connection.execute(
        "SELECT text FROM stored.texts WHERE number IN (SELECT DISTINCT host FROM stored.records)"
    ).fetchall():
        hosts.update(text.split())
    serial = connection.execute(
        "SELECT DISTINCT value FROM stored.facts WHERE regexp_matches(lower(name), "
        "'serial|uuid|guid|asset|mac_address|hw_address|machine_id|boot_id|service_tag')"
    ).fetchall()
    users = connection.execute(
        r"SELECT DISTINCT unnest(regexp_extract_all(value, '/(?:home|Users|users|scratch|work)/([A-Za-z0-9._-]+)', 1)) "
        "FROM stored.facts"
    ).fetchall()
    return {"host": hosts, "serial": {value for (value,) in serial}, "user": {value for (value,) in users}}


def _order(rows: list[ExportedRow]) -> tuple[Any, ...]:
    """By benchmark and parameters as elsewhere; equal ones by their figures: an id depends on the machine."""
    first = rows[0]
    values = json.loads(first.parameters).values()
    ranked = tuple((isinstance(v, str), isinstance(v, list), v) for v in values)
    content = json.dumps([(row.figure, row.figure_parameters, row.median, row.n_repeats, row.outcome) for row in rows])
    return (first.benchmark, ranked, first.parameters, first.environment, content)
