"""Processes as MPI worlds, and the messages between the ranks of each.

Point-to-point messages between the ranks of one world, from the counts of senders and receivers.

The counts of a pair come from the sender's table, or from the receiver's if that is missing. If both exist they must
agree; the difference is reported. Thousands of ranks have millions of pairs, so agreement is first tested by one number
for each sender: the sum over receivers of the bytes times a random weight of the receiver. Only senders whose two sums
differ are compared pair by pair. (Different rows have equal sums with a probability of 1 in 2^64.)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from seatrial.profiler.profile import PairTable
from seatrial.profiler.tables.header import ProcessState
from seatrial.profiler.tables.process_table import ProcessTable

World = dict[int, ProcessTable]
"""Rank -> its table."""

_PARENT = "parent "
"""Prefix of the job id of a process of which only the parent is known; the ranks of a job on one host share it."""


def worlds(tables: Sequence[ProcessTable]) -> list[World]:
    """The processes that initialized MPI, world by world in order of start.

    A process joins the most recently started world of its job (with the same size and library) that does not have its
    rank yet. If only parents are known, a rank on another host joins the latest world without its rank and without
    ranks on its host; programs of the same size that run concurrently on the same hosts may then be mixed up.
    """
    found: list[_World] = []
    begun = [table for table in (*tables, *_numbered(tables)) if table.rank is not None]
    for table in sorted(begun, key=lambda one: (one.loaded_at_s, one.rank or 0)):
        joined = next((world for world in reversed(found) if world.has_same_job(table)), None)
        if joined is None:
            joined = next((world for world in reversed(found) if world.accepts(table)), None)
        if joined is None:
            joined = _World()
            found.append(joined)
        joined.ranks[table.rank or 0] = table
    return [world.ranks for world in found]


class _World(Struct):
    ranks: World = {}

    def has_same_job(self, table: ProcessTable) -> bool:
        """Whether it has processes of the same job, but not this rank."""
        return self._has_place_for(table) and any(_job(one) == _job(table) for one in self.ranks.values())

    def accepts(self, table: ProcessTable) -> bool:
        """Whether a process without a job id may belong to it, from a host without ranks in it."""
        return (
            self._has_place_for(table)
            and table.job.startswith(_PARENT)
            and all(one.job.startswith(_PARENT) and one.host != table.host for one in self.ranks.values())
        )

    def _has_place_for(self, table: ProcessTable) -> bool:
        first = next(iter(self.ranks.values()))
        return table.rank not in self.ranks and (first.size, first.library) == (table.size, table.library)


def _job(table: ProcessTable) -> tuple[str, str]:
    """A parent's pid identifies a job only on its host."""
    return table.job, table.host if table.job.startswith(_PARENT) else ""


def _numbered(tables: Sequence[ProcessTable]) -> list[ProcessTable]:
    """The processes of MPI libraries of an unknown family, which do not report a rank: numbered by host and process id
    within each job."""
    unnumbered = [table for table in tables if table.rank is None and table.state is not ProcessState.LOADED]
    ordered = sorted(unnumbered, key=lambda one: (_job(one), one.host, one.pid))
    numbered: list[ProcessTable] = []
    for job in dict.fromkeys(map(_job, ordered)):
        own = [table for table in ordered if _job(table) == job]
        numbered += [replace(table, rank=rank, size=len(own)) for rank, table in enumerate(own)]
    return numbered


if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.uint64]
    Ranks = npt.NDArray[np.intp]

_SENT, _RECEIVED = 0, 2  # Columns of messages in the peers of a table; the next column holds bytes.
_BLOCK = 256


def pair_table(tables: Sequence[ProcessTable], size: int) -> tuple[PairTable, int]:
    """(pairs by source and destination, bytes by which senders and receivers differ). `size` is that of the world."""
    by_rank = {table.rank: table for table in tables if table.rank is not None}
    is_present = np.array([rank in by_rank for rank in range(size)])
    differing = _differing(by_rank, is_present)
    rows = {rank: _row(table, _SENT, size) for rank, table in by_rank.items()}
    unmatched = 0
    for rank, counted in _received(by_rank, size, np.flatnonzero(differing | ~is_present)):
        if is_present[rank]:
            to, sent = rows[rank]
            whole: Numbers = np.zeros(size, np.uint64)
            whole[to] = sent[:, 1]
            more, less = np.maximum(whole, counted[:, 1]), np.minimum(whole, counted[:, 1])
            unmatched += int((more - less)[is_present].sum())
        else:
            to = np.flatnonzero(counted[:, 0] | counted[:, 1])
            rows[rank] = to, counted[to]
    return _joined([(rank, *rows[rank]) for rank in sorted(rows)]), unmatched


def _row(table: ProcessTable, column: int, size: int) -> tuple[Ranks, Numbers]:
    """(ranks, messages and bytes) that a process sent or received, without those outside the world."""
    counted = table.peers[:, column : column + 2]
    used = ((counted[:, 0] | counted[:, 1]) != 0) & (table.peer_ranks < size)
    return (table.peer_ranks, counted) if used.all() else (table.peer_ranks[used], counted[used])


def _differing(by_rank: Mapping[int, ProcessTable], is_present: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(ranks,): senders whose counts differ from those of the receivers that have tables."""
    size = len(is_present)
    weights = np.random.default_rng(0).integers(0, 1 << 63, size, np.uint64) * np.uint64(2) + np.uint64(1)
    weights[~is_present] = 0
    sent: Numbers = np.zeros(size, np.uint64)
    arrived: Numbers = np.zeros(size, np.uint64)
    for rank, table in by_rank.items():
        to, counted = _row(table, _SENT, size)
        sent[rank] = (weights[to] * counted[:, 1]).sum()
        senders, got = _row(table, _RECEIVED, size)
        arrived[senders] += weights[rank] * got[:, 1]
    differs: npt.NDArray[np.bool_] = (sent != arrived) & is_present
    return differs


def _received(by_rank: Mapping[int, ProcessTable], size: int, wanted: Ranks) -> Iterator[tuple[int, Numbers]]:
    """(sender, messages and bytes that each rank received from it (ranks, 2)) for each wanted sender, in order.

    Blocks of neighbouring senders are gathered from all receivers at once, to limit memory.
    """
    for begin in sorted({rank // _BLOCK * _BLOCK for rank in wanted.tolist()}):
        block: npt.NDArray[np.uint64] = np.zeros((size, _BLOCK, 2), np.uint64)
        for rank, table in by_rank.items():
            senders, counted = _row(table, _RECEIVED, size)
            low, high = np.searchsorted(senders, [begin, begin + _BLOCK])
            block[rank, senders[low:high] - begin] = counted[low:high]
        for rank in wanted[(wanted >= begin) & (wanted < begin + _BLOCK)].tolist():
            yield rank, block[:, rank - begin]


def _joined(rows: Sequence[tuple[int, Ranks, Numbers]]) -> PairTable:
    total = sum(len(to) for _, to, _ in rows)
    narrow, wide = array("I", [0]), array("Q", [0])
    pairs = PairTable(narrow * total, narrow * total, wide * total, wide * total)
    src, dst = np.frombuffer(pairs.src, np.uintc), np.frombuffer(pairs.dst, np.uintc)
    count, sent = np.frombuffer(pairs.count, np.uint64), np.frombuffer(pairs.bytes, np.uint64)
    at = 0
    for rank, to, counted in rows:
        span = slice(at, at + len(to))
        src[span], dst[span], count[span], sent[span] = rank, to, counted[:, 0], counted[:, 1]
        at += len(to)
    return pairs
