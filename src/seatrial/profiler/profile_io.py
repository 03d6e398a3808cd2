"""What an MPI program read and wrote over time: through system calls, and on storage devices.

Sizes are in bytes, times in seconds. `read_B` and `written_B` count what system calls such as read and write moved,
from or to a cache, pipe, network file system or disk. `device_*` counts what block devices read and wrote for the
process; it excludes network file systems.
"""

from __future__ import annotations

from array import array
from enum import StrEnum

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, NonNegative


class SystemCall(StrEnum):
    """Calls that enter the kernel, in the order of `enum seatrial_system_kind`. SYNC: fsync and the like; METADATA:
    stat, unlink, mkdir and the like; POLL: sockets, and waiting for them or for pipes; CHILD: starting child processes
    and waiting for them; LOCK: locks of files, and semaphores; THREAD: waiting for threads of the process, by mutexes,
    conditions and joins."""

    READ = "read"
    WRITE = "write"
    SYNC = "sync"
    OPEN = "open"
    CLOSE = "close"
    METADATA = "metadata"
    SLEEP = "sleep"
    POLL = "poll"
    CHILD = "child"
    LOCK = "lock"
    THREAD = "thread"


FILE_CALLS = (
    SystemCall.READ,
    SystemCall.WRITE,
    SystemCall.SYNC,
    SystemCall.OPEN,
    SystemCall.CLOSE,
    SystemCall.METADATA,
)
"""Input and output."""
METADATA_CALLS = (SystemCall.OPEN, SystemCall.CLOSE, SystemCall.METADATA)


class SystemUse(Frozen):
    """Calls of one kind that enter the kernel, outside MPI, by threads that call MPI."""

    kind: SystemCall
    calls: Count
    time_s: NonNegative
    bytes: Count


class IoSeries(Frozen):
    """Bytes in bins of equal width since the first rank was started."""

    read_B: array[float] = field(default_factory=lambda: array("d"))
    written_B: array[float] = field(default_factory=lambda: array("d"))
    device_read_B: array[float] = field(default_factory=lambda: array("d"))
    device_written_B: array[float] = field(default_factory=lambda: array("d"))


class IoTotals(Frozen):
    """One rank from MPI_Init to MPI_Finalize. `start_read_B` and `start_written_B` come before that: libraries, the
    memory shared by MPI processes, and the I/O of the program until then. `cancelled_B` never reached the device,
    because the file was deleted or truncated first. `is_to_end` is False if the rank ended without MPI_Finalize: then
    the totals go up to the last sample.
    """

    read_B: int
    written_B: int
    read_calls: int
    write_calls: int
    device_read_B: int
    device_written_B: int
    cancelled_B: int
    start_read_B: int = 0
    start_written_B: int = 0
    is_to_end: bool = True


class RankIo(Frozen):
    """One rank. `totals` is None if its counters could not be read; `error` is the reason."""

    rank: int
    host: str
    totals: IoTotals | None
    series: IoSeries | None = None
    error: str = ""


class NodeIo(Frozen):
    """The disks and NFS mounts of one node, for all processes on it. A series has one value for each bin; None if the
    node has no such device, or it could not be read."""

    host: str
    disk_read_B: array[float] | None = None
    disk_written_B: array[float] | None = None
    nfs_read_B: array[float] | None = None
    nfs_written_B: array[float] | None = None


class ProfileIo(Frozen):
    """All ranks, by number, and their nodes. `width_s` is the width of a bin; 0 if nothing was sampled."""

    width_s: float
    bins: int
    ranks: tuple[RankIo, ...]
    nodes: tuple[NodeIo, ...] = ()

    @property
    def known(self) -> tuple[tuple[int, IoTotals], ...]:
        """The ranks whose counters could be read, with them."""
        return tuple((one.rank, one.totals) for one in self.ranks if one.totals is not None)

    @property
    def unknown(self) -> tuple[RankIo, ...]:
        """The ranks whose counters could not be read."""
        return tuple(one for one in self.ranks if one.totals is None)

    def total(self, name: str) -> int:
        """The sum over ranks of one field of IoTotals."""
        return sum(getattr(totals, name) for _, totals in self.known)

    def over_time(self, name: str) -> tuple[float, ...]:
        """The sum over ranks of one field of IoSeries, bin by bin."""
        series = [getattr(one.series, name) for one in self.ranks if one.series is not None]
        return tuple(map(sum, zip(*series, strict=True))) if series else ()

    def of_nodes(self, name: str) -> tuple[float, ...]:
        """The sum over nodes of one field of NodeIo, bin by bin; empty if no node has it."""
        series = [getattr(one, name) for one in self.nodes if getattr(one, name) is not None]
        return tuple(map(sum, zip(*series, strict=True))) if series else ()
