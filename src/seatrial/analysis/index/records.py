"""The records and results of experiments as the tables of an index keep them (docs/adr/0075)."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.store.record_blocks import Columns, KeptRecords

if TYPE_CHECKING:
    import duckdb

_OF = "SELECT number FROM wanted"
_PART, _PART_OF_RESULTS = 10_000, 256
"""Rows that are fetched at a time: those of records have a few bytes each, those of results some KB."""


def kept_records(connection: duckdb.DuckDBPyConnection, path: Path, experiments: Mapping[int, str]) -> KeptRecords:
    """The records of experiments, given by number, of the folder at this path; the experiments in the order in which a
    reader of all files meets them."""
    import numpy as np

    connection.register("wanted", {"number": np.asarray(sorted(experiments), np.int64)})
    outcomes: list[Outcome] = []
    numbers: list[tuple[int, ...]] = []
    texts = "state, reason, evidence, stage, checked"
    for row in connection.execute(
        f"""SELECT d.*, s.text, y.text, v.text, g.text, c.text
        FROM (SELECT DISTINCT {texts} FROM stored.records WHERE experiment IN ({_OF})) d
          JOIN stored.texts s ON s.number = d.state JOIN stored.texts y ON y.number = d.reason
          JOIN stored.texts v ON v.number = d.evidence JOIN stored.texts g ON g.number = d.stage
          JOIN stored.texts c ON c.number = d.checked"""  # noqa: S608 - our own text
    ).fetchall():
        state, reason, evidence, stage, check = row[5:]
        numbers.append((len(outcomes), *row[:5]))
        outcomes.append(Outcome(State(state), reason, evidence, Stage(stage) if stage else None, check))
    cells = np.asarray(numbers or np.empty((0, 6)), np.int64)
    names = ("outcome", *texts.split(", "))
    connection.register("outcomes", {name: cells[:, place] for place, name in enumerate(names)})
    files = connection.execute("SELECT number, name FROM stored.files ORDER BY name").fetchall()
    ranks = {"number": [number for number, _ in files], "file_rank": range(len(files))}
    connection.register("ranks", {name: np.asarray(values, np.int64) for name, values in ranks.items()})
    rows = _in_order(
        connection,
        f"stored.records r JOIN outcomes USING ({texts}) JOIN ranks ON ranks.number = r.file "
        f"WHERE r.experiment IN ({_OF})",
    )
    blocks = dict(
        connection.execute(f"SELECT number, packed FROM stored.blocks WHERE experiment IN ({_OF})").fetchall()  # noqa: S608
    )
    for name in ("wanted", "outcomes", "ranks"):
        connection.unregister(name)
    number = rows.pop("experiment")
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    stops = np.append(starts, len(number))[1:]
    in_files = np.lexsort((rows["line"], rows["file"]))
    first = np.full(int(number.max(initial=0)) + 1, len(number))
    first[number[in_files][::-1]] = np.arange(len(number))[::-1]
    bounds = {
        experiments[int(number[start])]: (int(start), int(stop))
        for start, stop in sorted(zip(starts, stops, strict=True), key=lambda own: first[number[own[0]]])
    }
    rows["order"] = rows.pop("ord")
    return KeptRecords(path, bounds, Columns(**rows), outcomes, [name for _, name in files], blocks)


def _in_order(connection: duckdb.DuckDBPyConnection, source: str) -> dict[str, Any]:
    """The columns of records by experiment and repeat. A part of the records is fetched at a time, into columns of
    the smallest numbers that hold them: sorted by DuckDB, and as it has them, they take five times as much."""
    import numpy as np

    times = ("t0", "wall_s")
    numbers = ("experiment", "repeat", "ord", "outcome", "file_rank", "line", "start", "length", "n_samples",
               "samples_start", "samples_length", "samples_crc", "block", "row")  # fmt: skip
    ends = ", ".join(f"min({name}), max({name})" for name in numbers)
    ((n, first, last, *found),) = connection.execute(
        f"SELECT count(*), min(r.number), max(r.number), {ends} FROM {source}"  # noqa: S608 - our own text
    ).fetchall()
    kinds = {name: _narrowest(found[2 * at] or 0, found[2 * at + 1] or 0) for at, name in enumerate(numbers)}
    rows = {name: np.empty(n, kind) for name, kind in (dict.fromkeys(times, np.float64) | kinds).items()}
    sql = f"SELECT {', '.join(rows)} FROM {source} AND r.number BETWEEN ? AND ?"  # noqa: S608 - our own text
    filled = 0
    for start in range(first, last + 1, _PART) if n else ():
        part = connection.execute(sql, [start, start + _PART - 1]).fetchnumpy()
        end = filled + len(part["experiment"])
        for name, column in rows.items():
            column[filled:end] = part[name]
        filled = end
    order = np.lexsort((rows["repeat"], rows["experiment"]))
    for name, column in rows.items():
        rows[name] = column[order]
    rows["file"] = rows.pop("file_rank")
    return rows


def _narrowest(low: int, high: int) -> Any:
    """The type of numpy with the fewest bytes that holds both."""
    import numpy as np

    kinds = (np.int8, np.int16, np.int32, np.uint32, np.int64)
    return next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def packed_result(result: ExperimentResult) -> bytes:
    """A result as the index keeps it."""
    return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)


def kept_results(connection: duckdb.DuckDBPyConnection, numbers: Collection[int]) -> dict[int, ExperimentResult]:
    """The results of experiments, without ceilings, by number."""
    found = connection.execute("SELECT experiment, packed FROM stored.results")
    results: dict[int, ExperimentResult] = {}
    while rows := found.fetchmany(_PART_OF_RESULTS):
        # The file is ours, in the user's cache, and is checked as its programs are, which run as well (docs/adr/0075).
        results |= {number: pickle.loads(packed) for number, packed in rows if number in numbers}  # noqa: S301
    return results
