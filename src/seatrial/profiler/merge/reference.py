"""How long an MPI call takes at most on a working fabric when no rank is late.

The shortest call of a program is no reference by itself: if every call waits, the shortest one does as well. The
constants are generous: four times the latency and a quarter of the bandwidth of shared memory and of Gigabit Ethernet.
"""

from __future__ import annotations

import re
from math import ceil, log2

from msgspec.structs import replace

from seatrial.model.frozen import Frozen

_PIECES = 20
"""Copies of single numbers are so much slower than those of whole blocks, at most."""
_ALL_TO_ALL = re.compile(r"MPI_I?(Neighbor_)?alltoall[vw]?(_init)?(_c)?", re.IGNORECASE)
_OF_ALL = re.compile(
    r"MPI_I?(barrier|bcast|gatherv?|scatterv?|allgatherv?|allreduce|reduce|reduce_scatter(_block)?|scan|exscan"
    r"|comm_\w+|win_\w+|file_\w+|cart_create|graph_create|dist_graph_\w+)(_init)?(_c)?",
    re.IGNORECASE,
)
_COMMUNICATORS = re.compile(
    r"MPI_(comm_(split|i?dup|create|free)\w*|cart_(create|sub)|graph_create|dist_graph_create\w*|intercomm_create\w*)",
    re.IGNORECASE,
)
_AGREEMENTS = 4
"""Collectives in which ranks agree on a new communicator: its members, and a number that all of them have free."""
_ALL_PARTS = re.compile(r"MPI_I?(gatherv?|scatterv?|allgatherv?)(_c)?", re.IGNORECASE)


def makes_communicator(call: str) -> bool:
    """Whether a function makes or frees a communicator."""
    return _COMMUNICATORS.fullmatch(call) is not None


class Reference(Frozen):
    """Latency and bandwidth of a message between two ranks, both generous. `source` says where they are from."""

    latency_s: float
    bytes_per_s: float
    source: str

    def piecewise(self) -> Reference:
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
            return each * 2 * max(1, ceil(log2(max(2, ranks)))) * message_s
        return message_s


ON_ONE_HOST = Reference(4e-6, 1e9, "a message on one node: 4 µs and 1 GB/s")
BETWEEN_HOSTS = Reference(200e-6, 30e6, "a message over Gigabit Ethernet: 200 µs and 30 MB/s")


def reference_of(hosts: int) -> Reference:
    """The constants for ranks on so many hosts."""
    return ON_ONE_HOST if hosts == 1 else BETWEEN_HOSTS
