"""Made-up table files of the MPI profiler: the bytes that `profiler/native/table_file.h` describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seatrial.profiler.profile_io import SystemCall
from seatrial.profiler.tables.extension import EXTENSION_B
from seatrial.profiler.tables.header import (
    BINS_OVER_TIME,
    EXACT_SIZES_B,
    HEADER,
    MAGIC,
    MODULES_B,
    PAGE_B,
    SLOTS,
    VERSION,
)
from seatrial.profiler.tables.process_table import PEER_B, SLOT, SLOT_B, SLOTS_AT, THREAD

NAMES = (
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Wait",
    "MPI_Barrier",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Comm_split",
    "MPI_File_write_at",
    "MPI_Op_create",
    "MPI_Test",
    "MPI_Win_unlock",
    "MPI_Pack",
    "MPI_Win_fence",
    "MPI_Waitany",
    "MPI_Reduce",
    "MPI_Wtime",
    "MPI_Win_create",
    "MPI_Waitall",
    "MPI_Put",
)
RATE = 1e9
"""Ticks a second of the made-up clock: a tick is a nanosecond."""


def size_bin(size: int) -> int:
    """As `seatrial_bin` of the header has it."""
    if size <= EXACT_SIZES_B:
        return size
    power = size.bit_length() - 1
    return EXACT_SIZES_B + 1 + (power - 10) * 8 + (size >> (power - 3) & 7)


@dataclass(frozen=True)
class Call:
    """`count` calls of one kind. `mean_s` and `least_s` are of one; every message has `size` bytes. `part`: 1 waiting,
    2 transfer, 3 operations of the program in calls that have another row. `pause_s`: the time before each."""

    name: str
    count: int = 1
    size: int = 0
    mean_s: float = 1e-6
    least_s: float | None = None
    site: int = 0
    comm: int = 1
    part: int = 0
    pause_s: float = 0.0
    messages: int = 1

    def row(self) -> tuple[int, ...]:
        ticks = round(self.count * self.mean_s * RATE)
        least = round((self.mean_s if self.least_s is None else self.least_s) * RATE)
        call = NAMES.index(self.name) + 1
        key = (call, self.comm, self.part, size_bin(self.size), self.site)
        return (
            *key,
            self.count,
            self.count * self.size * self.messages,
            ticks,
            least,
            ticks,
            round(self.count * self.pause_s * RATE),
        )


@dataclass(frozen=True)
class Thread:
    """One thread. `peers`: rank -> (sent, sent bytes, received, received bytes); `over_time`: seconds in each bin."""

    calls: Sequence[Call] = ()
    peers: Mapping[int, tuple[int, int, int, int]] = field(default_factory=dict)
    over_time: Sequence[float] = ()
    bin_s: float = 1.0
    without_site: int = 0


@dataclass(frozen=True)
class Table:
    """One process's file."""

    rank: int = 0
    size: int = 1
    threads: Sequence[Thread] = (Thread(),)
    host: str = "node1"
    program: str = "/opt/app"
    library: str = "Open MPI v4.1.4"
    state: int = 2
    family: int = 2
    wall_s: float = 10.0
    loaded_at_s: float = 1.7e9
    own_ticks: float = 8.0
    rate: float = RATE
    lost: int = 0
    unknown_length: int = 0
    modules: str = ""
    most_threads: int = 2
    pid: int = 77
    io_loaded: Sequence[int] = ()
    io_first: Sequence[int] = ()
    io_last: Sequence[int] = ()
    io_error: int = 0
    job: str = "pmix 1"
    cpu_first: Sequence[int] = ()
    cpu_last: Sequence[int] = ()
    cpus: Sequence[int] = ()
    online: int = 0
    quota: float = 0.0
    system_uses: Mapping[str, tuple[int, float, int]] | None = None
    """Kind -> calls, seconds, bytes; None: not timed."""
    rows: int = SLOTS
    places: bytes = b""
    lost_places: int = 0
    script: str = ""
    noncontiguous_B: int = 0
    reading_ticks: float = 0.0
    version: int = VERSION
    extension: bytes = b""
    """The bytes of the extension; none: the table has no extension."""

    def data(self) -> bytes:
        """The whole file."""
        room = SLOTS_AT + SLOT_B * self.rows + PEER_B * (max(self.size, 0) + 1)
        area = -(-room // PAGE_B) * PAGE_B
        extension_at = PAGE_B + MODULES_B if self.extension else 0
        places_at = PAGE_B + MODULES_B + (EXTENSION_B if self.extension else 0)
        places_b = -(-len(self.places) // PAGE_B) * PAGE_B
        at = places_at + places_b
        loaded = 1_000_000
        end = loaded + round(self.wall_s * self.rate) if self.wall_s else 0
        head = HEADER.pack(
            *(MAGIC, self.version, self.state, self.family, self.rank, self.size, self.pid, self.most_threads),
            *(len(self.threads), area, at, self.rate, loaded, loaded, end if self.state == 2 else 0, end),
            *(round(self.loaded_at_s * 1e9), self.own_ticks, self.lost, self.unknown_length),
            *(self.host.encode(), self.program.encode(), self.library.encode()),
            *(self.io_loaded or (0,) * 8),
            *(*(self.io_first or (0,) * 8), *(self.io_last or (0,) * 8), self.io_error, 0, 0, self.job.encode()),
            *(*(self.cpu_first or (0,) * 13), *(self.cpu_last or (0,) * 13), self.online, self.quota),
            *(sum(1 << cpu % 64 for cpu in self.cpus if cpu // 64 == word) for word in range(64)),
            *(int(self.system_uses is not None), *self._system_uses()),
            extension_at,
            *((0,) * 5 if self.version == 2 else (self.rows, 0, places_b, len(self.places), self.lost_places)),
            *(self.script.encode(), self.noncontiguous_B, self.reading_ticks),
        )
        data = bytearray(at + self.most_threads * area)
        data[: len(head)] = head
        modules = self.modules.encode()
        data[PAGE_B : PAGE_B + len(modules)] = modules
        data[extension_at : extension_at + len(self.extension)] = self.extension or b""
        data[places_at : places_at + len(self.places)] = self.places
        for number, thread in enumerate(self.threads):
            written = _area(thread, self.size, self.rows)
            data[at + number * area : at + number * area + len(written)] = written
        return bytes(data)

    def _system_uses(self) -> Iterator[int]:
        for kind in tuple(SystemCall)[:-2]:  # locks and threads are in the extension
            calls, time_s, moved = (self.system_uses or {}).get(kind, (0, 0.0, 0))
            yield from (calls, round(time_s * self.rate), moved)

    def but(self, **changes: Any) -> Table:
        """The same with other fields."""
        return replace(self, **changes)


def _area(thread: Thread, size: int, rows: int) -> bytes:
    bins = np.zeros(BINS_OVER_TIME, "<u8")
    bins[: len(thread.over_time)] = [round(spent * RATE) for spent in thread.over_time]
    slots = np.zeros(rows, np.dtype(SLOT))
    for number, call in enumerate(thread.calls):
        slots[(number * 2654435761 + 17) % rows] = call.row()  # scattered, as hashing does
    peers = np.zeros((size + 1, 4), "<u8")
    for rank, row in thread.peers.items():
        peers[rank] = row
    head = THREAD.pack(1, len(thread.calls), thread.without_site, round(thread.bin_s * RATE))
    made = head + bins.tobytes() + slots.tobytes() + peers.tobytes()
    assert len(made) == SLOTS_AT + slots.nbytes + peers.nbytes
    return made
