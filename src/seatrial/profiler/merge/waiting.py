"""Waiting and transfer, measured with a barrier before every N-th blocking collective.

In a call with a barrier, the time until all ranks have arrived is waiting, and the time of the call itself is transfer.
The share of waiting in these calls, over all ranks, estimates the share in all calls of the same function and size: a
ratio estimate from a systematic sample (W. G. Cochran, Sampling Techniques, 3rd edition, 1977, chapters 6 and 8). It is
biased if the program's steps repeat with the period of the sample, and it is an upper bound for calls that need not
wait for all ranks: broadcasts at the root, reductions at the other ranks, scans.

Functions that a program calls again and again instead of waiting: MPI_Test, MPI_Iprobe and the like.

They poll if they are called more than three times for each request that is started, or for each message that is
received: a program that asks once for each request does not wait in them. Nor does one that does other work between
the calls: then asking is all that they cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import astuple

from seatrial.profiler.merge.bound import is_poll, starts_requests
from seatrial.profiler.profile import MeasuredWaiting, SizeTotals
from seatrial.profiler.tables.process_table import Part, ProcessTable

if TYPE_CHECKING:
    from seatrial.profiler.merge.rows import Rows

Measured = Mapping[tuple[int, int], MeasuredWaiting]
"""(number of the function, from 1; size bin) -> measured waiting."""

_BITS_OF_BIN = 16


def measured_waiting(tables: Sequence[ProcessTable], most_barrier_s: float = 0.0) -> Measured:
    """The calls with a barrier before them, summed over all ranks; empty if there were none.

    What a barrier takes by itself is no waiting: that is the shortest of all ranks and calls, at most `most_barrier_s`.
    """
    areas = [(table, thread.parts) for table in tables for thread in table.threads if len(thread.parts)]
    if not areas:
        return {}
    parts = np.concatenate([rows for _, rows in areas])
    rate = np.repeat([table.ticks_per_s for table, _ in areas], [len(rows) for _, rows in areas])
    time_s = parts["ticks"] / rate
    keys, place = np.unique(parts["call"].astype(np.int64) << _BITS_OF_BIN | parts["bin"], return_inverse=True)
    waited = parts["part"] == Part.WAITED
    calls = np.bincount(place, parts["count"] * waited, len(keys))
    least_s = np.full(len(keys), most_barrier_s)
    np.minimum.at(least_s, place[waited], (parts["least_ticks"] / rate)[waited])
    waited_s = np.maximum(0.0, np.bincount(place, time_s * waited, len(keys)) - calls * least_s)
    transferred_s = np.bincount(place, time_s * ~waited, len(keys))
    return {
        (int(key) >> _BITS_OF_BIN, int(key) & ((1 << _BITS_OF_BIN) - 1)): MeasuredWaiting(
            round(float(calls[k])), float(waited_s[k]), float(transferred_s[k])
        )
        for k, key in enumerate(keys)
    }


def summed(sizes: Sequence[SizeTotals]) -> MeasuredWaiting | None:
    """The measured waiting of all sizes of a call; None if none was measured."""
    found = [one.measured for one in sizes if one.measured is not None]
    if not found:
        return None
    return MeasuredWaiting(*map(sum, zip(*map(astuple, found), strict=True)))


_EACH = 3
_LOOP = 0.55
"""The most that the loop around the call takes, as a part of the call: with Open MPI and MPICH on Zen 3, 0.1 to 0.36
in loops that wait, 0.85 and more in programs that work between the calls."""
_PROBES = ("MPI_Iprobe", "MPI_Improbe")
_RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv", "MPI_Sendrecv")


def polling_calls(rows: Rows, names: Sequence[str]) -> frozenset[int]:
    """The numbers, from 1, of the functions that poll."""
    counts = np.bincount(rows.call, rows.count, len(names) + 1)
    time_s = np.bincount(rows.call, rows.time_s, len(names) + 1)
    pause_s = np.bincount(rows.call, rows.pause_s, len(names) + 1)

    def calls(chosen: Sequence[int]) -> float:
        return float(counts[list(chosen)].sum()) if chosen else 0.0

    numbers = [number for number, name in enumerate(names, 1) if counts[number]]
    probes = [number for number in numbers if names[number - 1] in _PROBES]
    tests = [number for number in numbers if is_poll(names[number - 1]) and number not in probes]
    starts = [number for number in numbers if starts_requests(names[number - 1])]
    receives = [number for number in numbers if names[number - 1].removesuffix("_c") in _RECEIVES]
    found: list[int] = []
    if calls(tests) > _EACH * calls(starts):
        found += tests
    if calls(probes) > _EACH * calls(receives):
        found += probes
    return frozenset(number for number in found if pause_s[number] <= _LOOP * time_s[number])
