"""Made-up profiles for the text, the document and the page."""

from __future__ import annotations

import random

from profiler.made_up_samples import Samples, Series, counters, io_fields
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.cause import Frame
from seatrial.profiler.profile import Profile
from seatrial.profiler.tables.io_samples import parse_io_samples
from seatrial.profiler.tables.process_table import parse_table

_MAPPED = "10000 20000 1000 /opt/crash/solver\n70000 80000 0 /opt/lib/libpart.so\n"
_PLACES = {
    0x1100: (Frame("reduce_energy", "/src/crash/energy.f90", 212),),
    0x1200: (Frame("wait_for_halo", "/src/crash/halo.c", 88), Frame("exchange", "/src/crash/halo.c", 140)),
    0x1300: (Frame("exchange", "/src/crash/halo.c", 131),),
}


def resolve(module, offsets):
    return {k: v for k, v in _PLACES.items() if k in offsets} if module.endswith("solver") else {}


def crash(size: int = 32, per_node: int = 16, *, incomplete: bool = False, several: bool = False) -> Profile:
    """An explicit solver: neighbours exchange, then all reduce 4 B. Rank 5 has more to do than the others."""
    tables = []
    chance = random.Random(7)
    for rank in range(size):
        busy = 1.5 if rank == 5 else 1.0 + chance.uniform(-0.05, 0.05)
        peers = {}
        for other in (rank - 1, rank + 1, rank - 8, rank + 8):
            if 0 <= other < size:
                step = 2_000_000 if abs(other - rank) == 1 else 600_000
                peers[other] = (1000, 1000 * step, 1000, 1000 * step)
        sent = sum(row[0] for row in peers.values())
        calls = [
            Call("MPI_Init", 1, 0, 0.4, site=0x10500),
            Call("MPI_Allreduce", 100_000, 4, 24e-6 / busy**2, 11e-6, site=0x10100),
            Call("MPI_Allreduce", 10_000, 224, 15e-6, 12e-6, site=0x10100),
            Call("MPI_Wait", 2 * sent, 600_000, 8e-5, 1e-6, site=0x10200),
            Call("MPI_Isend", sent, 2_000_000, 4e-5, 3e-5, site=0x10300),
            Call("MPI_Irecv", sent, 0, 4e-7, 2e-7, site=0x10300),
            Call("MPI_Bcast", 20, 1 << 20, 4e-4, 3e-4, site=0x70900),
            Call("MPI_Bcast", 20, 8, 3e-6, 2e-6, site=0x70900),
            Call("MPI_Finalize", 1, 0, 0.01, site=0x10600),
        ]
        spent = sum(one.count * one.mean_s for one in calls)
        bins = [max(0.0, spent / 10 * (1 + 0.5 * chance.uniform(-1, 1))) for _ in range(10)]
        threads = [Thread(calls, peers, bins, without_site=12 if incomplete else 0)]
        if several:
            threads.append(Thread([Call("MPI_Send", 5, 8, 1e-6)]))
        table = Table(
            rank, size, threads, f"node{rank // per_node + 1}", "/opt/crash/solver", "Open MPI v4.1.4, package: made up"
        )
        table = table.but(wall_s=10.0, modules=_MAPPED, pid=1000 + rank, own_ticks=9.0)
        if incomplete and rank == 7:
            table = table.but(state=3, wall_s=6.0, unknown_length=3)
        if not (incomplete and rank == 3):
            tables.append(parse_table(table.data(), len(NAMES)))
    return profiles(tables, NAMES, resolve)[0]


def one_rank() -> Profile:
    """A program on one rank that hardly calls MPI."""
    table = Table(0, 1, [Thread([Call("MPI_Init", 1, 0, 0.1), Call("MPI_Barrier", 3)], {}, [0.1])])
    return profiles([parse_table(table.data(), len(NAMES))], NAMES)[0]


def hostile() -> Profile:
    """Names from outside that try to become markup or to steer a terminal, and an unknown MPI library."""
    bad = "<script>alert(1)</script>\x1b[2J\u202e"
    mapped = f"10000 20000 0 /opt/{bad.replace(chr(27), '')} x\n"
    threads = [Thread([Call("MPI_Send", 5, 100, 0.5, site=0x10100)], {1: (5, 500, 0, 0)}, [1.0, 1.5])]
    made = [
        Table(
            rank,
            2,
            threads if rank == 0 else [Thread([Call("MPI_Recv", 5, 0, 0.3)], {}, [0.5])],
            bad,
            bad,
            bad,
            family=0,
        )
        for rank in range(2)
    ]
    tables = [parse_table(one.but(modules=mapped).data(), len(NAMES)) for one in made]
    return profiles(tables, NAMES, lambda module, offsets: {k: (Frame(bad, f"/{bad}.c", 3),) for k in offsets})[0]


def with_io(size: int = 8) -> Profile:
    """All read 64 MiB at the start, rank 0 writes 16 MiB every two seconds, and nothing is known of rank 3."""
    tables, series = [], []
    at = [0.2 * k for k in range(1, 51)]
    for rank in range(size):
        read = [min(64 << 20, 32 << 20 << k) if k < 2 else 64 << 20 for k in range(50)]
        written = [(16 << 20) * (k // 10) * (rank == 0) for k in range(50)]
        rows = [counters(r, w, r // 2, w) for r, w in zip(read, written, strict=True)]
        table = Table(rank, size, [Thread([Call("MPI_Init", 1, 0, 0.2)], {}, [0.2])], pid=100 + rank)
        if rank == 3:
            tables.append(table.but(io_error=13))
            continue
        series.append(Series(100 + rank, rank, dict(enumerate(rows))))
        tables.append(
            table.but(
                io_loaded=io_fields(0.0, counters()),
                io_first=io_fields(0.1, counters()),
                io_last=io_fields(10.0, rows[-1]),
            )
        )
    samples = Samples(at, [(5_000_000 * k, 9_000_000 * k, 2**64 - 1, 2**64 - 1) for k in range(50)], series)
    read_tables = [parse_table(one.data(), len(NAMES)) for one in tables]
    return profiles(read_tables, NAMES, samples=[parse_io_samples(samples.data())])[0]


def nothing() -> Profile:
    """MPI was begun, and the tables have no call."""
    return profiles([parse_table(Table(threads=()).data(), len(NAMES))], NAMES)[0]


SAMPLES = {
    "crash": crash,
    "large": lambda: crash(600, 40),
    "incomplete": lambda: crash(incomplete=True, several=True),
    "one rank": one_rank,
    "hostile": hostile,
    "nothing": nothing,
    "io": with_io,
}
