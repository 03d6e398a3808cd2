"""Time in MPI other than waiting: startup, the number of messages, latency, transfer, local calls. What a call takes by
measurements on the same hosts, and diagnoses judged against it.

Where ranks waited for a CPU, only what does not depend on it is counted, as a share of CPU time too.

Reads and writes that are many and small: each costs the kernel time, and the processes that they come from or go to,
such as the launcher that forwards the output of ranks. The kernel counts them, however a program makes them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.diagnosis.late import is_slow_itself, slow_collective_of, uses_own_operation
from seatrial.diagnosis.ranks import Ran
from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import (
    HALF_PERFORMANCE_B,
    MANY_CALLS,
    MANY_MESSAGES,
    SHORT_CALL_S,
    SHORT_EPOCH_S,
    SMALL_B,
    bound_of,
    gaps_share,
    is_call_rate,
    is_fence,
    is_file_access,
    is_local,
    is_of_files,
    is_poll,
    is_start,
    makes_communicator,
    may_wait,
    reference_of,
)
from seatrial.profiler.profile import Bound

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, SizeTotals

_MOSTLY = 0.5
_SLOW = 0.5
"""Data with gaps are packed slowly if even the best call takes so much of what contiguous data take at most, by
constants four times too generous."""
_WITHOUT_WAITING = frozenset(
    {
        *(Cause.SLOW_COLLECTIVE, Cause.LATENCY, Cause.TRANSFER, Cause.STARTUP, Cause.COMMUNICATORS, Cause.MPI_IO),
        Cause.MANY_REQUESTS,
    }
)
_LEAST_OF_CPU = 0.05
_MANY_REQUESTS = 64
_AGAIN = 100
"""Communicators are made again and again from so many calls of each rank on."""
_MAKES_DATATYPE = re.compile(
    r"MPI_Type_(create_)?(vector|hvector|indexed|hindexed|indexed_block|struct|subarray|darray)\w*"
)


def call_diagnoses(profile: Profile, ran: Ran | None = None) -> list[Diagnosis]:
    """The kinds of time in MPI without waiting, each with the call that has most of it. `ran`: ranks waited for a CPU,
    so that of calls that may wait for others only what fast ones take is counted."""
    found: dict[Cause, list[tuple[float, SizeTotals]]] = {}
    small = _small_best_s(profile)
    for one in profile.sizes:
        if one.count == 0 or profile.wall_s <= 0:
            continue
        cause = _cause(one, small.get(one.call), profile)
        is_own = uses_own_operation(one, profile) and (ran is not None or is_slow_itself(one, profile))
        if is_own or (cause is Cause.TRANSFER and uses_own_operation(one, profile)):
            cause = Cause.SLOW_COLLECTIVE  # the operation computes in it: its size says nothing of the fabric
        if ran is not None and cause in (None, Cause.LATENCY, Cause.MESSAGE_RATE):
            cause = _by_number(one, ran)
        if cause is None:
            continue
        time_s = own_s = one.time_s - one.operated_s
        if ran is not None and is_own:
            time_s = one.count * one.best_s  # each call applies the operation, whoever is late
        elif cause in _WITHOUT_WAITING and not is_file_access(one.call):
            time_s = max(0.0, own_s - one.waiting_s)
        if cause is Cause.MESSAGE_RATE and ran is not None:
            time_s = min(time_s, one.count * SHORT_CALL_S)
        elif ran is not None and not (is_local(one.call) or is_file_access(one.call)):
            time_s = min(time_s, one.count * one.best_s)
        elif ran is not None:
            time_s *= ran.share
        found.setdefault(cause, []).append((time_s, one))
    made = []
    for cause, own in found.items():
        time_s = sum(time for time, _ in own)
        named = _diagnosis(cause, time_s, max(own, key=lambda pair: (pair[0], is_fence(pair[1].call)))[1], profile)
        made.append(named if ran is None or cause is Cause.STARTUP else ran.counted(named, time_s))
    return made


def _by_number(one: SizeTotals, ran: Ran) -> Cause | None:
    """Calls so many that their number costs CPU time, however long a missing CPU makes them: each takes up to a
    microsecond."""
    is_many = one.count >= MANY_CALLS and one.count * SHORT_CALL_S >= _LEAST_OF_CPU * ran.cpu_s
    return Cause.MESSAGE_RATE if is_many and not (is_local(one.call) or is_poll(one.call)) else None


def slow_transfer(profile: Profile, left_s: float) -> Diagnosis | None:
    """Large messages that take `left_s` more than they need, although no rank can be late for them: their transfer
    takes so long. None if small messages take most of it."""
    waits = [one for one in profile.sizes if one.waiting_s > 0 and not is_start(one.call) and one.prompt_s]
    large = [one for one in waits if one.size_B >= HALF_PERFORMANCE_B]
    large_s = sum(one.waiting_s for one in large)
    if not large or large_s < _MOSTLY * sum(one.waiting_s for one in waits):
        return None
    main = max(large, key=lambda one: one.waiting_s)
    return _diagnosis(Cause.TRANSFER, min(left_s, large_s), main, profile)


def _small_best_s(profile: Profile) -> dict[str, float]:
    """Function -> the best time of its calls with at most SMALL_B."""
    found: dict[str, float] = {}
    for one in profile.sizes:
        if one.largest_B <= SMALL_B:
            found[one.call] = min(found.get(one.call, one.best_s), one.best_s)
    return found


_FEW_EACH = 4.0
_ACCESSES = re.compile(r"MPI_R?(Put|Get|[Aa]ccumulate|Get_accumulate)(_c)?|MPI_(Fetch_and_op|Compare_and_swap)")


def _accesses_each(one: SizeTotals, profile: Profile) -> float | None:
    """Accesses to windows for each of very many short fences; None of other calls."""
    if not is_fence(one.call) or one.count < MANY_CALLS or one.time_s > (one.best_s + SHORT_EPOCH_S) * one.count:
        return None
    return sum(call.count for call in profile.calls if _ACCESSES.fullmatch(call.call)) / one.count


def _cause(one: SizeTotals, small_best_s: float | None, profile: Profile) -> Cause | None:
    accesses = _accesses_each(one, profile)
    if is_start(one.call):
        return Cause.STARTUP
    if is_of_files(one.call):
        return Cause.MPI_IO
    if makes_communicator(one.call):
        return Cause.COMMUNICATORS if one.count >= _AGAIN * profile.ranks else None
    if one.bound is Bound.WAITING and not one.prompt_s:
        return None  # it polls
    if is_local(one.call):
        return Cause.LOCAL_CALLS
    if one.requests_each >= _MANY_REQUESTS and one.bound is not Bound.WAITING:
        return Cause.MANY_REQUESTS
    if one.messages_each >= MANY_MESSAGES and one.bound is Bound.LATENCY:
        return Cause.MESSAGE_RATE
    if accesses is not None and 0 < accesses <= _FEW_EACH:
        return Cause.MESSAGE_RATE
    if is_call_rate(one.count, one.time_s):
        return Cause.POLLING if is_poll(one.call) else Cause.MESSAGE_RATE
    bound = one.bound
    if bound is Bound.WAITING:  # the rest of its time
        if one.best_s > one.prompt_s:
            return None  # the fastest call waits as well: what a call takes by itself is unknown
        bound = bound_of(one.call, one.size_B, one.time_s, 0.0, 1.0, one.prompt_s, small_best_s)
    if bound is Bound.BANDWIDTH:
        return Cause.TRANSFER
    return Cause.LATENCY if bound is Bound.LATENCY else None


def _diagnosis(cause: Cause, time_s: float, main: SizeTotals, profile: Profile) -> Diagnosis:
    if cause is Cause.SLOW_COLLECTIVE:
        return slow_collective_of(profile, main, time_s)
    evidence: tuple[Evidence, ...] = (
        Evidence(Signal.CALL_SHARE, main.time_s / profile.wall_s),
        Evidence(Signal.CALLS, main.count),
        Evidence(Signal.CALL_MEAN, main.time_s / main.count),
        Evidence(Signal.CALL_BEST, main.best_s),
    )
    made = sum(one.count for one in profile.calls if _MAKES_DATATYPE.fullmatch(one.call))
    if cause is Cause.TRANSFER and made:
        evidence = (*evidence, Evidence(Signal.DATATYPES, made))
    gaps = noncontiguous_share(profile) if cause is Cause.TRANSFER else 0.0
    if cause is Cause.TRANSFER:
        evidence = (*evidence, Evidence(Signal.HOSTS, profile.hosts), Evidence(Signal.NONCONTIGUOUS, gaps))
    if cause is Cause.MESSAGE_RATE and main.messages_each >= MANY_MESSAGES:
        evidence = (*evidence, Evidence(Signal.MESSAGES_EACH, main.messages_each))
    accesses = _accesses_each(main, profile) if cause is Cause.MESSAGE_RATE else None
    if accesses:
        evidence = (*evidence, Evidence(Signal.ACCESSES_EACH, accesses))
    if cause is Cause.MANY_REQUESTS:
        evidence = (*evidence, Evidence(Signal.REQUESTS_EACH, main.requests_each))
    size = None if cause is Cause.STARTUP or not main.moved_B else round(main.moved_B)
    source = ""
    if cause in (Cause.LATENCY, Cause.TRANSFER) and may_wait(main.call):
        reference = reference_of(profile.hosts)
        allowed_s = reference.most_s(main.call, main.moved_B, profile.ranks)
        evidence, source = (*evidence, Evidence(Signal.ALLOWED, allowed_s)), reference.source
        if gaps >= _MOSTLY and main.best_s > _SLOW * allowed_s:
            cause = Cause.PACKING
    share = min(1.0, time_s / profile.wall_s)
    return Diagnosis(cause, share, Sureness.INFERRED, evidence, call=main.call, size_B=size, source=source)


def noncontiguous_share(profile: Profile) -> float:
    """The share of the bytes passed for sending whose datatypes have gaps: at least, since what was written to files
    may have them too."""
    files_B = sum(one.bytes for one in profile.calls if is_of_files(one.call))
    sent_B = sum(rank.sent_B + rank.collective_B for rank in profile.per_rank)
    return gaps_share(profile.noncontiguous_B, files_B, sent_B)


_LEAST_RATE = 50_000.0
"""Calls per second of a rank; one takes a microsecond or so in the kernel."""
_MOST_B = 256.0
_MAY_BE_PART = frozenset(
    {
        *(Cause.OTHER_PROCESSES, Cause.NO_CPU, Cause.KERNEL_TIME, Cause.IMBALANCE, Cause.SLOW_CPU),
        *(Cause.COMPUTATION, Cause.SERIAL_IO),
    }
)
_OF_ANY_RANK = frozenset({Cause.OTHER_PROCESSES, Cause.NO_CPU, Cause.KERNEL_TIME, Cause.COMPUTATION})
"""Causes of all ranks, or of one that such calls of another may delay."""


def with_small_calls(profile: Profile, found: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The same, with the small reads and writes as evidence of the first cause that they may be part of."""
    seen = _small_calls(profile)
    named = list(found)
    if not seen:
        return named
    rank = int(next(one.value for one in seen if one.signal is Signal.SMALL_CALLS_RANK))
    for place, one in enumerate(named):
        if one.cause in _MAY_BE_PART and (one.rank == rank or one.cause in _OF_ANY_RANK):
            named[place] = replace(one, evidence=(*one.evidence, *seen))
            break
    return named


def _small_calls(profile: Profile) -> tuple[Evidence, ...]:
    if profile.io is None or profile.elapsed_s <= 0:
        return ()
    calls = {
        rank: (totals.read_calls + totals.write_calls, totals.read_B + totals.written_B)
        for rank, totals in profile.io.known
    }
    if not calls:
        return ()
    rank = max(calls, key=lambda one: calls[one][0])
    made, moved_B = calls[rank]
    if made < _LEAST_RATE * profile.elapsed_s or moved_B > _MOST_B * made:
        return ()
    return (
        Evidence(Signal.SMALL_CALLS, made),
        Evidence(Signal.SMALL_CALL_BYTES, moved_B / made),
        Evidence(Signal.SMALL_CALLS_RANK, rank),
    )


_ONE_MESSAGE = re.compile(r"MPI_([SBR]?send|Recv|Mrecv|Sendrecv(_replace)?)(_c)?", re.IGNORECASE)
"""Functions that return once one message is sent or received. Waiting for requests may hold several."""
_OF_PAIRS = frozenset({"MPI_Alltoall"})
"""Functions whose measured size is that of the block for each rank, while a call's bytes are those for all."""
SAME_SIZES = frozenset(
    {
        *("MPI_Barrier", "MPI_Reduce", "MPI_Allreduce", "MPI_Scan", "MPI_Exscan", "MPI_Gather", "MPI_Allgather"),
        *_OF_PAIRS,
    }
)
"""Collective functions for which each rank passes what their measurement counts as the size."""


class MeasuredCall(Frozen):
    """Medians by size in bytes of one collective operation of all ranks, in seconds; a barrier has size 0. `source`
    says where they are from."""

    time_s: Mapping[int, float]
    source: str


class MeasuredNetwork(Frozen):
    """Medians by size in bytes of a message between two ranks: seconds one way, bytes per second of a stream. `source`
    says where they are from. `collectives` are those that were measured with the `ranks` of the profile, by MPI
    function."""

    one_way_s: Mapping[int, float]
    bandwidth_Bps: Mapping[int, float]
    source: str
    collectives: Mapping[str, MeasuredCall] = {}
    ranks: int = 0

    def expected(self, call: str, size_B: int) -> tuple[float, str] | None:
        """Seconds of one call with this many bytes, and the source; None if nothing like it was measured.

        Between two measured sizes on a straight line in logarithms; beyond the largest message, what is left at the
        bandwidth of the largest one. Collective operations are not extrapolated.
        """
        measured = self.collectives.get(call)
        if measured is not None:
            each_B = size_B // max(1, self.ranks) if call in _OF_PAIRS else size_B
            time_s = _between(measured.time_s, each_B)
            return None if time_s is None else (time_s, measured.source)
        if _ONE_MESSAGE.fullmatch(call) is None:
            return None
        time_s = _between(self.one_way_s, size_B)
        if time_s is None:
            time_s = self._beyond(size_B)
        return None if time_s is None else (time_s, self.source)

    def _beyond(self, size_B: int) -> float | None:
        rate = self.bandwidth_Bps[max(self.bandwidth_Bps)] if self.bandwidth_Bps else 0.0
        if rate <= 0 or not self.one_way_s:
            return None
        largest = max(self.one_way_s)
        return self.one_way_s[largest] + (size_B - largest) / rate


def _between(time_s: Mapping[int, float], size_B: int) -> float | None:
    """The time at a size up to the largest measured one; None beyond it."""
    sizes = sorted(size for size, time in time_s.items() if time > 0)
    if not sizes or size_B > sizes[-1]:
        return None
    place = bisect_left(sizes, max(size_B, sizes[0]))
    above = sizes[place]
    below = sizes[place - 1] if place else 0
    if above == size_B or below <= 0:
        return time_s[above]
    part = log(size_B / below) / log(above / below)
    return exp((1 - part) * log(time_s[below]) + part * log(time_s[above]))


def judged(diagnoses: Sequence[Diagnosis], network: MeasuredNetwork) -> tuple[Diagnosis, ...]:
    """The same, with what was measured as evidence where latency or transfer is the cause."""
    return tuple(_judged(one, network) for one in diagnoses)


def _judged(one: Diagnosis, network: MeasuredNetwork) -> Diagnosis:
    if one.cause not in (Cause.LATENCY, Cause.TRANSFER, Cause.PACKING):
        return one
    expected = network.expected(one.call, one.size_B or 0)
    if expected is None:
        return one
    evidence = tuple(signal for signal in one.evidence if signal.signal is not Signal.ALLOWED)
    return replace(one, evidence=(*evidence, Evidence(Signal.REFERENCE, expected[0])), source=expected[1])
