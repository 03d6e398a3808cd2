"""Programs of MPI for tests of the profiler: built with each library, run under the profiler, their tables read."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import build_profiler, profiler_variables
from seatrial.profiler.tables.header import BINS_OVER_TIME, HEADER, MODULES_B, PAGE_B, Family, ProcessState, bin_floor
from seatrial.profiler.tables.process_table import PEERS_AT, SLOTS_AT, THREAD
from seatrial.store.cache import cache_folder

TRAFFIC = Path(__file__).with_name("mpi_traffic_program.c")
ROOT_MAY = {f"{system}_ALLOW_RUN_AS_ROOT{confirm}": "1" for system in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
_MORE_RANKS_THAN_CORES = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
}


@cache
def profiler() -> Path:
    """The library, built once a session."""
    return build_profiler(first_compiler())


@cache
def traffic_program(mpi: Mpi) -> Path:
    """mpi_traffic_program.c with this library."""
    return built(mpi, TRAFFIC)


@cache
def built(mpi: Mpi, source: Path) -> Path:
    """A program with this library, whole at once: the other workers may need the same."""
    text = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    program = cache_folder() / f"{source.stem}-{text}-{mpi.build_id.replace(':', '-')}"
    private = program.with_name(f"{program.name}-{os.getpid()}")
    # MPICH declares MPI_STATUSES_IGNORE as an address of 1, which gcc takes for an array of no size.
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wno-stringop-overflow", "-Wno-unknown-warning-option")
    command = (*c_compiler(first_compiler()), "-O1", *warnings, "-pthread", *mpi.compile_flags, str(source))
    if not program.exists():
        subprocess.run([*command, "-o", str(private), *mpi.link_flags], check=True)
        private.replace(program)
    return program


@dataclass
class Seen:
    """What the table of one rank says: count and bytes of each call, how many calls of each size, messages of peers as
    (sent, bytes, received, bytes)."""

    rank: int
    size: int
    family: Family
    state: ProcessState
    lost_calls: int
    unknown_length: int
    wall_s: float
    ticks_per_s: float
    without_site: int = 0
    modules: list[tuple[int, int, str]] = field(default_factory=list)
    calls: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, Counter[int]] = field(default_factory=dict)
    kinds: dict[str, set[int]] = field(default_factory=dict)
    peers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    sites: set[int] = field(default_factory=set)
    parts: dict[tuple[str, int], tuple[int, float]] = field(default_factory=dict)
    """(call, 1 waiting or 2 transfer) -> calls and seconds."""
    mpi_s: float = 0.0
    over_time_s: float = 0.0


def seen(path: Path) -> Seen:
    """Read without numpy, so that reader and library are held against the format each by itself."""
    data = path.read_bytes()
    (_, _, state, family, rank, world, _, _, threads, thread_b, thread_at, rate, loaded, _, finalized, last, *rest) = (
        HEADER.unpack_from(data)
    )
    lost, unknown_length = rest[2:4]
    wall = (max(finalized, last) - loaded) / rate
    found = Seen(rank, world, Family(family), ProcessState(state), lost, unknown_length, wall, rate)
    for line in data[PAGE_B : PAGE_B + MODULES_B].split(b"\0", 1)[0].decode().splitlines():
        begin, end, _, name = line.split(" ", 3)
        found.modules.append((int(begin, 16), int(end, 16), name))
    peers = [(0, 0, 0, 0)] * (world + 1)
    for number in range(threads):
        at = thread_at + number * thread_b
        found.without_site += THREAD.unpack_from(data, at)[2]
        found.over_time_s += sum(struct.unpack_from(f"<{BINS_OVER_TIME}Q", data, at + THREAD.size)) / rate
        for row in _SLOT.iter_unpack(data[at + SLOTS_AT : at + PEERS_AT]):
            _count(found, row, rate)
        there = _PEER.iter_unpack(data[at + PEERS_AT : at + PEERS_AT + _PEER.size * (world + 1)])
        peers = [(a + e, b + f, c + g, d + h) for (a, b, c, d), (e, f, g, h) in zip(peers, there, strict=True)]
    found.peers = {other: row for other, row in enumerate(peers) if any(row)}
    return found


_SLOT = struct.Struct("<HBBIQQQQQQQ")
_PEER = struct.Struct("<QQQQ")


def _count(found: Seen, row: tuple[int, ...], rate: float) -> None:
    call, comm, part, size_bin, site, n, size, ticks, *_ = row
    if call == 0:
        return
    name = function_names()[call - 1]
    if part:
        sampled, time_s = found.parts.get((name, part), (0, 0.0))
        found.parts[name, part] = (sampled + n, time_s + ticks / rate)
        return
    count, total = found.calls.get(name, (0, 0))
    found.calls[name] = (count + n, total + size)
    found.sizes.setdefault(name, Counter())[bin_floor(size_bin)] += n
    found.kinds.setdefault(name, set()).add(comm)
    found.sites.add(site)
    found.mpi_s += ticks / rate


def run(
    mpi: Mpi,
    program: Path,
    tables: Path,
    ranks: int,
    *arguments: str,
    may_fail: bool = False,
    more: Mapping[str, str] | None = None,
) -> list[Seen]:
    """The tables of a program's ranks, by rank. `more` are further variables of the ranks."""
    tables.mkdir()
    variables = {**os.environ, **ROOT_MAY, **_MORE_RANKS_THAN_CORES, **dict(mpi.variables)}
    chosen = {**profiler_variables(profiler(), tables, {}), **(more or {})}
    preload = [f"{name}={value}" for name, value in chosen.items()]
    assert mpi.launcher is not None
    # The variables are set by env and not for the launcher, which is no program of MPI.
    command = [str(mpi.launcher), "-n", str(ranks), shutil.which("env") or "env", *preload, str(program), *arguments]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert may_fail or ended.returncode == 0, ended.stderr
    return sorted(map(seen, tables.glob("*.mpi")), key=lambda one: one.rank)
