"""A profile as Parquet files, one for each table, for further analysis."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import StoreError
from seatrial.model.json_object import as_utf8
from seatrial.profiler.cause import Frame
from seatrial.profiler.profile import PairTable, Profile

if TYPE_CHECKING:
    import duckdb
    import numpy.typing as npt

Columns = Mapping[str, "tuple[str, Sequence[Any] | npt.NDArray[Any]]"]
"""Name -> (SQL type, values)."""


_MAY_MISS = "DOUBLE?"  # A number that may be missing.


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
        name: np.asarray([as_utf8(value) for value in values] if kind == "VARCHAR" else values, types[kind])
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
    above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    target = f"/proc/self/fd/{above}/{private.name}"  # DuckDB takes paths in UTF-8 only
    try:
        connection.execute(f"COPY (SELECT {chosen} FROM profile_rows) TO '{target}' (FORMAT parquet)")  # noqa: S608 - our names
        private.replace(path)
    finally:
        os.close(above)
        private.unlink(missing_ok=True)
        connection.unregister("profile_rows")


def _picked(rows: Sequence[Any], declared: str) -> Columns:
    """The columns of a table, declared as "NAME TYPE, ..." or "NAME = ATTRIBUTE TYPE, ..."; an attribute of an
    attribute that is None is None."""
    columns: dict[str, tuple[str, list[Any]]] = {}
    for declaration in declared.split(","):
        *names, kind = declaration.split()
        columns[names[0]] = (kind, [_attribute(row, names[-1]) for row in rows])
    return columns


def _attribute(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = None if row is None else getattr(row, name)
    return row


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
    waits = [None if one.openmp is None else one.openmp.end_wait_s + one.openmp.barrier_s for one in profile.per_rank]
    columns = _picked(
        profile.per_rank,
        "rank UBIGINT, host VARCHAR, wall_s DOUBLE, mpi_s DOUBLE, calls UBIGINT, sent_bytes = sent_B UBIGINT, "
        "recv_bytes = received_B UBIGINT, collective_bytes = collective_B UBIGINT, state = state.value VARCHAR, "
        "cpu_s = cpu.cpu_s DOUBLE?, run_delay_s = cpu.delay_s DOUBLE?, voluntary_switches = cpu.voluntary DOUBLE?, "
        "involuntary_switches = cpu.involuntary DOUBLE?, minor_faults = cpu.minor_faults DOUBLE?, "
        "major_faults = cpu.major_faults DOUBLE?, most_resident_bytes = cpu.most_resident_B DOUBLE?, "
        "cycles = counters.cycles DOUBLE?, instructions = counters.instructions DOUBLE?, "
        "cache_misses = counters.cache_misses DOUBLE?, memory_bytes = counters.memory_B DOUBLE?, "
        "flops = counters.flops DOUBLE?, openmp_parallel_s = openmp.parallel_s DOUBLE?",
    )
    return {**columns, "openmp_wait_s": (_MAY_MISS, waits)}


def _regions(profile: Profile) -> Columns:
    """One row for each region and rank."""
    rows = [("/".join(region.path), one) for region in profile.regions for one in region.per_rank]
    columns = _picked(
        [one for _, one in rows],
        "rank UBIGINT, count UBIGINT, wall_s DOUBLE, mpi_s DOUBLE, cpu_s DOUBLE, waiting_s DOUBLE, unended UBIGINT",
    )
    return {"region": ("VARCHAR", [name for name, _ in rows]), **columns}


def _callsites(profile: Profile) -> Columns:
    innermost = [one.frames[0] if one.frames else Frame("") for one in profile.callsites]
    return {
        **_picked(profile.callsites, "call VARCHAR, module VARCHAR, offset_in_module = offset UBIGINT"),
        **_picked(innermost, "function VARCHAR, file VARCHAR, line UBIGINT"),
        **_picked(profile.callsites, "count UBIGINT, time_s DOUBLE, bytes UBIGINT, ranks UBIGINT"),
    }


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
    columns: Columns = {
        "rank": ("UBIGINT", [rank for rank, one in series for _ in one.read_B]),
        "from_s": ("DOUBLE", [k * width for _, one in series for k in range(len(one.read_B))]),
    }
    names = ("read", "written", "device_read", "device_written")
    values = ([value for _, one in series for value in getattr(one, f"{name}_B")] for name in names)
    return {**columns, **{f"{name}_bytes": ("DOUBLE", own) for name, own in zip(names, values, strict=True)}}


def _cpu_slices(profile: Profile) -> Columns:
    """One row for each rank and slice of time."""
    known = [(one.rank, one.cpu.slices) for one in profile.per_rank if one.cpu and one.cpu.slices]

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


_CALLS = "call VARCHAR, count UBIGINT, time_s DOUBLE, bytes UBIGINT, waiting_s DOUBLE, bound = bound.value VARCHAR"
_SIZES = (
    "call VARCHAR, size_bin = size_B UBIGINT, largest = largest_B UBIGINT, count UBIGINT, bytes UBIGINT, "
    "time_s DOUBLE, best_s DOUBLE, bound = bound.value VARCHAR"
)
_TABLES: Mapping[str, Callable[[Profile], Columns]] = {
    "calls": lambda profile: _picked(profile.calls, _CALLS),
    "sizes": lambda profile: _picked(profile.sizes, _SIZES),
    "matrix": _matrix,
    "per_rank": _per_rank,
    "callsites": _callsites,
    "over_time": _over_time,
    "io": _io,
    "regions": _regions,
    "cpu_slices": _cpu_slices,
}
