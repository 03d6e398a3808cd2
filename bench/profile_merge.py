"""Merges and reports the synthetic tables of many ranks, each of which has sent to all others and has 500 rows.

    python bench/profile_merge.py FOLDER [--ranks 4096] [--rows 500]

FOLDER is created and removed; 4,096 ranks need 2 GB there (for example in /dev/shm) and 2 GB of memory. Prints the
wall time and CPU time of each step in seconds.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from profiler.made_up_tables import NAMES, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.symbols.symbols import Symbols
from seatrial.profiler.tables.header import MODULES_B, PAGE_B, SLOTS
from seatrial.profiler.tables.process_table import PEERS_AT, SLOT, SLOTS_AT, read_table
from seatrial.report.profile.document import profile_json
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text

_RANK_AT = 20
_LIBRARIES = 40
_BASE, _EACH = 0x400000, 0x100000
_RANKS_PER_NODE = 64

Result = TypeVar("Result")


def write_tables(folder: Path, ranks: int, rows: int) -> None:
    """Write a table file for each rank."""
    chance = np.random.default_rng(1)
    lines = (f"{_BASE + k * _EACH:x} {_BASE + (k + 1) * _EACH:x} 1000 /opt/lib{k}.so\n" for k in range(_LIBRARIES))
    empty = Table(0, ranks, (Thread(over_time=[0.3] * 60),), modules="".join(lines), most_threads=1, wall_s=60.0)
    data, at = bytearray(empty.data()), PAGE_B + MODULES_B
    peers = np.tile(np.array([10, 10_000, 10, 10_000], "<u8"), (ranks + 1, 1))
    peers[ranks] = 0
    data[at + PEERS_AT : at + PEERS_AT + peers.nbytes] = peers.tobytes()
    for rank in range(ranks):
        row = np.zeros(rows, np.dtype(SLOT))
        row["call"], row["bin"] = chance.integers(1, len(NAMES) + 1, rows), chance.integers(0, 1300, rows)
        row["site"] = _BASE + chance.integers(0, _LIBRARIES, rows) * _EACH + chance.integers(0, 50, rows) * 16
        row["count"], row["least_ticks"], row["most_ticks"] = chance.integers(1, 10_000, rows), 400, 90_000
        row["bytes"], row["ticks"] = row["count"] * 100, row["count"] * chance.integers(500, 5000, rows)
        slots = np.zeros(SLOTS, np.dtype(SLOT))
        slots[chance.permutation(SLOTS)[:rows]] = row
        struct.pack_into("<i", data, _RANK_AT, rank)
        data[at + SLOTS_AT : at + PEERS_AT] = slots.tobytes()
        (folder / f"node{rank // _RANKS_PER_NODE}-{rank}.mpi").write_bytes(data)


def timed(name: str, work: Callable[[], Result]) -> Result:
    """Run `work`, print its times, and return its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    print(f"{name:>7}: {time.perf_counter() - wall:6.2f} s, CPU {time.process_time() - cpu:6.2f} s")
    return result


def main() -> None:
    """Write the tables, then read, merge and report them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    try:
        write_tables(options.folder, options.ranks, options.rows)
        files = sorted(options.folder.glob("*.mpi"))
        tables = timed("read", lambda: [read_table(path, len(NAMES)) for path in files])
        (profile,) = timed("merge", lambda: profiles(tables, NAMES, Symbols.of_this_machine().frames))
        timed("text", lambda: profile_text(profile))
        timed("page", lambda: profile_page([profile]))
        timed("JSON", lambda: sum(len(piece) for piece in profile_json(profile, 0)))
        print(f"{profile.ranks} ranks, {len(profile.matrix)} pairs, {len(profile.callsites)} call sites")
    finally:
        shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
