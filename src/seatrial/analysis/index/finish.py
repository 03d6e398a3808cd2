"""From the readings of repeats in an index to the figures of experiments, by the rules of `analysis.results`."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.analysis.experiment_figures import Computed, Extent, middle_limit, middle_places, summarised
from seatrial.analysis.grouped import grouped
from seatrial.analysis.index.chunk import ChunkReader, json_text
from seatrial.analysis.roles import with_ceilings
from seatrial.benchmarks import registry
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValues
from seatrial.model.results.record import Experiment, impossible_reason
from seatrial.model.results.sample import Outcome, Stage, State

if TYPE_CHECKING:
    import duckdb

_BATCH = 200_000
"""Readings that are fetched at a time; those of one figure are never split."""


class Summary(Frozen):
    """What the repeats of one experiment have in common: the latest outcome, and when they ran."""

    outcome: Outcome
    n_repeats: int
    n_ok: int
    first_t0: float
    last_t0: float
    wall_s: float
    has_samples: bool
    error: str


def summaries(connection: duckdb.DuckDBPyConnection) -> dict[int, Summary]:
    """The summary of each experiment by its number."""
    ok = "(SELECT number FROM stored.texts WHERE text = 'ok')"
    rows = connection.execute(
        f"""WITH totals AS (
          SELECT experiment, count(*) AS n, count(*) FILTER (state = {ok}) AS n_ok, min(t0) AS first, max(t0) AS last,
            sum(wall_s) AS wall_s, sum(n_samples) > 0 AS has_samples FROM stored.records GROUP BY experiment),
        latest AS (
          SELECT * FROM stored.records
          QUALIFY row_number() OVER (PARTITION BY experiment ORDER BY t0 DESC, ord DESC, repeat DESC) = 1),
        wrong AS (
          SELECT experiment, error FROM stored.records WHERE error >= 0
          QUALIFY row_number() OVER (PARTITION BY experiment ORDER BY t0, ord, repeat) = 1)
        SELECT l.experiment, s.text, y.text, v.text, g.text, c.text, n, n_ok, first, last, totals.wall_s, has_samples,
          coalesce(w.text, '')
        FROM latest l JOIN totals USING (experiment) JOIN stored.texts s ON s.number = l.state
          JOIN stored.texts y ON y.number = l.reason JOIN stored.texts v ON v.number = l.evidence
          JOIN stored.texts g ON g.number = l.stage JOIN stored.texts c ON c.number = l.checked
          LEFT JOIN wrong ON wrong.experiment = l.experiment LEFT JOIN stored.texts w ON w.number = wrong.error
        """  # noqa: S608 - our own text
    ).fetchall()
    return {row[0]: _summary(row) for row in rows}


def _summary(row: tuple[Any, ...]) -> Summary:
    n_repeats, n_ok, first_t0, last_t0, wall_s, has_samples, error = row[6:]
    outcome = Outcome(State(row[1]), row[2], row[3], Stage(row[4]) if row[4] else None, row[5])
    return Summary(outcome, n_repeats, n_ok, first_t0, last_t0, wall_s, has_samples, error)


def computed(
    connection: duckdb.DuckDBPyConnection,
    reader: ChunkReader,
    experiments: Mapping[int, Experiment],
    found: Mapping[int, Summary],
) -> dict[int, Computed]:
    """The outcome and figures of those of these experiments that succeeded and have a benchmark, by number, as
    `analysis.experiment_figures` computes them from records. Raises StoreError."""
    impossible = _impossible(connection)
    wanted = {
        number
        for number, experiment in experiments.items()
        if found[number].outcome.is_ok and experiment.benchmark in registry()
    }
    records = _Records(connection, reader)
    figures: dict[int, list[tuple[tuple[Any, ...], FigureResult]]] = {}
    refused: dict[int, Outcome] = {}
    for number in wanted:
        if why := found[number].error:
            refused[number] = Outcome.invalid("samples", why)
        elif number in impossible:
            n, first = impossible[number]
            why = f"{records.impossible(first)}, in {n} of {found[number].n_ok} repeats, by what is known now"
            refused[number] = Outcome.invalid("limit", why)
    for group in _groups(connection, wanted - refused.keys()):
        experiment = experiments[group.experiment]
        order = {figure.name: place for place, figure in enumerate(registry()[experiment.benchmark].figures)}
        result = _figure(group, experiment, records)
        figures.setdefault(group.experiment, []).append(((order[group.name], *group.first), result))
    return {
        number: (refused[number], ())
        if number in refused
        else (Outcome.ok(), tuple(one for _, one in sorted(figures.get(number, ()), key=lambda item: item[0])))
        for number in wanted
    }


def ceilings(
    results: Mapping[int, ExperimentResult], others: Sequence[ExperimentResult]
) -> dict[int, ExperimentResult]:
    """The results with measured ceilings from all experiments of their machines."""
    by_machine = grouped((other.experiment.machine, other) for other in others)
    return {
        number: with_ceilings(
            registry()[result.experiment.benchmark], result, by_machine.get(result.experiment.machine, ())
        )
        if needs_ceilings(result.experiment)
        else result
        for number, result in results.items()
    }


def needs_ceilings(experiment: Experiment) -> bool:
    """Whether other experiments may limit its figures."""
    benchmark = registry().get(experiment.benchmark)
    return benchmark is not None and any(figure.ceiling is not None for figure in benchmark.figures)


class _Group(Frozen):
    """One figure at one point of one experiment: columns over its repeats, in order of time."""

    experiment: int
    name: str
    point: str
    first: tuple[Any, ...]
    columns: Mapping[str, Any]


def _groups(connection: duckdb.DuckDBPyConnection, wanted: set[int]) -> Iterator[_Group]:
    """All figures of these experiments."""
    import numpy as np

    keys = {
        number: (figure, point)
        for number, figure, point in connection.execute("SELECT number, figure, point FROM stored.keys").fetchall()
    }
    connection.register("wanted", {"number": np.asarray(sorted(wanted), np.int64)})
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ordered AS
        SELECT r.experiment, d.key, d.record, d.value, d.minimum, d.maximum, d.n, d.share, d.resolution, r.t0, r.ord,
          r.repeat, d.seq, r.file, r.start, r.length
        FROM stored.readings d JOIN stored.records r ON r.number = d.record
        WHERE r.experiment IN (SELECT number FROM wanted)
        ORDER BY r.experiment, d.key, r.t0, r.ord, r.repeat"""
    )
    connection.unregister("wanted")
    counts = connection.execute(
        "SELECT experiment, key, count(*) AS n FROM ordered GROUP BY experiment, key ORDER BY experiment, key"
    ).fetchnumpy()
    ends = np.cumsum(counts["n"]).tolist()
    position, begin = 0, 0
    while position < len(ends):
        last = position
        while last + 1 < len(ends) and ends[last + 1] - begin <= _BATCH:
            last += 1
        rows = connection.execute(
            "SELECT * FROM ordered WHERE rowid >= ? AND rowid < ? ORDER BY rowid", [begin, ends[last]]
        ).fetchnumpy()
        start = 0
        for place in range(position, last + 1):
            stop = ends[place] - begin
            columns = {name: column[start:stop] for name, column in rows.items()}
            name, point = keys[int(columns["key"][0])]
            first = tuple(columns[of][0].item() for of in ("t0", "ord", "repeat", "seq"))
            yield _Group(int(columns["experiment"][0]), name, point, first, columns)
            start = stop
        position, begin = last + 1, ends[last]
    connection.execute("DROP TABLE ordered")


def _figure(group: _Group, experiment: Experiment, records: _Records) -> FigureResult:
    """The figure, as `analysis.experiment_figures` computes it."""
    import numpy as np

    columns = group.columns
    values = columns["value"].tolist()
    places = middle_places(values, np.flatnonzero(~np.isnan(columns["share"])).tolist())
    point = json.loads(group.point)
    figure = registry()[experiment.benchmark].figure(group.name)
    limit = None
    if figure.limit is not None:
        file, start, length = (columns[name] for name in ("file", "start", "length"))
        limits = [
            records.limit(int(file[at]), int(start[at]), int(length[at]), group.name, group.point)
            for at in places or [0]
        ]
        limit = middle_limit(limits) if places else limits[0]
    numbers, orders = (array("q", columns[name].tobytes()) for name in ("repeat", "ord"))
    starts, own, resolutions = (array("d", columns[name].tobytes()) for name in ("t0", "value", "resolution"))
    repeats = RepeatValues(numbers, orders, starts, own, (), resolutions if any(resolutions) else ())
    seen = Extent(float(columns["minimum"].min()), float(columns["maximum"].max()), int(columns["n"].sum()))
    return summarised(figure, point, experiment.parameters, repeats, seen, limit)


def _impossible(connection: duckdb.DuckDBPyConnection) -> dict[int, tuple[int, int]]:
    """Experiment -> (repeats beyond a physical limit, the first such record)."""
    rows = connection.execute(
        """SELECT experiment, count(*) OVER (PARTITION BY experiment), number FROM stored.records
        WHERE number IN (SELECT record FROM stored.readings WHERE impossible)
        QUALIFY row_number() OVER (PARTITION BY experiment ORDER BY t0, ord, repeat) = 1"""
    ).fetchall()
    return {experiment: (n, record) for experiment, n, record in rows}


class _Records:
    """Records that are read again, for their limits. The last one stays: figures often share it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, reader: ChunkReader) -> None:
        self._connection = connection
        self._reader = reader
        self._place = (-1, -1)
        self._files = dict(connection.execute("SELECT number, name FROM stored.files").fetchall())
        self._limits: dict[tuple[str, str], Limit | None] = {}
        self._reasons: list[str] = []

    def limit(self, file: int, start: int, length: int, figure: str, point: str) -> Limit | None:
        """The limit of a figure in this record."""
        self._read(file, start, length)
        return self._limits.get((figure, point))

    def impossible(self, number: int) -> str:
        """Why a figure of a record cannot be true."""
        for place in self._connection.execute(
            "SELECT file, start, length FROM stored.records WHERE number = ?", [number]
        ).fetchall():
            self._read(*place)
        return self._reasons[0] if self._reasons else "a figure exceeds its limit"

    def _read(self, file: int, start: int, length: int) -> None:
        if (file, start) == self._place:
            return
        found = self._reader.readings(self._reader.record(self._files[file], start, length))
        self._place = (file, start)
        self._limits = {(one.figure.name, json_text(one.point)): one.limit for one in found}
        self._reasons = [why for one in found if (why := impossible_reason(one))]
