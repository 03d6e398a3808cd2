"""A profile in sentences: the one on top, what it can be trusted for, and what to look at next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from seatrial.benchmarks import benchmark_of
from seatrial.model.role import Role
from seatrial.profiler.profile import Bound, CallSite, CallTotals, Profile, RankTotals, SizeTotals
from seatrial.report.units import count, show, show_percent, show_range

_COMPUTES = 0.05
"""Below this share of wall time no call of MPI is worth a sentence of its own."""
_MOSTLY, _ALL_BUT = 0.5, 0.9
_MOST_NAMED = 6
_LEAST_SHARE = 0.0005

BOUND_WORDS = {
    Bound.WAITING: "waiting for others",
    Bound.LATENCY: "latency-bound",
    Bound.BANDWIDTH: "bandwidth-bound",
    Bound.START: "starting and ending MPI",
    Bound.LOCAL: "local",
    Bound.UNKNOWN: "not reported",
}
WAITING_RULE = (
    "Waiting is measured where the profiler put a barrier before a call: what passed until all ranks had come. Its "
    "share in these calls is taken for all calls of the same function and size."
)
BOUND_RULE = (
    "Waiting, of calls that can wait: three quarters of the time go beyond the same call of the same size at its best "
    "(the median over ranks of the shortest), or the quickest rank spends less than half of the mean. Else "
    "bandwidth-bound: at its best it takes twice as long or more than with 64 B at most, or, where no such small call "
    "was seen, it has 8 KiB or more. Else latency-bound."
)


@dataclass(frozen=True, slots=True)
class TrustLine:
    """One thing that the numbers rest on. `is_weak`: it takes something away from them."""

    name: str
    text: str
    is_weak: bool = False


def headline(profile: Profile) -> str:
    """The sentence on top, without its full stop."""
    if not profile.calls:
        return "No MPI call was recorded"
    if profile.mpi_share < _COMPUTES:
        return f"MPI takes {show_percent(profile.mpi_share)} of wall time: the program computes"
    first = main_call(profile)
    share = show_percent(first.time_s / profile.wall_s)
    said = f"{share} of wall time is {first.call}{of_size(profile.sizes, first)}"
    return said if first.bound is Bound.UNKNOWN else f"{said}: {BOUND_WORDS[first.bound]}"


def main_call(profile: Profile) -> CallTotals:
    """The call that is worth speaking of first: that with the most time, but starting and ending MPI, which every run
    has once, only where no other takes its share."""
    first = profile.calls[0]
    others = (one for one in profile.calls if one.bound is not Bound.START)
    second = next(others, first)
    return second if second.time_s >= _COMPUTES * profile.wall_s else first


def of_size(sizes: Sequence[SizeTotals], call: CallTotals) -> str:
    """The size with most of a call's time: " of 4 B", ", mostly of 4 B", " of 4 B to 224 B"; "" where there is none."""
    own = [one for one in sizes if one.call == call.call and one.largest_B]
    time_s = sum(one.time_s for one in own)
    if not own or time_s <= 0 or not call.bytes:
        return ""
    share = own[0].time_s / time_s
    if share >= _MOSTLY:
        return f" of {size_words(own[0])}" if share >= _ALL_BUT else f", mostly of {size_words(own[0])}"
    covered, spent = [], 0.0
    for one in own:
        covered.append(one)
        spent += one.time_s
        if spent >= _ALL_BUT * time_s:
            break
    covered.sort(key=lambda one: one.size_B)
    return f" of {size_words(covered[0])} to {size_words(covered[-1])}"


def size_words(size: SizeTotals) -> str:
    """The size of such a message; the mean where a bin holds several sizes."""
    mean = size.bytes / size.count if size.count else 0
    value = mean if size.size_B <= mean <= size.largest_B else size.size_B
    return show(value, "B", binary=value % 1024 == 0)


def site_words(site: CallSite) -> str:
    """Function, file and line where they are known, else the file and the offset in it."""
    if site.frames:
        frame = site.frames[0]
        where = f" {PurePosixPath(frame.file).name}:{frame.line}" if frame.file else f" in {site_module(site)}"
        return f"{frame.function}{where}"
    return f"{site_module(site)}+{site.offset:#x}" if site.module else "not known"


def site_module(site: CallSite) -> str:
    """The name of the program or library that calls."""
    return PurePosixPath(site.module).name or site.module


def inlined_words(site: CallSite) -> str:
    """The functions round an inlined call, from the inside out; "" where there are none."""
    return ", inlined in ".join(["", *(frame.function for frame in site.frames[1:])]).removeprefix(", ")


def slowest(profile: Profile) -> RankTotals | None:
    """The rank that computes longest, which the others wait for; None where there is none."""
    return max(profile.per_rank, key=lambda one: one.compute_s, default=None)


def imbalance(values: Iterable[float]) -> float | None:
    """How far the largest is above the mean, as a share of it; None where the mean is 0."""
    known = list(values)
    mean = sum(known) / len(known) if known else 0.0
    return max(known) / mean - 1 if mean > 0 else None


def balance_line(profile: Profile) -> str:
    """How evenly the ranks compute."""
    last = slowest(profile)
    uneven = imbalance(one.compute_s for one in profile.per_rank)
    if last is None or uneven is None or len(profile.per_rank) < 2:
        return ""
    return (
        f"Rank {last.rank} on {last.host} computes longest: {show(last.compute_s, 's')}, "
        f"{show_percent(uneven)} above the mean of all ranks"
    )


def next_experiment(profile: Profile) -> str:
    """What is worth trying next, by what the largest call is bound by; commands in backticks."""
    if not profile.calls or profile.mpi_share < _COMPUTES:
        both = f"{benchmark_of(Role.FMA_RATE)} {benchmark_of(Role.MEMORY_BANDWIDTH)}"
        return f"MPI is not where the time goes: `seatrial run {both}` gives the limits of computing."
    first = main_call(profile)
    if first.bound is Bound.WAITING:
        last = slowest(profile)
        who = f" Begin with rank {last.rank} on {last.host}, which computes longest." if last is not None else ""
        return f"Share the work out more evenly, or run fewer ranks with more threads each.{who}"
    if first.bound is Bound.LATENCY:
        command = f"`seatrial run {benchmark_of(Role.MESSAGE_TIME)}`"
        return f"Send fewer, larger messages, or run fewer ranks; {command} tells what the fabric can do."
    if first.bound is Bound.BANDWIDTH:
        command = f"`seatrial run {benchmark_of(Role.MESSAGE_BANDWIDTH)}`"
        return f"Send less, or put neighbours on one node; {command} tells what the fabric can do."
    if first.bound is Bound.LOCAL:
        return f"{first.call} communicates with nobody: call it less often, and keep what it answers."
    if first.bound is Bound.START:
        return "Most of MPI's time is its start: profile a longer run before judging the program."
    return "Sizes are not known for this MPI library: use one that the profiler knows."


def trust_lines(profile: Profile) -> list[TrustLine]:
    """What the numbers rest on, what weakens them first."""
    trust = profile.trust
    lines = [_complete(profile)]
    if profile.others:
        lines.append(
            TrustLine("Scope", f"{count(profile.others, 'other MPI program')} of the same command stand apart", True)
        )
    if trust.overflow:
        said = f"{trust.without_site} calls without their place, {trust.lost_calls} in no table"
        lines.append(TrustLine("Overflow", f"{said}, for want of room", True))
    if trust.unmatched_B:
        lines.append(TrustLine("Messages", f"senders and receivers differ by {show(trust.unmatched_B, 'B')}", True))
    if trust.untold:
        lines.append(
            TrustLine("Receives", f"{count(trust.untold, 'message')} of a length that the library did not tell", True)
        )
    if not trust.has_sizes:
        lines.append(
            TrustLine("Sizes", "the MPI library is of an unknown family: only times and counts are known", True)
        )
    sampled, of = profile.measured_calls
    if sampled:
        lines.append(TrustLine("Waiting", f"measured by a barrier before {sampled} of {of} calls of collectives"))
    several = sum(one.threads > 1 for one in profile.per_rank)
    if several:
        lines.append(
            TrustLine("Threads", f"{count(several, 'rank')} called MPI from several threads: their times are summed")
        )
    calls = sum(one.count for one in profile.calls)
    share = profile.overhead_s / profile.wall_s if profile.wall_s > 0 else 0.0
    own = (
        f"{show(profile.overhead_s, 's')} over all ranks for {count(calls, 'call')}, {share_words(share)} of wall time"
    )
    lines.append(TrustLine("Own cost", own, share > 0.01))
    lines.append(TrustLine("MPI library", "; ".join(trust.libraries) or ", ".join(trust.families) or "not reported"))
    return sorted(lines, key=lambda line: not line.is_weak)


def _complete(profile: Profile) -> TrustLine:
    trust = profile.trust
    if trust.is_complete:
        return TrustLine("Complete", f"{_every(profile.ranks)} reached MPI_Finalize")
    said = [] if trust.families else ["no process left a table"]
    if trust.missing:
        said.append(f"no table of {_ranks(trust.missing)}")
    if trust.unfinished:
        said.append(f"{_ranks(trust.unfinished)} ended without MPI_Finalize (what returned before is counted)")
    if trust.lost_calls:
        said.append("calls of too many threads are in no table")
    if trust.damaged:
        said.append(f"{count(trust.damaged, 'table')} could not be read")
    return TrustLine("Incomplete", "; ".join(said), True)


def _every(ranks: int) -> str:
    return "the one rank" if ranks == 1 else f"all {ranks} ranks"


def _ranks(ranks: Sequence[int]) -> str:
    named = ", ".join(map(str, ranks[:_MOST_NAMED]))
    more = f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}{more}"


def spread_words(values: Sequence[float]) -> str:
    """Least and most over ranks, in seconds: "1.2 to 3.4 s"; one number where they are alike."""
    if not values:
        return ""
    least, most = min(values), max(values)
    alike = show(least, "s")
    return alike if alike == show(most, "s") else show_range(least, most, "s")


def waiting_words(call: CallTotals) -> str:
    """The share of waiting in a call's time where it was measured, else ""."""
    return "" if call.measured is None or call.time_s <= 0 else share_words(call.waiting_s / call.time_s)


def share_words(share: float) -> str:
    """A share in percent; one that is there, but too small for a decimal, as less than that."""
    return show_percent(share) if share == 0 or share >= _LEAST_SHARE else f"< {show_percent(0.001)}"
