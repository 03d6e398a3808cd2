"""What hardware counters say about the ranks, in words."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOENT, ENOSYS, EOPNOTSUPP

from seatrial.model.units import Unit
from seatrial.profiler.cpu import RankCounters
from seatrial.profiler.profile import Profile
from seatrial.report.units import show, show_percent

UNVERIFIED = (
    "The events of floating-point operations and lines from memory are from vendors' tables and were not verified on "
    "this processor."
)
_TURNS = 0.95


def counter_lines(profile: Profile) -> list[str]:
    """Sentences without a full stop; empty if counters were not requested."""
    counted = [one.counters for one in profile.per_rank if one.counters is not None]
    if not counted:
        return []
    known = [one for one in counted if one.is_any]
    if not known:
        return [why_not(counted[0])]
    parts = [part for part in (_ipc(known), _memory(profile, known), _flops(profile, known)) if part]
    said = [", ".join(parts)] if parts else ["neither instructions nor floating-point operations could be counted"]
    said += _split(known)
    least = min(one.least_share for one in known)
    if least < _TURNS:
        said.append(
            f"there were more events than counters: each counted for at least {show_percent(least)} of the time, "
            "and is scaled to all of it"
        )
    if len(known) < len(profile.per_rank):
        said.append(f"from {len(known)} of {len(profile.per_rank)} ranks")
    return said


def why_not(counters: RankCounters) -> str:
    """Why nothing was counted."""
    if counters.is_forbidden:
        level = "" if counters.paranoid is None else f" (kernel.perf_event_paranoid = {counters.paranoid})"
        return f"not permitted here{level}: counting one's own programs needs 2 or less, or CAP_PERFMON"
    if not counters.has_unit and any(error in (ENOENT, EOPNOTSUPP) for error in counters.errors):
        return "not supported here: the kernel has no unit with hardware counters, as in most virtual machines"
    if ENOSYS in counters.errors:
        return "not supported here: the kernel has no perf events"
    errors = ", ".join(map(str, counters.errors)) or "none"
    return f"nothing was counted (errno: {errors})"


def _split(known: Sequence[RankCounters]) -> list[str]:
    """Instructions per cycle outside MPI and in it: a rank that waits actively makes many, without any work."""
    inside = [one.in_mpi for one in known if one.in_mpi is not None]
    outside_ipc = [ipc for one in known if (ipc := one.ipc_outside) is not None]
    inside_ipc = [ipc for one in inside if (ipc := one.ipc) is not None]
    if not outside_ipc or not inside_ipc:
        return []
    least = min(one.counted_share for one in inside)
    of = "" if least >= _TURNS else f" (read in calls with at least {show_percent(least)} of the time in MPI)"
    return [
        f"instructions per cycle: {_spread(outside_ipc)} outside MPI, {_spread(inside_ipc)} in MPI calls, where active "
        f"waiting counts too{of}"
    ]


def _ipc(known: Sequence[RankCounters]) -> str:
    values = [one.ipc for one in known if one.ipc is not None]
    if not values:
        return ""
    return f"{_spread(values)} instructions per cycle"


def _spread(values: Sequence[float]) -> str:
    least, most = f"{min(values):.2g}", f"{max(values):.2g}"
    return least if least == most else f"{least} to {most}"


def _memory(profile: Profile, known: Sequence[RankCounters]) -> str:
    values = [one.memory_B for one in known if one.memory_B is not None]
    if values:
        rate = sum(values) / max(one.wall_s for one in known)
        limit = profile.limits.memory_Bps if profile.limits is not None else None
        return f"{show(rate, 'B/s')} from memory{_of(rate, limit, 'B/s')}"
    misses = [one.cache_misses / one.instructions for one in known if one.cache_misses is not None and one.instructions]
    if not misses:
        return ""
    per = [1000 * one for one in misses]
    return f"{_spread(per)} cache misses per 1000 instructions"


def _flops(profile: Profile, known: Sequence[RankCounters]) -> str:
    values = [one.flops for one in known if one.flops is not None]
    if not values:
        return ""
    rate = sum(values) / max(one.wall_s for one in known)
    limit = profile.limits.flops if profile.limits is not None else None
    return f"{show(rate, 'flop/s')}{_of(rate, limit, 'flop/s')}{_wide(known)}"


def _of(rate: float, limit: float | None, unit: Unit) -> str:
    return f" ({show_percent(rate / limit)} of {show(limit, unit)} measured here)" if limit else ""


def _wide(known: Sequence[RankCounters]) -> str:
    """The part of the operations that wide instructions make, where each width is counted."""
    every = [one.fp_instructions for one in known if one.fp_instructions and one.flops]
    total = sum(width * count for one in every for width, count in one.items())
    if not total or len(every) < len(known):
        return ""
    narrow = sum(one.get(1, 0.0) for one in every)
    return f", {show_percent(1 - narrow / total)} of it by vector instructions"
