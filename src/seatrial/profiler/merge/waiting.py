"""Waiting and transfer, measured with a barrier before every N-th blocking collective.

In a call with a barrier, the time until all ranks have arrived is waiting, and the time of the call itself is transfer.
The share of waiting in these calls, over all ranks, estimates the share in all calls of the same function and size: a
ratio estimate from a systematic sample (W. G. Cochran, Sampling Techniques, 3rd edition, 1977, chapters 6 and 8). It is
biased if the program's steps repeat with the period of the sample, and it is an upper bound for calls that need not
wait for all ranks: broadcasts at the root, reductions at the other ranks, scans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.profiler.profile import MeasuredWaiting, SizeTotals
from seatrial.profiler.tables.process_table import Part, ProcessTable

Measured = Mapping[tuple[int, int], MeasuredWaiting]
"""(number of the function, from 1; size bin) -> measured waiting."""

_BITS_OF_BIN = 16


def measured_waiting(tables: Sequence[ProcessTable], most_barrier_s: float = 0.0) -> Measured:
    """The calls with a barrier before them, summed over all ranks; empty if there were none.

    What a barrier takes by itself is no waiting: that is the shortest of all ranks and calls, at most `most_barrier_s`.
    """
    import numpy as np

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
    return MeasuredWaiting(
        sum(one.calls for one in found),
        sum(one.waited_s for one in found),
        sum(one.transferred_s for one in found),
    )
