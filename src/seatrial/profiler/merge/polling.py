"""Functions that a program calls again and again instead of waiting: MPI_Test, MPI_Iprobe and the like.

They poll if they are called more than three times for each request that is started, or for each message that is
received: a program that asks once for each request does not wait in them. Nor does one that does other work between
the calls: then asking is all that they cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.profiler.merge.bound import is_poll, starts_requests

if TYPE_CHECKING:
    from seatrial.profiler.merge.rows import Rows

_EACH = 3
_LOOP = 0.55
"""The most that the loop around the call takes, as a part of the call: with Open MPI and MPICH on Zen 3, 0.1 to 0.36
in loops that wait, 0.85 and more in programs that work between the calls."""
_PROBES = ("MPI_Iprobe", "MPI_Improbe")
_RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv", "MPI_Sendrecv")


def polling_calls(rows: Rows, names: Sequence[str]) -> frozenset[int]:
    """The numbers, from 1, of the functions that poll."""
    import numpy as np

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
