"""What dominates the time in a call, and how long it takes at most when no rank is late.

The rules, in this order:

1. MPI startup and shutdown is "start-up"; calls that neither communicate nor wait for other ranks are "local".
2. "waiting", for calls that can wait: three quarters of the time exceed the best time of the same call and size (or
   what such a call takes at most on a working fabric, if the best is longer: `Reference`), or the
   rank with the shortest calls spends less than half the mean over ranks: a rank arrived late. (Contention looks the
   same.) If waiting was measured (`profiler/merge/rows.py`), only its share decides: three quarters or more.
3. "bandwidth-bound": the best time is at least twice that of the same function with at most 64 B, so that most of the
   time depends on the size; without such a small call, from 8 KiB up.
4. "latency-bound": everything else.

The best time is the median over ranks of each rank's shortest call. 8 KiB is near the half-performance length, latency
times bandwidth, of a fabric with 1 µs and 10 GB/s (R. W. Hockney, "The communication challenge for MPP", Parallel
Computing 20, 1994).

How long an MPI call takes at most on a working fabric when no rank is late.

The shortest call of a program is not a reference by itself: if every call waits, the shortest one does as well. The
constants are generous: four times the latency and a quarter of the bandwidth of shared memory and of Gigabit Ethernet.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from math import ceil, log2

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.profile import Bound

_PIECES = 20  # Copies of single numbers are so much slower than those of whole blocks, at most.
_ALL_TO_ALL = re.compile(r"MPI_I?(Neighbor_)?alltoall[vw]?(_init)?(_c)?", re.IGNORECASE)
_OF_ALL = re.compile(
    r"MPI_I?(barrier|bcast|gatherv?|scatterv?|allgatherv?|allreduce|reduce|reduce_scatter(_block)?|scan|exscan"
    r"|comm_\w+|win_\w+|file_\w+|cart_create|graph_create|dist_graph_\w+)(_init)?(_c)?",
    re.IGNORECASE,
)
_COMMUNICATORS = re.compile(
    r"MPI_(comm_(split|i?dup|create|free)\w*|cart_(create|sub)|graph_create|dist_graph_create\w*|intercomm_create\w*"
    r"|win_(create|allocate|free)\w*)",
    re.IGNORECASE,
)
_WINDOWS_MADE = re.compile(r"MPI_win_\w+", re.IGNORECASE)
_AGREEMENTS = 4
"""Collectives in which ranks agree on a new communicator: its members, and a number that all of them have free."""
_FOR_WINDOWS = 16
"""The same for a window, whose memory is also registered, and mapped by the others."""
_ALL_PARTS = re.compile(r"MPI_I?(gatherv?|scatterv?|allgatherv?)(_c)?", re.IGNORECASE)


def makes_communicator(call: str) -> bool:
    """Whether a function makes or frees a communicator or a window."""
    return _COMMUNICATORS.fullmatch(call) is not None


class ReferenceLink(Frozen):
    """Latency and bandwidth of a message between two ranks, both generous. `source` says where they are from."""

    latency_s: float
    bytes_per_s: float
    source: str

    def piecewise(self) -> ReferenceLink:
        """The same for data with gaps, which the library copies piece by piece."""
        return replace(self, bytes_per_s=self.bytes_per_s / _PIECES)

    def most_s(self, call: str, size_B: float, ranks: int) -> float:
        """The longest time of one call with this many bytes of one rank, all ranks there.

        Collectives are taken as two passes through a binary tree, or one message to each rank.
        """
        message_s = self.latency_s + size_B / self.bytes_per_s
        if _ALL_TO_ALL.fullmatch(call):
            return max(1, ranks - 1) * (self.latency_s + size_B / max(1, ranks) / self.bytes_per_s) + message_s
        if _ALL_PARTS.fullmatch(call):
            return max(1, ranks - 1) * message_s
        if _OF_ALL.fullmatch(call):
            each = _AGREEMENTS if makes_communicator(call) else 1
            each = _FOR_WINDOWS if each > 1 and _WINDOWS_MADE.fullmatch(call) else each
            return each * 2 * max(1, ceil(log2(max(2, ranks)))) * message_s
        return message_s


ON_ONE_HOST = ReferenceLink(4e-6, 1e9, "a message on one node: 4 µs and 1 GB/s")
BETWEEN_HOSTS = ReferenceLink(200e-6, 30e6, "a message over Gigabit Ethernet: 200 µs and 30 MB/s")


def reference_of(hosts: int) -> ReferenceLink:
    """The constants for ranks on so many hosts."""
    return ON_ONE_HOST if hosts == 1 else BETWEEN_HOSTS


SMALL_B = 64
HALF_PERFORMANCE_B = 8192
_WAITING_SHARE = 0.75
_SHORTEST_RANK = 0.5
_BEYOND_SMALL = 2.0
_START = frozenset({"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Session_init", "MPI_Session_finalize"})
_BEGINS = re.compile(
    r"MPI_(I(?!n|s_)[a-z_]+|Start|Startall|Pready\w*|Parrived|Put|Get|R?(put|get)|\w*ccumulate|Test\w*)(_c)?"
)
"""Functions that start or test communication without waiting for it."""
_WAITS = re.compile(
    r"MPI_(?!\w*_(keyval|errhandler|init)(_c)?$)([SBR]?send|Send|Recv|Mrecv|Sendrecv\w*|Probe|Mprobe|Wait\w*|Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?"
    r"|Alltoall[vw]?|Allreduce|Reduce|Reduce_scatter\w*|Scan|Exscan|Neighbor_\w+"
    r"|Win_(create|allocate|free|fence|start|complete|wait|lock|unlock|flush)\w*"
    r"|Comm_(create|split|dup|free|disconnect|connect|accept|spawn|join)\w*|Intercomm_\w+|Cart_create|Graph_create"
    r"|Dist_graph_create\w*|File_(open|close|sync|read|write|seek|set_size|preallocate)\w*)(_c)?"
)
"""Functions that wait for other ranks, or until communication is complete."""


_RECEIVES = re.compile(r"MPI_(Recv|Mrecv|Sendrecv\w*|Probe|Mprobe)(_c)?")
_SENDS = re.compile(r"MPI_[SBR]?send(_c)?", re.IGNORECASE)
_WINDOWS = re.compile(r"MPI_Win_(start|complete|wait|lock|unlock|flush)\w*")
_ATOMICS = re.compile(r"MPI_(Fetch_and_op|Compare_and_swap|(Get_a|A)ccumulate)(_c)?")
"""Functions on windows in which a library may wait for the lock of the window or for the progress of its owner (seen
with Open MPI's MPI_Fetch_and_op)."""


def _whether(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    """Whether the name of a function is of this form."""
    form = re.compile(pattern, flags)
    return lambda call: form.fullmatch(call) is not None


is_file_access = _whether(r"MPI_File_(read|write)(_at|_shared)?(_c)?")
"""Whether a function reads or writes a file independently of other ranks."""
receives = _whether(r"MPI_(I?m?recv|Start|Startall|I?sendrecv\w*)(_c)?", re.IGNORECASE)
"""Whether a function receives a message, or begins to."""
sends = _whether(r"MPI_(I?[sbr]?send|Start|Startall|I?sendrecv\w*)(_c)?", re.IGNORECASE)
"""Whether a function sends a message, or begins to."""
is_blocking_send = _whether(r"MPI_[SR]?send(_c)?", re.IGNORECASE)
"""Whether a function may wait until its message is received."""
is_blocking_receive = _whether(r"MPI_M?recv(_c)?", re.IGNORECASE)
"""Whether a function returns when it has received a message, and sends none."""
is_poll = _whether(r"MPI_(Test(all|any|some)?|Iprobe|Improbe|Request_get_status|Parrived|Win_test)")
"""Whether a function asks if something is complete, and returns at once."""


def may_wait(call: str) -> bool:
    """Whether a function can wait for other ranks."""
    return _WAITS.fullmatch(call) is not None or _ATOMICS.fullmatch(call) is not None


class WaitKind(StrEnum):
    """What a call waits for."""

    RECEIVE = "receive"
    SEND = "send"
    REQUESTS = "requests"
    COLLECTIVE = "collective"
    WINDOW = "window"
    POLL = "poll"


def wait_kind(call: str) -> WaitKind | None:
    """What a function waits for: a message to arrive or to be taken, its requests, access to a window, or all ranks;
    POLL for those that are called again and again instead of waiting. None if it does not wait."""
    if is_poll(call):
        return WaitKind.POLL
    if is_start(call) or not may_wait(call) or is_file_access(call):
        return None
    if _WINDOWS.fullmatch(call) or _ATOMICS.fullmatch(call):
        return WaitKind.WINDOW
    if _RECEIVES.fullmatch(call):
        return WaitKind.RECEIVE
    if _SENDS.fullmatch(call):
        return WaitKind.SEND
    return WaitKind.REQUESTS if call.startswith("MPI_Wait") else WaitKind.COLLECTIVE


def is_local(call: str) -> bool:
    """Whether a function neither communicates nor waits for other ranks."""
    return not (is_start(call) or may_wait(call) or is_poll(call) or _BEGINS.fullmatch(call))


def is_of_files(call: str) -> bool:
    """Whether a function is one of MPI-IO."""
    return call.startswith("MPI_File_")


def gaps_share(noncontiguous_B: int, files_B: int, sent_B: int) -> float:
    """At least this share of the bytes that are sent have datatypes with gaps: what was written to files (`files_B`)
    may have them too."""
    return min(1.0, max(0, noncontiguous_B - files_B) / sent_B) if sent_B > 0 else 0.0


def starts_requests(call: str) -> bool:
    """Whether a function starts communication that is completed, or found, by another call."""
    return _BEGINS.fullmatch(call) is not None and not is_poll(call)


SHORT_CALL_S = 1e-6
MANY_CALLS = 10_000
MANY_MESSAGES = 16
"""A call that completes so many messages takes up to SHORT_CALL_S for each of them, although none is late."""


SHORT_EPOCH_S = 5e-6
"""Ranks that meet in a fence take up to so much longer than at best on one node, although none is late."""
is_fence = _whether(r"MPI_Win_fence")
"""Whether a function ends an epoch of all ranks of a window."""


def is_short_wait(count: int, waiting_s: float, call: str = "") -> bool:
    """Whether many calls wait so little each that no rank is late: they differ by contention."""
    return count >= MANY_CALLS and waiting_s <= (SHORT_EPOCH_S if is_fence(call) else SHORT_CALL_S) * count


def is_call_rate(count: int, time_s: float) -> bool:
    """Whether calls are so short and many that their number is what costs: a call of less is never waiting."""
    return count >= MANY_CALLS and time_s <= SHORT_CALL_S * count


def is_start(call: str) -> bool:
    """Whether a function starts or shuts down MPI."""
    return call in _START


def bound_of(
    call: str,
    size_B: int,
    time_s: float,
    waiting_s: float,
    shortest_of_mean: float,
    best_s: float,
    small_best_s: float | None,
) -> Bound:
    """The kind, by the rules above, of all calls of one function and one size.

    `waiting_s` is the part of `time_s` above the best time; `shortest_of_mean` is the mean call of the rank with the
    shortest calls over the mean of all; `small_best_s` is the best time of the same function with at most SMALL_B,
    None without such calls.
    """
    if is_start(call):
        return Bound.START
    if time_s <= 0:
        return Bound.UNKNOWN
    can_wait = may_wait(call)
    if not can_wait and _BEGINS.fullmatch(call) is None:
        return Bound.LOCAL
    if not can_wait:
        waiting_s, shortest_of_mean = 0.0, 1.0
    if waiting_s >= _WAITING_SHARE * time_s or shortest_of_mean < _SHORTEST_RANK:
        return Bound.WAITING
    if size_B <= SMALL_B:
        return Bound.LATENCY
    if small_best_s is None or small_best_s <= 0:
        return Bound.BANDWIDTH if size_B >= HALF_PERFORMANCE_B else Bound.LATENCY
    return Bound.BANDWIDTH if best_s >= _BEYOND_SMALL * small_best_s else Bound.LATENCY
