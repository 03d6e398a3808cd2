"""A profile as Parquet files, one for each table, for further analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import StoreError
from seatrial.profiler.profile import PairTable, Profile, RankTotals

if TYPE_CHECKING:
    import duckdb
    import numpy.typing as npt

Columns = Mapping[str, "tuple[str, Sequence[Any] | npt.NDArray[Any]]"]
"""Name -> (SQL type, values)."""


_MAY_MISS = "DOUBLE?"
"""A number that may be missing."""


def write_parquet(profile: Profile, folder: Path) -> list[Path]:
    """Write `calls`, `sizes`, `matrix`, `per_rank`, `callsites`, `over_time`, `io`, `regions` and
    `cpu_slices`.parquet; return their paths.

    Names and units are those of `seatrial.profile/1`. Files are written atomically. Raises StoreError if one cannot be
    written.
    """
    import duckdb  # needed for Parquet only

    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            for name, relation in _TABLES.items():
                made.append(folder / f"{name}.parquet")
                _write(connection, relation(profile), made[-1])
    except (OSError, duckdb.Error) as error:
        raise StoreError(f"{str(folder)!r} cannot be written: {error}", "give another folder") from error
    return made


def _write(connection: duckdb.DuckDBPyConnection, columns: Columns, path: Path) -> None:
    import numpy as np

    # DuckDB cannot infer the type of an empty object array, so strings are passed as numpy strings.
    types = {
        "VARCHAR": np.dtype(np.str_),
        "DOUBLE": np.dtype(np.float64),
        "UBIGINT": np.dtype(np.uint64),
        _MAY_MISS: np.dtype(np.float64),  # None becomes NaN here and NULL in the file
    }
    rows = {
        name: np.asarray([_whole(value) for value in values] if kind == "VARCHAR" else values, types[kind])
        for name, (kind, values) in columns.items()
    }
    connection.register("profile_rows", rows)
    chosen = ", ".join(
        f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}"
        if kind == _MAY_MISS
        else f"CAST({name} AS {kind}) AS {name}"
        for name, (kind, _) in columns.items()
    )
    private = path.with_name(f".{path.name}.part")
    target = str(private).replace("'", "''")
    try:
        connection.execute(f"COPY (SELECT {chosen} FROM profile_rows) TO '{target}' (FORMAT parquet)")  # noqa: S608 - our names
        private.replace(path)
    finally:
        private.unlink(missing_ok=True)
        connection.unregister("profile_rows")


def _whole(text: str) -> str:
    """A path need not be valid text: invalid characters become "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _picked(rows: Sequence[Any], **fields: tuple[str, Callable[[Any], Any]]) -> Columns:
    return {name: (kind, [of(row) for row in rows]) for name, (kind, of) in fields.items()}


def _calls(profile: Profile) -> Columns:
    return _picked(
        profile.calls,
        call=("VARCHAR", lambda one: one.call),
        count=("UBIGINT", lambda one: one.count),
        time_s=("DOUBLE", lambda one: one.time_s),
        bytes=("UBIGINT", lambda one: one.bytes),
        waiting_s=("DOUBLE", lambda one: one.waiting_s),
        bound=("VARCHAR", lambda one: one.bound.value),
    )


def _sizes(profile: Profile) -> Columns:
    return _picked(
        profile.sizes,
        call=("VARCHAR", lambda one: one.call),
        size_bin=("UBIGINT", lambda one: one.size_B),
        largest=("UBIGINT", lambda one: one.largest_B),
        count=("UBIGINT", lambda one: one.count),
        bytes=("UBIGINT", lambda one: one.bytes),
        time_s=("DOUBLE", lambda one: one.time_s),
        best_s=("DOUBLE", lambda one: one.best_s),
        bound=("VARCHAR", lambda one: one.bound.value),
    )


def _matrix(profile: Profile) -> Columns:
    import numpy as np

    pairs: PairTable = profile.matrix
    return {
        "src": ("UBIGINT", np.frombuffer(pairs.src, np.uintc)),
        "dst": ("UBIGINT", np.frombuffer(pairs.dst, np.uintc)),
        "count": ("UBIGINT", np.frombuffer(pairs.count, np.uint64)),
        "bytes": ("UBIGINT", np.frombuffer(pairs.bytes, np.uint64)),
    }


def _per_rank(profile: Profile) -> Columns:
    return _picked(
        profile.per_rank,
        rank=("UBIGINT", lambda one: one.rank),
        host=("VARCHAR", lambda one: one.host),
        wall_s=("DOUBLE", lambda one: one.wall_s),
        mpi_s=("DOUBLE", lambda one: one.mpi_s),
        calls=("UBIGINT", lambda one: one.calls),
        sent_bytes=("UBIGINT", lambda one: one.sent_B),
        recv_bytes=("UBIGINT", lambda one: one.received_B),
        collective_bytes=("UBIGINT", lambda one: one.collective_B),
        state=("VARCHAR", lambda one: one.state.value),
        **{name: (_MAY_MISS, partial(_of_cpu, attribute)) for name, attribute in _CPU_COLUMNS.items()},
        **{name: (_MAY_MISS, partial(_of_counters, attribute)) for name, attribute in _COUNTER_COLUMNS.items()},
        openmp_parallel_s=(_MAY_MISS, lambda one: None if one.openmp is None else one.openmp.parallel_s),
        openmp_wait_s=(
            _MAY_MISS,
            lambda one: None if one.openmp is None else one.openmp.end_wait_s + one.openmp.barrier_s,
        ),
    )


_CPU_COLUMNS = {
    "cpu_s": "cpu_s",
    "run_delay_s": "delay_s",
    "voluntary_switches": "voluntary",
    "involuntary_switches": "involuntary",
    "minor_faults": "minor_faults",
    "major_faults": "major_faults",
    "most_resident_bytes": "most_resident_B",
}
_COUNTER_COLUMNS = {
    "cycles": "cycles",
    "instructions": "instructions",
    "cache_misses": "cache_misses",
    "memory_bytes": "memory_B",
    "flops": "flops",
}


def _of_cpu(attribute: str, rank: RankTotals) -> float | None:
    return None if rank.cpu is None else getattr(rank.cpu, attribute)


def _of_counters(attribute: str, rank: RankTotals) -> float | None:
    return None if rank.counters is None else getattr(rank.counters, attribute)


def _regions(profile: Profile) -> Columns:
    """One row for each region and rank."""
    rows = [("/".join(region.path), one) for region in profile.regions for one in region.per_rank]
    return _picked(
        rows,
        region=("VARCHAR", lambda row: row[0]),
        rank=("UBIGINT", lambda row: row[1].rank),
        count=("UBIGINT", lambda row: row[1].count),
        wall_s=("DOUBLE", lambda row: row[1].wall_s),
        mpi_s=("DOUBLE", lambda row: row[1].mpi_s),
        cpu_s=("DOUBLE", lambda row: row[1].cpu_s),
        waiting_s=("DOUBLE", lambda row: row[1].waiting_s),
        unended=("UBIGINT", lambda row: row[1].unended),
    )


def _callsites(profile: Profile) -> Columns:
    return _picked(
        profile.callsites,
        call=("VARCHAR", lambda one: one.call),
        module=("VARCHAR", lambda one: one.module),
        offset_in_module=("UBIGINT", lambda one: one.offset),
        function=("VARCHAR", lambda one: one.frames[0].function if one.frames else ""),
        file=("VARCHAR", lambda one: one.frames[0].file if one.frames else ""),
        line=("UBIGINT", lambda one: one.frames[0].line if one.frames else 0),
        count=("UBIGINT", lambda one: one.count),
        time_s=("DOUBLE", lambda one: one.time_s),
        bytes=("UBIGINT", lambda one: one.bytes),
        ranks=("UBIGINT", lambda one: one.ranks),
    )


def _over_time(profile: Profile) -> Columns:
    time = profile.over_time
    if time is None:
        return {name: ("DOUBLE", []) for name in ("from_s", "mpi_s", "wall_s")}
    starts = [k * time.width_s for k in range(len(time.mpi_s))]
    return {"from_s": ("DOUBLE", starts), "mpi_s": ("DOUBLE", time.mpi_s), "wall_s": ("DOUBLE", time.wall_s)}


def _io(profile: Profile) -> Columns:
    """One row for each rank and bin."""
    io = profile.io
    series = [(one.rank, one.series) for one in io.ranks if one.series is not None] if io is not None else []
    width = io.width_s if io is not None else 0.0

    def joined(name: str) -> list[float]:
        return [value for _, one in series for value in getattr(one, name)]

    return {
        "rank": ("UBIGINT", [rank for rank, one in series for _ in one.read_B]),
        "from_s": ("DOUBLE", [k * width for _, one in series for k in range(len(one.read_B))]),
        "read_bytes": ("DOUBLE", joined("read_B")),
        "written_bytes": ("DOUBLE", joined("written_B")),
        "device_read_bytes": ("DOUBLE", joined("device_read_B")),
        "device_written_bytes": ("DOUBLE", joined("device_written_B")),
    }


def _cpu_slices(profile: Profile) -> Columns:
    """One row for each rank and slice of time."""
    known = [
        (one.rank, one.cpu.slices) for one in profile.per_rank if one.cpu is not None and one.cpu.slices is not None
    ]

    def grown(name: str) -> list[float]:
        return [after - before for _, one in known for before, after in pairwise(getattr(one, name))]

    return {
        "rank": ("UBIGINT", [rank for rank, one in known for _ in one.at_s[1:]]),
        "from_s": ("DOUBLE", [at_s for _, one in known for at_s in one.at_s[:-1]]),
        "to_s": ("DOUBLE", [at_s for _, one in known for at_s in one.at_s[1:]]),
        "cpu_s": ("DOUBLE", grown("cpu_s")),
        "run_delay_s": ("DOUBLE", grown("delay_s")),
        "node_busy_s": (_MAY_MISS, grown("busy_s")),
        "node_steal_s": (_MAY_MISS, grown("steal_s")),
    }


_TABLES: Mapping[str, Callable[[Profile], Columns]] = {
    "calls": _calls,
    "sizes": _sizes,
    "matrix": _matrix,
    "per_rank": _per_rank,
    "callsites": _callsites,
    "over_time": _over_time,
    "io": _io,
    "regions": _regions,
    "cpu_slices": _cpu_slices,
}
