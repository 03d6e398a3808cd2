"""Make the tables of an index, or add to them what its folder has that they do not; the facts of machines and
environments as rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from seatrial.analysis.grouped import Numbering
from seatrial.analysis.index.chunk import Chunk, ChunkReader, chunk_reader, json_text
from seatrial.analysis.index.finish import Summary, ceilings, computed, needs_ceilings, summaries
from seatrial.analysis.index.records import kept_records, kept_results, packed_result
from seatrial.analysis.index.state import Additions, FolderState
from seatrial.analysis.index.views import view_statements
from seatrial.analysis.results import result_of, superseded
from seatrial.errors import StoreError
from seatrial.model.json_object import as_utf8
from seatrial.model.machine.limit import Basis
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment
from seatrial.store.contents import Contents, kept_environments, kept_experiment, kept_machine_keys
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import FileSpan, parts_of, read_in_order

if TYPE_CHECKING:
    import duckdb

Row = tuple[Any, ...]


class DuplicatesError(Exception):
    """New records have the number of a repeat that the index has: which one counts is decided anew."""


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables and the views."""
    connection.execute(resources.files(__package__).joinpath("tables.sql").read_text(encoding="utf-8"))
    connection.execute(view_statements())


def extend(
    connection: duckdb.DuckDBPyConnection, folder: ResultsFolder, state: FolderState, new: Additions, *, is_new: bool
) -> None:
    """Add records and documents. Raises StoreError; DuplicatesError if an existing index has to be made anew."""
    damaged: list[str] = []
    experiments = _experiments(folder, state, damaged)
    machines = kept_machine_keys(folder, experiments, damaged)
    environments = kept_environments(folder, experiments, damaged)
    usable = {
        key: experiment
        for key, experiment in experiments.items()
        if experiment.machine in machines and (not experiment.environment or experiment.environment in environments)
    }
    reader = ChunkReader(folder.path, usable, machines)
    tables = _Tables(connection, is_new)
    for chunk in _chunks(reader, usable, machines, new.spans):
        tables.add(chunk)
    tables.finish(state, new, damaged)
    _drop_duplicates(connection, is_new=is_new)
    _keep_documents(connection, folder, machines, environments)
    _finish(connection, reader, usable, environments, tables)


def _finish(
    connection: duckdb.DuckDBPyConnection,
    reader: ChunkReader,
    experiments: Mapping[str, Experiment],
    environments: Mapping[str, Mapping[str, Any]],
    tables: _Tables,
) -> None:
    """The rows of experiments with new records, and of those whose ceilings may have changed by them."""
    found = summaries(connection)
    keys = {number: key for key, number in tables.numbers["experiments"].items() if number in found}
    touched = {number: experiments[keys[number]] for number in keys if number in tables.touched}
    results = _results(connection, reader, environments, touched, found)
    packed = [(number, packed_result(result)) for number, result in results.items()]
    _replace(connection, {"results": ("experiment", packed)}, touched)
    machines = {experiment.machine for experiment in touched.values()}
    of_machines = {number for number, key in keys.items() if experiments[key].machine in machines}
    results |= kept_results(connection, of_machines - touched.keys())
    changed = {number: one for number, one in results.items() if number in touched or needs_ceilings(one.experiment)}
    _write(connection, ceilings(changed, list(results.values())), found)
    gone = superseded(
        {key: experiments[key] for key in keys.values()},
        {key: found[number].last_t0 for number, key in keys.items()},
        {key for number, key in keys.items() if found[number].has_samples},
        environments,
    )
    connection.execute("UPDATE stored.experiments SET superseded = false")
    if gone:
        connection.execute(
            "UPDATE stored.experiments SET superseded = true WHERE id IN (SELECT unnest(?))", [sorted(gone)]
        )


def _results(
    connection: duckdb.DuckDBPyConnection,
    reader: ChunkReader,
    environments: Mapping[str, Mapping[str, Any]],
    wanted: Mapping[int, Experiment],
    found: Mapping[int, Summary],
) -> dict[int, ExperimentResult]:
    """The results of experiments by number, without ceilings."""
    keys = {number: experiment.id for number, experiment in wanted.items()}
    contents = Contents(
        experiments={keys[number]: experiment for number, experiment in wanted.items()},
        records=kept_records(connection, reader.folder.path, keys).records,
        environments=environments,
    )
    known = computed(connection, reader, wanted, found)
    return {
        number: result_of(keys[number], contents, reader.machine(experiment.machine), known.get(number))
        for number, experiment in wanted.items()
    }


def _write(connection: duckdb.DuckDBPyConnection, results: Mapping[int, ExperimentResult], found: Any) -> None:
    """Replace the rows of these experiments."""
    numbers = sorted(results)
    rows: list[tuple[Any, ...]] = []
    figures: list[tuple[Any, ...]] = []
    for number in numbers:
        result, summary = results[number], found[number]
        experiment, outcome = result.experiment, result.outcome
        parameters = dict(experiment.parameters)
        rows.append(
            (number, experiment.id, experiment.benchmark, json_text(parameters), experiment.environment or None,
             experiment.machine, 0, outcome.state.value, outcome.reason, outcome.evidence, summary.n_repeats,
             summary.n_ok, summary.first_t0, summary.last_t0, summary.wall_s, False)
        )  # fmt: skip
        for place, one in enumerate(result.figures):
            low, high = one.ci95 or (None, None)
            limit = one.limit
            known = limit if limit is not None and limit.basis is not Basis.UNKNOWN else None
            figures.append(
                (number, place, one.name, json_text({**parameters, **one.point}), one.unit, one.better.value,
                 one.median, low, high, one.minimum, one.maximum, one.n_repeats, one.n_samples,
                 known.value if known else None, known.basis.value if known else None,
                 limit.derivation if limit else None, one.fraction_of_limit)
            )  # fmt: skip
    _replace(connection, {"experiments": ("number", rows), "figures": ("experiment", figures)}, numbers)


def _replace(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, tuple[str, Sequence[Row]]],
    experiments: Collection[int],
) -> None:
    """Replace the rows of these experiments: table -> its column with the number of the experiment, and the rows."""
    import numpy as np

    insert(connection, "CREATE TEMP TABLE touched AS", {"number": np.asarray(sorted(experiments), np.int64)})
    for table, (name, rows) in tables.items():
        connection.execute(f"DELETE FROM stored.{table} WHERE {name} IN (SELECT number FROM touched)")  # noqa: S608
        insert_rows(connection, f"stored.{table}", rows)
    connection.execute("DROP TABLE touched")


def insert(
    connection: duckdb.DuckDBPyConnection, into: str, columns: Mapping[str, Any], cells: Sequence[str] = ("*",)
) -> None:
    """Insert columns (arrays), or expressions of them, into a table, or with "CREATE ..." instead of one: in order."""
    start = into if into.startswith("CREATE") else f"INSERT INTO {into}"
    connection.register("new_rows", dict(columns))
    try:
        connection.execute(f"{start} SELECT {', '.join(cells)} FROM new_rows")  # noqa: S608 - our names
    finally:
        connection.unregister("new_rows")


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows into a table."""
    import numpy as np

    if not rows:
        return
    types = [row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
    columns: dict[str, Any] = {}
    casts = []
    for place, (kind, cells) in enumerate(zip(types, zip(*rows, strict=True), strict=True)):
        if kind == "DOUBLE":
            columns[f"c{place}"] = np.asarray([float("nan") if cell is None else cell for cell in cells], float)
            casts.append(f"CASE WHEN isnan(c{place}) THEN NULL ELSE c{place} END")
        elif kind in ("BIGINT", "BOOLEAN"):
            columns[f"c{place}"] = np.asarray(cells, np.int64 if kind == "BIGINT" else bool)
            casts.append(f"c{place}")
        elif kind == "BLOB":
            columns[f"c{place}"] = np.empty(len(cells), object)
            columns[f"c{place}"][:] = cells
            casts.append(f"c{place}")
        else:  # an array of objects may begin with None; numpy strings cut off "\0"
            texts = np.empty(len(cells), object)
            texts[:] = ["" if cell is None else as_utf8(cell) for cell in cells]
            columns[f"c{place}"] = texts
            columns[f"n{place}"] = np.asarray([cell is None for cell in cells], bool)
            casts.append(f"CASE WHEN n{place} THEN NULL ELSE c{place} END")
    insert(connection, table, columns, casts)


class _Tables:
    """Numbers what chunks refer to over the whole index, and inserts their rows."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, is_new: bool) -> None:
        self._connection = connection
        names = ("texts", "keys", "groups", "experiments", "files")
        self.numbers: dict[str, Numbering[Any]] = {name: Numbering() for name in names}
        self._written = dict.fromkeys(self.numbers, 0)
        self._next_record, self._next_block = 0, 0
        self._lines: dict[str, int] = {}
        self.touched: set[int] = set()
        self._spans: list[tuple[Any, ...]] = []
        self._damaged: list[tuple[str]] = []
        if not is_new:
            self._load()

    def _load(self) -> None:
        for table, columns in (
            ("texts", "text"), ("keys", "figure, point"), ("groups", "series, point, rank"),
            ("experiments", "id"), ("files", "name"),
        ):  # fmt: skip
            rows = self._connection.execute(
                f"SELECT number, {columns} FROM stored.{table} ORDER BY number"  # noqa: S608 - our names
            ).fetchall()
            self.numbers[table].update((row[1] if len(row) == 2 else row[1:], row[0]) for row in rows)
            self._written[table] = len(rows)
        # All rows are fetched: an unfinished result keeps the connection busy (DuckDB 2).
        self._next_record, self._next_block = (
            self._connection.execute(f"SELECT coalesce(max(number) + 1, 0) FROM stored.{table}").fetchall()[0][0]  # noqa: S608
            for table in ("records", "blocks")
        )
        self._lines = dict(
            self._connection.execute("SELECT file, sum(lines)::BIGINT FROM stored.spans GROUP BY file").fetchall()
        )

    def add(self, chunk: Chunk) -> None:
        """Insert the rows of a chunk."""
        import numpy as np

        def array(columns: Mapping[str, Any], name: str) -> Any:
            return np.frombuffer(columns[name], columns[name].typecode) if len(columns[name]) else np.asarray([], int)

        place = {
            name: self._renumbered(name, getattr(chunk, name)) for name in ("texts", "keys", "groups", "experiments")
        }
        span = chunk.span
        file = self._renumbered("files", [span.file])[0]
        self._spans.append((span.file, span.start, chunk.end, chunk.crc, chunk.lines))
        lines = self._lines.get(span.file, 0)
        self._lines[span.file] = lines + chunk.lines
        self._damaged += [(text,) for text in chunk.damaged]
        for table in ("texts", "keys", "groups"):
            self._write_new(table)
        n = len(chunk.records["repeat"])
        if not n:
            return
        base = self._next_record
        self._next_record += n
        rows = {name: array(chunk.records, name) for name in chunk.records}
        self.touched.update(place["experiments"].tolist())
        rows["experiment"] = place["experiments"][rows["experiment"]]
        for name in ("state", "reason", "evidence", "stage", "checked", "host"):
            rows[name] = place["texts"][rows[name]]
        rows["error"] = np.where(rows["error"] < 0, -1, place["texts"][rows["error"]])
        rows["line"] = rows["line"] + lines
        rows["block"] = np.where(rows["block"] < 0, -1, rows["block"] + self._next_block)
        blocks = [(place["experiments"][experiment], packed) for experiment, packed in chunk.blocks]
        insert_rows(
            self._connection, "stored.blocks", [(self._next_block + n, *block) for n, block in enumerate(blocks)]
        )
        self._next_block += len(blocks)
        tail = ("start", "length", "n_samples", "error", "line", "samples_start", "samples_length", "samples_crc",
                "block", "row")  # fmt: skip
        head = {"number": np.arange(base, base + n), **{name: rows[name] for name in rows if name not in tail}}
        rows = {**head, "file": np.full(n, file), **{name: rows[name] for name in tail}}
        insert(self._connection, "stored.records", rows)
        if len(chunk.readings["record"]):
            rows = {name: array(chunk.readings, name) for name in chunk.readings}
            rows["record"] = rows["record"] + base
            rows["key"] = place["keys"][rows["key"]]
            rows["impossible"] = rows["impossible"].astype(bool)
            insert(self._connection, "stored.readings", rows)
        if len(chunk.samples["record"]):
            rows = {name: array(chunk.samples, name) for name in chunk.samples}
            rows["record"] = rows["record"] + base
            rows["grp"] = place["groups"][rows["grp"]]
            rows["work"] = place["texts"][rows["work"]]
            insert(self._connection, "stored.samples", rows)

    def finish(self, state: FolderState, new: Additions, damaged: Sequence[str]) -> None:
        """Record what was read."""
        self._renumbered("files", list(state.files))
        stamps = [(number, name, state.files.get(name, "")) for name, number in self.numbers["files"].items()]
        self._connection.execute("DELETE FROM stored.files")
        insert_rows(self._connection, "stored.files", stamps)
        documents = [(kind, key, state.documents[kind, key]) for kind, key in new.documents]
        insert_rows(self._connection, "stored.documents", documents)
        insert_rows(self._connection, "stored.spans", self._spans)
        insert_rows(self._connection, "stored.damaged", [*self._damaged, *((text,) for text in damaged)])

    def _renumbered(self, table: str, values: Sequence[Any]) -> Any:
        import numpy as np

        known = self.numbers[table]
        return np.asarray([known[value] for value in values] or [0], np.int64)

    def _write_new(self, table: str) -> None:
        known, done = self.numbers[table], self._written[table]
        if len(known) == done:
            return
        new = [
            (number, *(value if isinstance(value, tuple) else (value,))) for value, number in list(known.items())[done:]
        ]
        insert_rows(self._connection, f"stored.{table}", new)
        self._written[table] = len(known)


def _drop_duplicates(connection: duckdb.DuckDBPyConnection, *, is_new: bool) -> None:
    """Of the records of one repeat the first one counts, as when the folder is read."""
    ((twice,),) = connection.execute(
        "SELECT count(*) - count(DISTINCT (experiment, repeat)) FROM stored.records"
    ).fetchall()
    if not twice:
        return
    if not is_new:
        raise DuplicatesError
    connection.execute(
        "CREATE TEMP TABLE twice AS SELECT number, experiment, repeat FROM stored.records "
        "QUALIFY row_number() OVER (PARTITION BY experiment, repeat ORDER BY number) > 1"
    )
    for table, name in (("records", "number"), ("readings", "record"), ("samples", "record")):
        connection.execute(f"DELETE FROM stored.{table} WHERE {name} IN (SELECT number FROM twice)")  # noqa: S608
    connection.execute("DROP TABLE twice")
    connection.execute("INSERT INTO stored.damaged VALUES (?)", [f"{twice} records of repeats that are there twice"])


def _experiments(folder: ResultsFolder, state: FolderState, damaged: list[str]) -> dict[str, Experiment]:
    found = {}
    for kind, key in state.documents:
        if kind == "experiments":
            try:
                found[key] = kept_experiment(folder, key)
            except StoreError as error:
                damaged.append(error.message)
    return found


def _chunks(
    reader: ChunkReader, experiments: Mapping[str, Experiment], machines: Mapping[str, str], spans: Sequence[FileSpan]
) -> Iterator[Chunk]:
    """The chunks of all spans, in order; large ones are read by several processes."""
    total = sum(span.end - span.start for span in spans)
    parts = (part for span in spans for part in parts_of(reader.folder, span))
    return read_in_order(chunk_reader, (reader.folder.path, experiments, machines), parts, total)


def _keep_documents(
    connection: duckdb.DuckDBPyConnection,
    folder: ResultsFolder,
    machines: Mapping[str, str],
    environments: Mapping[str, Mapping[str, Any]],
) -> None:
    """Add the facts of the machines and environments that the index does not have. `machines`: identity -> document."""
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
