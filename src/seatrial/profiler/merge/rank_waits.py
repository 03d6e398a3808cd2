"""What each rank waits for: its time in calls beyond prompt ones, by what they wait for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from seatrial.profiler.merge.bound import HALF_PERFORMANCE_B, WaitKind, is_call_rate, is_poll, wait_kind
from seatrial.profiler.merge.rows import Rows, grouped
from seatrial.profiler.profile import Bound, RankWaits, SizeTotals
from seatrial.profiler.tables.header import bin_floor
from seatrial.profiler.tables.process_table import ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt

_RECEIVE, _SEND, _COLLECTIVE, _WINDOW, _UNCLEAR = range(5)
_CLEARLY, _CLEARLY_LARGE = 0.5, 0.75
"""Waiting, if it is so much of the time of calls with small and with large messages; else it may be contention."""
_COLUMN = {WaitKind.RECEIVE: _RECEIVE, WaitKind.SEND: _SEND, WaitKind.COLLECTIVE: _COLLECTIVE, WaitKind.WINDOW: _WINDOW}
_STARTS_RECEIVE = re.compile(r"MPI_(Im?recv|Recv_init|Iprobe|Improbe|Isendrecv\w*)(_c)?")
_STARTS_SEND = re.compile(r"MPI_(I[sbr]?send|[SBR]?send_init|Send_init|Isendrecv\w*)(_c)?")
_STARTS_COLLECTIVE = re.compile(
    r"MPI_(I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|allreduce|reduce\w*|exscan|scan|neighbor_\w+)"
    r"|(Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Allreduce|Reduce\w*|Exscan|Scan|Neighbor_\w+)_init)"
    r"(_c)?"
)


def rank_waits(rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], processes: int) -> list[RankWaits]:
    """What each process spent in calls beyond the prompt ones of the same function and size; where waiting was
    measured, its share of all such calls.

    A wait for requests counts as one for a message if it received bytes, or if the process only starts receives; else
    for the receiver if the process starts sends, and for all ranks if it starts collectives only.
    """
    waits = np.zeros((_UNCLEAR + 1, processes))
    if not len(rows.call):
        return [RankWaits()] * processes
    number = {name: place for place, name in enumerate(names, 1)}
    known = {(number[one.call], one.size_B): one for one in sizes}
    receives, sends, collects = (
        _that_call(rows, names, which, processes) for which in (_STARTS_RECEIVE, _STARTS_SEND, _STARTS_COLLECTIVE)
    )
    of_empty = np.where(collects, _COLLECTIVE, np.where(receives & ~sends, _RECEIVE, _SEND))
    of_poll = np.where(receives, _RECEIVE, np.where(collects, _COLLECTIVE, _SEND))
    groups = grouped(rows)
    for first, end in zip(groups.starts[:-1].tolist(), groups.starts[1:].tolist(), strict=True):
        name = names[int(groups.call[first]) - 1]
        kind = WaitKind.COLLECTIVE if name == "MPI_Finalize" else wait_kind(name)
        one = known.get((int(groups.call[first]), bin_floor(int(groups.bin[first]))))
        if kind is None or one is None or (is_poll(name) and one.bound is not Bound.WAITING):
            continue
        if is_call_rate(one.count, one.time_s) and not is_poll(name):
            continue
        if one.waiting_s == 0:
            continue
        process, time_s = groups.process[first:end], groups.time_s[first:end]
        if one.measured is None:
            prompt_s = float(time_s.min()) if name == "MPI_Finalize" else one.prompt_s
            waited = np.maximum(0.0, time_s - groups.count[first:end] * prompt_s)
        else:
            waited = time_s * one.measured.share
        column = np.full(len(process), _COLUMN.get(kind, _RECEIVE))
        clearly = _CLEARLY if one.size_B < HALF_PERFORMANCE_B else _CLEARLY_LARGE
        if one.measured is None and one.waiting_s < clearly * one.time_s and name != "MPI_Finalize":
            column = np.full(len(process), _UNCLEAR)
        elif kind is WaitKind.POLL:
            column = of_poll[process]
        elif kind is WaitKind.REQUESTS and one.largest_B == 0:
            column = of_empty[process]
        np.add.at(waits, (column, process), waited)
    return [RankWaits(*map(float, column)) for column in waits.T]


def without_skew(waits: Sequence[RankWaits], tables: Sequence[ProcessTable]) -> list[RankWaits]:
    """The same without waiting for ranks of the same host that left MPI_Init later, which is startup: each rank
    waits for the last one once, where it waits most."""
    last_s: dict[str, float] = {}
    begun = [None if one.initialized_s is None else one.loaded_at_s + one.initialized_s for one in tables]
    for table, at_s in zip(tables, begun, strict=True):
        if at_s is not None:
            last_s[table.host] = max(last_s.get(table.host, at_s), at_s)
    left: list[RankWaits] = []
    for one, table, at_s in zip(waits, tables, begun, strict=True):
        kinds = {kind: getattr(one, kind) for kind in ("receive_s", "send_s", "collective_s", "window_s")}
        most = max(kinds, key=kinds.__getitem__)
        skew_s = 0.0 if at_s is None else last_s[table.host] - at_s
        left.append(replace(one, **{most: max(0.0, kinds[most] - skew_s)}))
    return left


def _that_call(rows: Rows, names: Sequence[str], which: re.Pattern[str], processes: int) -> npt.NDArray[np.bool_]:
    """(processes,): whether each calls one of these functions."""
    chosen = [place for place, name in enumerate(names, 1) if which.fullmatch(name)]
    found = np.zeros(processes, bool)
    found[rows.process[np.isin(rows.call, chosen)]] = True
    return found
