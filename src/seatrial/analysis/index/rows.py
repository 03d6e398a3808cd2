"""The rows of an export from an index, in an order that depends on their content only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seatrial.model.results.figure_result import ExportedRow

if TYPE_CHECKING:
    import duckdb


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
    own: dict[str, list[ExportedRow]] = {}
    for row in found:
        own.setdefault(row[0], []).append(ExportedRow(*row))
    ordered = sorted(own.values(), key=_order)
    return tuple(row for rows in ordered for row in rows)


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
    return {
        "host": hosts,
        "serial": {value for (value,) in serial},
        "user": {value for (value,) in users},
    }


def _order(rows: list[ExportedRow]) -> tuple[Any, ...]:
    """By benchmark and parameters as elsewhere; equal ones by their figures: an id depends on the machine."""
    first = rows[0]
    values = json.loads(first.parameters).values()
    ranked = tuple((isinstance(v, str), isinstance(v, list), v) for v in values)
    content = json.dumps([(row.figure, row.figure_parameters, row.median, row.n_repeats, row.outcome) for row in rows])
    return (first.benchmark, ranked, first.parameters, first.environment, content)
