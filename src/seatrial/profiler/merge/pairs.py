"""Who sent to whom: point to point between the ranks of one world, from what senders and receivers counted.

A pair is taken from its sender's table; where that is missing, from the receiver's. Where both are there they must
agree: what they differ by is told. Thousands of ranks have millions of pairs, so that agreement is first tested by one
number for each sender, the sum of its bytes to each receiver times a random weight of that receiver; only senders whose
two sums differ are gone through pair by pair. (Equal sums of different rows are as likely as 1 in 2^64.)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from seatrial.profiler.profile import PairTable
from seatrial.profiler.tables.process_table import ProcessTable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.uint64]
    Ranks = npt.NDArray[np.intp]

_SENT, _RECEIVED = 0, 2
"""Columns of the peers of a table: messages, and beside them bytes."""
_BLOCK = 256


def pair_table(tables: Sequence[ProcessTable], size: int) -> tuple[PairTable, int]:
    """(pairs by source and destination, bytes that the two ends of pairs disagree about). `size` is of the world."""
    import numpy as np

    by_rank = {table.rank: table for table in tables if table.rank is not None}
    is_there = np.array([rank in by_rank for rank in range(size)])
    doubtful = _doubtful(by_rank, is_there)
    rows = {rank: _row(table, _SENT, size) for rank, table in by_rank.items()}
    unmatched = 0
    for rank, told in _received(by_rank, size, np.flatnonzero(doubtful | ~is_there)):
        if is_there[rank]:
            to, sent = rows[rank]
            whole: Numbers = np.zeros(size, np.uint64)
            whole[to] = sent[:, 1]
            more, less = np.maximum(whole, told[:, 1]), np.minimum(whole, told[:, 1])
            unmatched += int((more - less)[is_there].sum())
        else:
            to = np.flatnonzero(told[:, 0] | told[:, 1])
            rows[rank] = to, told[to]
    return _joined([(rank, *rows[rank]) for rank in sorted(rows)]), unmatched


def _row(table: ProcessTable, column: int, size: int) -> tuple[Ranks, Numbers]:
    """(ranks, messages and bytes) that a process sent or received; those outside the world are left out."""
    told = table.peers[:, column : column + 2]
    used = ((told[:, 0] | told[:, 1]) != 0) & (table.peer_ranks < size)
    return (table.peer_ranks, told) if used.all() else (table.peer_ranks[used], told[used])


def _doubtful(by_rank: Mapping[int, ProcessTable], is_there: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which senders' messages did not arrive at the receivers that have tables just as they were sent. (ranks,)"""
    import numpy as np

    size = len(is_there)
    weights = np.random.default_rng(0).integers(0, 1 << 63, size, np.uint64) * np.uint64(2) + np.uint64(1)
    weights[~is_there] = 0
    sent: Numbers = np.zeros(size, np.uint64)
    arrived: Numbers = np.zeros(size, np.uint64)
    for rank, table in by_rank.items():
        to, told = _row(table, _SENT, size)
        sent[rank] = (weights[to] * told[:, 1]).sum()
        senders, got = _row(table, _RECEIVED, size)
        arrived[senders] += weights[rank] * got[:, 1]
    differs: npt.NDArray[np.bool_] = (sent != arrived) & is_there
    return differs


def _received(by_rank: Mapping[int, ProcessTable], size: int, wanted: Ranks) -> Iterator[tuple[int, Numbers]]:
    """(sender, messages and bytes that each rank received of it (ranks, 2)) for each sender wanted, in their order.

    A block of neighbouring senders is gathered from all receivers at once, so that memory stays small.
    """
    import numpy as np

    for begin in sorted({rank // _BLOCK * _BLOCK for rank in wanted.tolist()}):
        block: npt.NDArray[np.uint64] = np.zeros((size, _BLOCK, 2), np.uint64)
        for rank, table in by_rank.items():
            senders, told = _row(table, _RECEIVED, size)
            low, high = np.searchsorted(senders, [begin, begin + _BLOCK])
            block[rank, senders[low:high] - begin] = told[low:high]
        for rank in wanted[(wanted >= begin) & (wanted < begin + _BLOCK)].tolist():
            yield rank, block[:, rank - begin]


def _joined(rows: Sequence[tuple[int, Ranks, Numbers]]) -> PairTable:
    import numpy as np

    total = sum(len(to) for _, to, _ in rows)
    narrow, wide = array("I", [0]), array("Q", [0])
    pairs = PairTable(narrow * total, narrow * total, wide * total, wide * total)
    src, dst = np.frombuffer(pairs.src, np.uintc), np.frombuffer(pairs.dst, np.uintc)
    count, sent = np.frombuffer(pairs.count, np.uint64), np.frombuffer(pairs.bytes, np.uint64)
    at = 0
    for rank, to, told in rows:
        span = slice(at, at + len(to))
        src[span], dst[span], count[span], sent[span] = rank, to, told[:, 0], told[:, 1]
        at += len(to)
    return pairs
