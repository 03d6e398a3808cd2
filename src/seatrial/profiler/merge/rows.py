"""The rows of all ranks' tables in one set of columns, and their sums by function and by size, with measured waiting.

Waiting is measured with a barrier before every N-th blocking collective. In a call with one, the time until all ranks
have arrived is waiting, and the time of the call itself is transfer. The share of waiting in these calls, over all
ranks, estimates the share in all calls of the same function and size: a ratio estimate from a systematic sample (W. G.
Cochran, Sampling Techniques, 3rd edition, 1977, chapters 6 and 8). It is biased if the program's steps repeat with the
period of the sample, and it is an upper bound for calls that need not wait for all ranks: broadcasts at the root,
reductions at the other ranks, scans.

Functions that a program calls again and again instead of waiting (MPI_Test, MPI_Iprobe and the like) poll if they are
called more than three times for each request that is started, or for each message that is received: a program that asks
once for each request does not wait in them. Nor does one that does other work between the calls: then asking is all
that they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import astuple

from seatrial.model.frozen import Frozen
from seatrial.profiler.merge.bound import (
    MANY_MESSAGES,
    ON_ONE_HOST,
    SHORT_CALL_S,
    SMALL_B,
    ReferenceLink,
    bound_of,
    is_blocking_receive,
    is_blocking_send,
    is_poll,
    is_short_wait,
    may_wait,
    starts_requests,
)
from seatrial.profiler.profile import Bound, CallTotals, MeasuredWaiting, SizeTotals
from seatrial.profiler.tables.header import bin_ceiling, bin_floor
from seatrial.profiler.tables.process_table import SLOT, ProcessTable, TablePart

Measured = Mapping[tuple[int, int], MeasuredWaiting]
"""(number of the function, from 1; size bin) -> measured waiting."""


def measured_waiting(tables: Sequence[ProcessTable], most_barrier_s: float = 0.0) -> Measured:
    """The calls with a barrier before them, summed over all ranks; empty if there were none.

    What a barrier takes by itself is not waiting: that is the shortest of all ranks and calls, at most
    `most_barrier_s`.
    """
    parts, _, rate = _parts(tables, TablePart.WAITED, TablePart.TRANSFERRED)
    if not len(parts):
        return {}
    time_s = parts["ticks"] / rate
    keys, place = np.unique(parts["call"].astype(np.int64) << _BITS_OF_BIN | parts["bin"], return_inverse=True)
    waited = parts["part"] == TablePart.WAITED
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


def _parts(
    tables: Sequence[ProcessTable], *which: TablePart
) -> tuple[npt.NDArray[np.void], Whole, npt.NDArray[np.float64]]:
    """Columns (k,) of rows of these parts of calls: the rows, the index of the process, ticks per second."""
    areas = [(k, thread.parts) for k, table in enumerate(tables) for thread in table.threads]
    process = np.repeat(np.array([k for k, _ in areas], np.int64), [len(rows) for _, rows in areas])
    rows = np.concatenate([np.zeros(0, np.dtype(SLOT)), *(rows for _, rows in areas)])
    chosen = np.isin(rows["part"], which)
    rate = np.array([table.ticks_per_s for table in tables], np.float64)
    return rows[chosen], process[chosen], rate[process[chosen]]


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


if TYPE_CHECKING:
    import numpy.typing as npt

    Whole = npt.NDArray[np.int64]
    Real = npt.NDArray[np.float64]

_BITS_OF_BIN = 16


class Rows(Frozen):
    """Columns of equal length (n,), over all processes in order. `process` is the index of the row's process; times are
    in seconds, `least_s` is the shortest call; `call` counts functions from 1; `site` is an address in the process,
    `region` the number of the innermost region in its table, 0: none. `pause_s` is the time between calls that ask if
    something is complete. `operated_s` is the time in functions that the program gave to MPI_Op_create: that of all
    calls of a function and size in a process, shared by their time; `least_operated_s` the least of one of them."""

    process: Whole
    call: Whole
    bin: Whole
    site: npt.NDArray[np.uint64]
    count: Whole
    bytes: Whole
    time_s: Real
    least_s: Real
    region: Whole
    pause_s: Real
    operated_s: Real
    least_operated_s: Real


def all_rows(tables: Sequence[ProcessTable]) -> Rows:
    """Every row of every thread of every process."""
    areas = [(place, table, thread.slots) for place, table in enumerate(tables) for thread in table.threads]
    slots = np.concatenate([np.zeros(0, np.dtype(SLOT)), *(area for _, _, area in areas)])
    lengths = [len(area) for _, _, area in areas]
    process = np.repeat(np.array([place for place, _, _ in areas], np.int64), lengths)
    rate = np.repeat(np.array([table.ticks_per_s for _, table, _ in areas], np.float64), lengths)
    reading = np.repeat(np.array([table.reading_s for _, table, _ in areas], np.float64), lengths)
    time_s = slots["ticks"] / rate
    operated = _operated(tables, _key(process, slots), slots["count"].astype(np.int64), time_s)
    return Rows(
        process=process,
        call=slots["call"].astype(np.int64),
        bin=slots["bin"].astype(np.int64),
        site=slots["site"].copy(),
        count=slots["count"].astype(np.int64),
        bytes=slots["bytes"].astype(np.int64),
        time_s=time_s,
        least_s=slots["least_ticks"] / rate,
        region=np.concatenate(
            [np.zeros(0, np.int64), *(thread.regions for table in tables for thread in table.threads)]
        ),
        pause_s=np.maximum(slots["pause_ticks"] / rate - slots["count"] * reading, 0.0),
        operated_s=operated[0],
        least_operated_s=operated[1],
    )


def _key(process: Whole, slots: npt.NDArray[np.void]) -> Whole:
    call, size_bin = slots["call"].astype(np.int64), slots["bin"].astype(np.int64)
    return process << 2 * _BITS_OF_BIN | call << _BITS_OF_BIN | size_bin


def _operated(tables: Sequence[ProcessTable], key: Whole, count: Whole, time_s: Real) -> tuple[Real, Real]:
    """Seconds of each row in operations of the program, and the least of one call, 0 if some calls apply none. Columns
    (n,), `key` as of `_key`."""
    parts, process, rate = _parts(tables, TablePart.OPERATED)
    if not len(parts):
        return np.zeros(len(key)), np.zeros(len(key))
    keys, part = np.unique(_key(process, parts), return_inverse=True)
    row = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    applies = keys[row] == key
    calls, whole_s = (np.bincount(row, column * applies, len(keys)) for column in (count, time_s))
    share = np.bincount(part, parts["ticks"] / rate, len(keys)) / np.maximum(whole_s, 1e-30)
    least_s = np.full(len(keys), inf)
    np.minimum.at(least_s, part, parts["least_ticks"] / rate)
    least_s[np.bincount(part, parts["count"], len(keys)) < calls] = 0.0
    return applies * time_s * np.minimum(1.0, share)[row], np.where(applies, least_s[row], 0.0)


class RowGroups(Frozen):
    """Rows summed and sorted by (call, bin) and process. Columns (g,)."""

    call: Whole
    bin: Whole
    process: Whole
    count: Whole
    bytes: Whole
    time_s: Real
    least_s: Real
    operated_s: Real
    least_operated_s: Real
    starts: Whole
    """(s + 1,): where each of the s pairs (call, bin) begins among the groups, and the end."""


def size_totals(
    rows: Rows,
    names: Sequence[str],
    measured: Measured | None = None,
    reference: ReferenceLink = ON_ONE_HOST,
    ranks: int = 2,
    *,
    has_sizes: bool = True,
    on_one_host: bool = True,
    requests_each: float = 0.0,
) -> list[SizeTotals]:
    """Totals by function and size, longest time first. `measured` is the measured waiting. `has_sizes` is False if the
    sizes are unknown. A call beyond the `reference` for this number of `ranks` waits, even if all of its kind do.
    `requests_each`: how many requests a call that completes one of several was given, on average.

    On one host, a receiver copies what it gets, so that its time bounds that of the transfer; from another host, the
    data may have arrived before."""
    if not len(rows.call):
        return []
    groups = grouped(rows)
    spans = [slice(a, b) for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True)]
    best = [float(np.median((groups.least_s - groups.least_operated_s)[span])) for span in spans]
    small: dict[int, float] = {}
    received: dict[int, float] = {}  # bin -> the best time of a call that receives such a message
    for span, value in zip(spans, best, strict=True):
        call, size_bin = int(groups.call[span.start]), int(groups.bin[span.start])
        if size_bin <= SMALL_B:
            small[call] = min(small.get(call, value), value)
        if on_one_host and is_blocking_receive(names[call - 1]):
            received[size_bin] = min(received.get(size_bin, value), value)

    def most_s(call: str, size_B: float) -> float:
        return reference.most_s(call, size_B, ranks) if has_sizes else inf

    rules = _Rules(names, has_sizes, measured or {}, most_s, polling_calls(rows, names), received, requests_each)
    found = [
        _size(groups, span, value, small.get(int(groups.call[span.start])), rules)
        for span, value in zip(spans, best, strict=True)
    ]
    return sorted(found, key=lambda one: (-one.time_s, one.call, one.size_B))


def grouped(rows: Rows) -> RowGroups:
    """The rows by function, size and process."""
    key = rows.call << _BITS_OF_BIN | rows.bin
    order = np.argsort(key, kind="stable")  # stable: the rows of a process stay together
    key, process = key[order], rows.process[order]
    is_new = np.ones(len(key), bool)
    is_new[1:] = (key[1:] != key[:-1]) | (process[1:] != process[:-1])
    first = np.flatnonzero(is_new)
    pairs = key[first]
    starts = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
    return RowGroups(
        call=pairs >> _BITS_OF_BIN,
        bin=pairs & ((1 << _BITS_OF_BIN) - 1),
        process=process[first],
        count=np.add.reduceat(rows.count[order], first),
        bytes=np.add.reduceat(rows.bytes[order], first),
        time_s=np.add.reduceat(rows.time_s[order], first),
        least_s=np.minimum.reduceat(rows.least_s[order], first),
        operated_s=np.add.reduceat(rows.operated_s[order], first),
        least_operated_s=np.minimum.reduceat(rows.least_operated_s[order], first),
        starts=np.append(starts, len(first)),
    )


class _Rules(Frozen):
    """What totals are judged by. `polling`: the numbers of functions that are called instead of waiting.
    `received_s`: the best time of receiving a message, by its bin."""

    names: Sequence[str]
    has_sizes: bool
    measured: Measured
    most_s: Callable[[str, float], float]
    polling: frozenset[int]
    received_s: Mapping[int, float]
    requests_each: float


_ANY = ("MPI_Waitany", "MPI_Testany")
_ALL = "MPI_Waitall"
_EACH_REQUEST_S = 20e-9
"""To look at a request of many takes a library at most so long (with Open MPI and MPICH on Zen 4: 2 to 10 ns)."""


def _size(groups: RowGroups, span: slice, best_s: float, small_best_s: float | None, rules: _Rules) -> SizeTotals:
    """`best_s` and times are without operations of the program, but for those of the result."""
    count, operated_s = groups.count[span], float(groups.operated_s[span].sum())
    time_s = np.maximum(0.0, groups.time_s[span] - groups.operated_s[span])
    total, total_s = int(count.sum()), float(time_s.sum())
    number, size_bin = int(groups.call[span.start]), int(groups.bin[span.start])
    call, polls = rules.names[number - 1], number in rules.polling
    # In collectives with a root, the bytes are those of the ranks that pass them.
    mean_B = max(float(groups.bytes[span].sum()) / total, bin_floor(size_bin))
    prompt_s = 0.0 if polls else min(best_s, rules.most_s(call, mean_B))
    requests_each = rules.requests_each if call in _ANY else 0.0
    if not polls:
        prompt_s = max(prompt_s, min(time_s.sum() / total, requests_each * _EACH_REQUEST_S))
    messages_each = mean_B / bin_ceiling(size_bin) if call == _ALL and size_bin else 0.0
    if messages_each >= MANY_MESSAGES:
        prompt_s = max(prompt_s, min(time_s.sum() / total, messages_each * SHORT_CALL_S))
    if is_blocking_send(call):  # until it is received; a receiver that comes late waits for the transfer only
        prompt_s = min(prompt_s, rules.received_s.get(size_bin, prompt_s))
    can_wait = polls or may_wait(call)
    waiting_s = float(np.maximum(0.0, time_s - count * prompt_s).sum()) if can_wait else 0.0
    waiting_s = 0.0 if not polls and is_short_wait(total, waiting_s, call) else waiting_s
    shortest = float((time_s / count).min()) * total / total_s if total_s > 0 else 1.0
    known = rules.measured.get((number, size_bin))
    if known is not None:
        waiting_s, shortest = min(total_s, known.share * (total_s + operated_s)), 1.0
    elif call == "MPI_Finalize":
        waiting_s = total_s - float(time_s.min()) * len(time_s)  # it may wait for all ranks
    bound = bound_of(call, bin_floor(size_bin), total_s, waiting_s, shortest, best_s, small_best_s)
    if polls:
        bound = Bound.WAITING
    if operated_s > total_s:
        bound = Bound.LOCAL
    return SizeTotals(
        call=call,
        size_B=bin_floor(size_bin),
        largest_B=bin_ceiling(size_bin),
        count=total,
        bytes=int(groups.bytes[span].sum()),
        time_s=total_s + operated_s,
        best_s=float(np.median(groups.least_s[span])),
        waiting_s=waiting_s,
        bound=bound if rules.has_sizes or bound in (Bound.START, Bound.LOCAL, Bound.WAITING) else Bound.UNKNOWN,
        measured=known,
        prompt_s=prompt_s,
        least_s=float(groups.least_s[span].min()),
        moved_B=mean_B,
        requests_each=requests_each,
        messages_each=messages_each,
        operated_s=operated_s,
    )


def call_totals(rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], processes: int) -> list[CallTotals]:
    """Totals by function, longest time first. The kind of a function is the one with the most time over its sizes."""
    per_rank: Real = np.zeros((len(names), processes))
    np.add.at(per_rank, (rows.call - 1, rows.process), rows.time_s)
    place = {name: number for number, name in enumerate(names)}
    by_call: dict[str, list[SizeTotals]] = {}
    for size in sizes:
        by_call.setdefault(size.call, []).append(size)
    totals = [
        CallTotals(
            call=call,
            count=sum(one.count for one in own),
            time_s=sum(one.time_s for one in own),
            bytes=sum(one.bytes for one in own),
            waiting_s=sum(one.waiting_s for one in own),
            bound=_commonest(own),
            least_rank_s=float(per_rank[place[call]].min()),
            most_rank_s=float(per_rank[place[call]].max()),
            measured=summed(own),
            operated_s=sum(one.operated_s for one in own),
        )
        for call, own in by_call.items()
    ]
    return sorted(totals, key=lambda one: (-one.time_s, one.call))


def _commonest(sizes: Sequence[SizeTotals]) -> Bound:
    time_s: dict[Bound, float] = {}
    for one in sizes:
        time_s[one.bound] = time_s.get(one.bound, 0.0) + one.time_s
    return max(time_s, key=lambda kind: time_s[kind])
