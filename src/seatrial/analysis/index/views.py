"""The views that queries use: their columns, with meaning and unit (also listed in docs/results-folder.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view: its SQL type, and its meaning with its unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class View:
    """A view: what one row is, its columns, and the SQL behind it (tables of the schema `stored`)."""

    name: str
    row: str
    columns: tuple[Column, ...]
    sql: str


_EXPERIMENT = (
    Column("experiment", "VARCHAR", "id of the experiment"),
    Column("benchmark", "VARCHAR", "name of the benchmark"),
    Column("parameters", "JSON", "all parameters of the experiment"),
    Column("environment", "VARCHAR", "key of the environment; NULL: none"),
    Column("machine", "VARCHAR", "key of the machine"),
)
_EXPERIMENT_SQL = "e.id AS experiment, e.benchmark, e.parameters::JSON AS parameters, e.environment, e.machine"

EXPERIMENTS = View(
    "experiments",
    "an experiment",
    (
        *_EXPERIMENT,
        Column("machine_name", "VARCHAR", "name of the machine"),
        Column("environment_name", "VARCHAR", "name of the environment"),
        Column("outcome", "VARCHAR", "ok, skipped, unsupported, invalid, failed or timed_out"),
        Column("reason", "VARCHAR", "why it is not ok; empty if it is"),
        Column("n_repeats", "BIGINT", "repeats of any outcome"),
        Column("n_ok", "BIGINT", "repeats that are ok"),
        Column("first_at", "TIMESTAMP", "start of the first repeat, UTC"),
        Column("last_at", "TIMESTAMP", "start of the last repeat, UTC"),
        Column("wall_s", "DOUBLE", "time of all repeats together, s"),
        Column("superseded", "BOOLEAN", "it could not run, and was run later in another environment"),
    ),
    f"SELECT {_EXPERIMENT_SQL}, "  # noqa: S608 - our own text
    "m.name AS machine_name, v.name AS environment_name, e.outcome, e.reason, "
    "e.n_repeats, e.n_ok, make_timestamp((e.first_t0 * 1e6)::BIGINT) AS first_at, "
    "make_timestamp((e.last_t0 * 1e6)::BIGINT) AS last_at, e.wall_s, e.superseded FROM stored.experiments e "
    "LEFT JOIN stored.machines m ON m.key = e.machine LEFT JOIN stored.environments v ON v.key = e.environment",
)
FIGURES = View(
    "figures",
    "a figure of an experiment at one point of its sweep; an experiment without figures has no row",
    (
        *_EXPERIMENT,
        Column("figure", "VARCHAR", "name of the figure"),
        Column("figure_parameters", "JSON", "parameters of the experiment and coordinates of the point"),
        Column("unit", "VARCHAR", "unit of median, ci95_low, ci95_high, min, max and limit_value"),
        Column("better", "VARCHAR", "higher or lower"),
        Column("median", "DOUBLE", "median over repeats, in `unit`"),
        Column("ci95_low", "DOUBLE", "lower end of the 95 % interval of the median, in `unit`; NULL: too few repeats"),
        Column("ci95_high", "DOUBLE", "upper end, in `unit`"),
        Column("min", "DOUBLE", "smallest sample, in `unit`"),
        Column("max", "DOUBLE", "largest sample, in `unit`"),
        Column("n_repeats", "BIGINT", "repeats behind the median"),
        Column("n_samples", "BIGINT", "samples of these repeats"),
        Column("limit_value", "DOUBLE", "most that the hardware allows, in `unit`; NULL: unknown"),
        Column("limit_basis", "VARCHAR", "physical or measured; NULL: unknown"),
        Column("limit_derivation", "VARCHAR", "how the limit follows, or why it is unknown"),
        Column("fraction_of_limit", "DOUBLE", "share of the limit that is reached, 1; NULL: unknown"),
        Column("outcome", "VARCHAR", "outcome of the experiment"),
        Column("last_at", "TIMESTAMP", "start of the last repeat of the experiment, UTC"),
    ),
    f"SELECT {_EXPERIMENT_SQL}, "  # noqa: S608 - our own text
    "f.figure, f.figure_parameters::JSON AS figure_parameters, f.unit, f.better, f.median, "
    "f.ci95_low, f.ci95_high, f.minimum AS min, f.maximum AS max, f.n_repeats, f.n_samples, f.limit_value, "
    "f.limit_basis, f.limit_derivation, f.fraction_of_limit, e.outcome, "
    "make_timestamp((e.last_t0 * 1e6)::BIGINT) AS last_at "
    "FROM stored.figures f JOIN stored.experiments e ON e.number = f.experiment WHERE NOT e.superseded",
)
REPEATS = View(
    "repeats",
    "a figure at one point in one repeat; a repeat without figures has one row, whose figure is NULL",
    (
        Column("experiment", "VARCHAR", "id of the experiment"),
        Column("benchmark", "VARCHAR", "name of the benchmark"),
        Column("repeat", "BIGINT", "number of the repeat in its experiment"),
        Column("host", "VARCHAR", "hosts that it ran on, separated by spaces"),
        Column("at", "TIMESTAMP", "start, UTC"),
        Column("wall_s", "DOUBLE", "total time, s"),
        Column("outcome", "VARCHAR", "outcome of the repeat"),
        Column("reason", "VARCHAR", "why it is not ok; empty if it is"),
        Column("figure", "VARCHAR", "name of the figure"),
        Column("point", "JSON", "coordinates of the point"),
        Column("value", "DOUBLE", "median over the samples of the repeat, in the unit of the figure"),
        Column("file", "VARCHAR", "file of the record, in the folder `records`"),
    ),
    "SELECT e.id AS experiment, e.benchmark, r.repeat, h.text AS host, make_timestamp((r.t0 * 1e6)::BIGINT) AS at, "
    "r.wall_s, s.text AS outcome, y.text AS reason, k.figure, k.point::JSON AS point, d.value, n.name AS file "
    "FROM stored.records r JOIN stored.experiments e ON e.number = r.experiment "
    "JOIN stored.texts h ON h.number = r.host JOIN stored.texts s ON s.number = r.state "
    "JOIN stored.texts y ON y.number = r.reason JOIN stored.files n ON n.number = r.file "
    "LEFT JOIN stored.readings d ON d.record = r.number LEFT JOIN stored.keys k ON k.number = d.key",
)
SAMPLES = View(
    "samples",
    "a sample: one timed measurement within a repeat, of any outcome",
    (
        Column("experiment", "VARCHAR", "id of the experiment"),
        Column("benchmark", "VARCHAR", "name of the benchmark"),
        Column("repeat", "BIGINT", "number of the repeat in its experiment"),
        Column("series", "VARCHAR", "series of samples, as the program names it"),
        Column("point", "JSON", "coordinates of the point"),
        Column("rank", "BIGINT", "rank that measured it"),
        Column("i", "BIGINT", "number of the sample in its series, point and rank"),
        Column("elapsed_s", "DOUBLE", "time, s; NULL: none"),
        Column("work", "JSON", "work done in that time: name -> count (bytes: B, flops: flop, ops: op, ...)"),
    ),
    "SELECT e.id AS experiment, e.benchmark, r.repeat, g.series, g.point::JSON AS point, g.rank, s.i, "
    "CASE WHEN isnan(s.elapsed_s) THEN NULL ELSE s.elapsed_s END AS elapsed_s, w.text::JSON AS work "
    "FROM stored.samples s JOIN stored.records r ON r.number = s.record "
    "JOIN stored.experiments e ON e.number = r.experiment "
    "JOIN stored.groups g ON g.number = s.grp JOIN stored.texts w ON w.number = s.work",
)
FACTS = View(
    "facts",
    "a fact about a machine from one source, or a value of an environment",
    (
        Column("subject", "VARCHAR", "machine or environment"),
        Column("key", "VARCHAR", "key of the machine or environment"),
        Column("device", "VARCHAR", "device of the machine; empty: the machine as a whole"),
        Column("name", "VARCHAR", "name of the fact"),
        Column("value", "VARCHAR", "its value as text"),
        Column("number", "DOUBLE", "its value as a number, in `unit`; NULL: not a number"),
        Column("unit", "VARCHAR", "unit of the number; NULL: none"),
        Column("source", "VARCHAR", "where it comes from"),
        Column("kind", "VARCHAR", "discovered, measured or asserted; NULL for an environment"),
    ),
    "SELECT subject, key, device, name, value, number, unit, source, kind FROM stored.facts",
)

VIEWS: tuple[View, ...] = (FIGURES, SAMPLES, EXPERIMENTS, FACTS, REPEATS)

TABLES = """
CREATE SCHEMA stored;
CREATE TABLE stored.state (name VARCHAR, value VARCHAR);
CREATE TABLE stored.files (number BIGINT, name VARCHAR, stamp VARCHAR);
CREATE TABLE stored.spans (file VARCHAR, start BIGINT, "end" BIGINT, crc BIGINT);
CREATE TABLE stored.documents (kind VARCHAR, name VARCHAR, stamp VARCHAR);
CREATE TABLE stored.damaged (text VARCHAR);
CREATE TABLE stored.texts (number BIGINT, text VARCHAR);
CREATE TABLE stored.keys (number BIGINT, figure VARCHAR, point VARCHAR);
CREATE TABLE stored.groups (number BIGINT, series VARCHAR, point VARCHAR, rank BIGINT);
CREATE TABLE stored.records (number BIGINT, experiment BIGINT, repeat BIGINT, ord BIGINT, t0 DOUBLE, wall_s DOUBLE,
  state BIGINT, reason BIGINT, evidence BIGINT, stage BIGINT, checked BIGINT, host BIGINT, file BIGINT, start BIGINT,
  length BIGINT, n_samples BIGINT, error BIGINT);
CREATE TABLE stored.readings (record BIGINT, key BIGINT, seq BIGINT, value DOUBLE, minimum DOUBLE, maximum DOUBLE,
  n BIGINT, share DOUBLE, resolution DOUBLE, impossible BOOLEAN);
CREATE TABLE stored.samples (record BIGINT, grp BIGINT, i BIGINT, elapsed_s DOUBLE, work BIGINT);
CREATE TABLE stored.experiments (number BIGINT, id VARCHAR, benchmark VARCHAR, parameters VARCHAR, environment VARCHAR,
  machine VARCHAR, place BIGINT, outcome VARCHAR, reason VARCHAR, evidence VARCHAR, n_repeats BIGINT, n_ok BIGINT,
  first_t0 DOUBLE, last_t0 DOUBLE, wall_s DOUBLE, superseded BOOLEAN);
CREATE TABLE stored.figures (experiment BIGINT, place BIGINT, figure VARCHAR, figure_parameters VARCHAR, unit VARCHAR,
  better VARCHAR, median DOUBLE, ci95_low DOUBLE, ci95_high DOUBLE, minimum DOUBLE, maximum DOUBLE, n_repeats BIGINT,
  n_samples BIGINT, limit_value DOUBLE, limit_basis VARCHAR, limit_derivation VARCHAR, fraction_of_limit DOUBLE);
CREATE TABLE stored.machines (key VARCHAR, name VARCHAR);
CREATE TABLE stored.environments (key VARCHAR, name VARCHAR);
CREATE TABLE stored.facts (subject VARCHAR, key VARCHAR, device VARCHAR, name VARCHAR, value VARCHAR, number DOUBLE,
  unit VARCHAR, source VARCHAR, kind VARCHAR);
"""


def view_statements() -> str:
    """The statements that make the views."""
    return "\n".join(f"CREATE VIEW {view.name} AS {view.sql};" for view in VIEWS)
