"""The facts of machines and environments as rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from seatrial.errors import StoreError
from seatrial.store.folder import ResultsFolder

if TYPE_CHECKING:
    import duckdb

Row = tuple[Any, ...]


def keep_documents(
    connection: duckdb.DuckDBPyConnection,
    folder: ResultsFolder,
    machines: Mapping[str, str],
    environments: Mapping[str, Mapping[str, Any]],
) -> None:
    """Add the facts of the machines and environments that the index does not have. `machines`: identity -> document."""
    from seatrial.analysis.index.build import insert_rows

    known = {row[0] for row in connection.execute("SELECT key FROM stored.machines").fetchall()}
    rows: list[Row] = []
    names: list[Row] = []
    for key, name in machines.items():
        if key in known:
            continue
        try:
            document = folder.get("machines", name)
        except StoreError:
            continue
        names.append((key, str(document.get("name", ""))))
        rows += _machine_rows(key, document)
    insert_rows(connection, "stored.machines", names)
    known = {row[0] for row in connection.execute("SELECT key FROM stored.environments").fetchall()}
    names = []
    for key, environment in environments.items():
        if key not in known:
            names.append((key, str(environment.get("name", ""))))
            rows += _environment_rows(key, environment)
    insert_rows(connection, "stored.environments", names)
    insert_rows(connection, "stored.facts", rows)


def _machine_rows(key: str, document: Mapping[str, Any]) -> Iterator[Row]:
    """The form of the document was checked."""
    for device, facts in (("", document["facts"]), *((one["id"], one["facts"]) for one in document["devices"])):
        for name, sources in facts.items():
            for fact in sources:
                value = fact["value"]
                number = None if isinstance(value, str | bool) else float(value)
                yield ("machine", key, device, name, _text(value), number, fact["unit"], fact["source"], fact["kind"])


def _environment_rows(key: str, document: Mapping[str, Any]) -> Iterator[Row]:
    """One row for each value, named by its path: "compiler.version"."""
    left: list[tuple[str, Any]] = list(document.items())
    while left:
        name, value = left.pop(0)
        if isinstance(value, Mapping) and value:
            left[:0] = [(f"{name}.{part}", inner) for part, inner in value.items()]
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        yield ("environment", key, "", name, _text(value), float(value) if is_number else None, None, "record", None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
