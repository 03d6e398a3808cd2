"""Time in reduction operations of the program (MPI_Op_create), which the profiler measures: it is neither waiting nor
transfer. Ranks that apply an operation less than others wait for these meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import may_wait

if TYPE_CHECKING:
    from seatrial.diagnosis.ranks import Ran
    from seatrial.profiler.profile import Profile


def waits_for_operations(profile: Profile) -> tuple[float, ...]:
    """(n,): seconds that each rank waits, at most, because another rank applies operations for longer: no longer than
    that rank computes longer, in and outside MPI."""
    ranks = profile.per_rank
    busy = [rank.compute_s + rank.operated_s for rank in ranks]
    most_s, most_operated_s = max(busy, default=0.0), max((rank.operated_s for rank in ranks), default=0.0)
    return tuple(
        max(0.0, min(rank.waits.all_s, most_s - busy_s, most_operated_s - rank.operated_s))
        for rank, busy_s in zip(ranks, busy, strict=True)
    )


def operation_diagnosis(profile: Profile, ran: Ran | None = None) -> Diagnosis | None:
    """The operations of the program, with the function that takes most of their time. `ran`: ranks waited for a CPU,
    so that only the part in which they ran is counted, and no waiting."""
    if not profile.operations or profile.wall_s <= 0:
        return None
    main = profile.operations[0]
    operated_s = sum(rank.operated_s for rank in profile.per_rank)
    waited_s = 0.0 if ran is not None else sum(waits_for_operations(profile))
    applies = [one for one in profile.calls if one.operated_s > 0]
    waits = [one for one in profile.calls if may_wait(one.call)]  # applied while a request is completed
    call = max(applies, key=lambda one: one.operated_s, default=max(waits, key=lambda one: one.time_s, default=None))
    if operated_s <= 0 or call is None:
        return None
    evidence = (
        Evidence(Signal.CALLS, main.count),
        Evidence(Signal.CALL_MEAN, main.time_s / main.count if main.count else 0.0),
        Evidence(Signal.OPERATIONS, len(profile.operations)),
        Evidence(Signal.OPERATION_SHARE, call.operated_s / call.time_s if call.time_s > 0 else 0.0),
        Evidence(Signal.WAITING_SHARE, waited_s / profile.wall_s),
    )
    if ran is not None:
        operated_s *= ran.share
    share = min(1.0, (operated_s + waited_s) / profile.wall_s)
    found = Diagnosis(Cause.OPERATION, share, Sureness.MEASURED, evidence, call=call.call, site=main.site)
    return found if ran is None else ran.counted(found, operated_s)
