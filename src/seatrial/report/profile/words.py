"""A profile in sentences: the headline, its reliability, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import accumulate

from seatrial.model.spelling import NO_VALUE, count, few_names, show, show_percent, show_range
from seatrial.profiler.cause import NO_CPU_CAUSES, WAITING_CAUSES, Cause, Diagnosis, Sureness
from seatrial.profiler.profile import Bound, CallTotals, Profile, SizeTotals, Trust
from seatrial.profiler.profile_io import FILE_CALLS
from seatrial.report.blocks import Aspect, Cell, Cells, Column, Table, headings, right
from seatrial.report.profile.diagnosis_words import lost_share, sentence, short_words
from seatrial.report.profile.io_words import while_threads_run
from seatrial.report.profile.place_words import region_faults, share_words
from seatrial.report.profile.remedy_words import remedy

_COMPUTES = 0.05
"""Below this share of wall time, MPI calls do not appear in the headline."""
_MOSTLY, _ALL_BUT = 0.5, 0.9
_MOST_NAMED = 6
_EVEN = 0.01

_OUTSIDE = frozenset({Cause.IO, Cause.METADATA, Cause.BLOCKED})
_OVERHEAD_MATTERS = 0.05
"""From this share of wall time on, what the profiler itself takes qualifies all other shares."""
BOUND_WORDS = {
    Bound.WAITING: "waiting for other ranks",
    Bound.LATENCY: "latency-bound",
    Bound.BANDWIDTH: "bandwidth-bound",
    Bound.START: "MPI startup and shutdown",
    Bound.LOCAL: "local",
    Bound.UNKNOWN: "not reported",
}
WAITING_RULE = (
    "With a barrier before a call, waiting is measured: the time until all ranks have arrived. Its share in these "
    "calls is applied to all calls of the same function and size."
)
BOUND_RULE = (
    "The best time of a call is the median over ranks of the shortest call of that size. A call is waiting if three "
    "quarters of its time exceed the best, or if the fastest rank spends less than half the mean. Otherwise it is "
    "bandwidth-bound if its best time is at least twice that of calls up to 64 B (without such calls: from 8 KiB up), "
    "else latency-bound."
)


def headline(profile: Profile) -> str:
    """The summary in one sentence, without its full stop."""
    if not profile.calls:
        return "No MPI call was recorded"
    main = main_diagnosis(profile)
    missing_cpu = lost_share(profile.diagnoses)
    text = missing_cpu or _largest(profile, main)
    if not missing_cpu and (besides := lost_share([one for one in profile.diagnoses if one is not main])):
        text = f"{text}; {besides[:1].lower()}{besides[1:]}"
    overhead = profile.overhead_s / profile.wall_s if profile.wall_s > 0 else 0.0
    if overhead >= _OVERHEAD_MATTERS:
        text += f"; profiling itself takes {show_percent(overhead)} of wall time, which is part of these shares"
    return text


def _largest(profile: Profile, main: Diagnosis | None) -> str:
    """The largest cause, with the call that it is in."""
    if main is not None and main.cause in _OUTSIDE and while_threads_run(main):
        return f"{show_percent(main.share)} of the time of the CPUs is not used: {short_words(main)}"
    if main is not None and main.cause in _OUTSIDE:
        return f"{show_percent(main.share)} of the time is not computing: {short_words(main)}"
    if main is not None and main.cause in (Cause.MEMORY_BOUND, Cause.COMPUTE_BOUND):
        return f"{show_percent(main.share)} of the time is computation, which is {short_words(main)}"
    if main is not None and not main.call and main.cause not in WAITING_CAUSES and main.cause is not Cause.COMPUTATION:
        return f"{show_percent(main.share)} of wall time: {short_words(main)}"
    if profile.mpi_share < _COMPUTES and (main is None or main.cause is Cause.COMPUTATION):
        return f"MPI takes {show_percent(profile.mpi_share)} of wall time: most of it is computation"
    call = _call_of(profile, main)
    size = typical_size(profile.sizes, call)
    share = show_percent(call.time_s / profile.wall_s)
    of = "wall time, all threads together" if call.time_s > profile.wall_s else "wall time"
    text = f"{call.call}{f' ({size})' if size else ''} takes {share} of {of}"
    if main is not None and main.cause is Cause.COMPUTATION:
        return f"{show_percent(main.share)} of wall time is outside MPI; {text}: {BOUND_WORDS[call.bound]}"
    if main is None or main.cause is Cause.STARTUP or call.bound is Bound.START:
        return f"{text}: {BOUND_WORDS[call.bound]}"
    return text if call.bound is Bound.UNKNOWN else f"{text}: {short_words(main)}"


def _call_of(profile: Profile, main: Diagnosis | None) -> CallTotals:
    """The call of a cause: its own, that at its call site, or the one with most time."""
    named = () if main is None else (main.call, "" if main.site is None else main.site.call)
    found = [one for name in named for one in profile.calls if one.call == name]
    return found[0] if found else main_call(profile)


def main_call(profile: Profile) -> CallTotals:
    """The call for the headline: the one with the most time, but MPI startup and shutdown only if no other call takes
    a relevant share."""
    first = profile.calls[0]
    second = next((one for one in profile.calls if one.bound is not Bound.START), first)
    return second if second.time_s >= _COMPUTES * profile.wall_s else first


def typical_size(sizes: Sequence[SizeTotals], call: CallTotals) -> str:
    """The sizes with most of a call's time: "4 B", "mostly 4 B", "4 B to 224 B"; "" if unknown."""
    own = [one for one in sizes if one.call == call.call and one.largest_B]
    time_s = sum(one.time_s for one in own)
    if not own or time_s <= 0 or not call.bytes:
        return ""
    share = own[0].time_s / time_s
    if share >= _MOSTLY:
        return size_words(own[0]) if share >= _ALL_BUT else f"mostly {size_words(own[0])}"
    spent = accumulate(one.time_s for one in own)
    number = next((n for n, so_far in enumerate(spent, start=1) if so_far >= _ALL_BUT * time_s), len(own))
    covered = sorted(own[:number], key=lambda one: one.size_B)
    return f"{size_words(covered[0])} to {size_words(covered[-1])}"


def size_words(size: SizeTotals) -> str:
    """The size of these messages; the mean if the bin holds several sizes."""
    mean = size.bytes / size.count if size.count else 0
    value = mean if size.size_B <= mean <= size.largest_B else size.size_B
    return show(value, "B", binary=value % 1024 == 0)


def imbalance(values: Iterable[float]) -> float | None:
    """How far the largest value is above the mean, as a share of the mean; None if the mean is 0."""
    known = list(values)
    mean = sum(known) / len(known) if known else 0.0
    return max(known) / mean - 1 if mean > 0 else None


def balance_line(profile: Profile) -> str:
    """How evenly the ranks compute. Where ranks waited for a CPU, their CPU time: time outside MPI includes waiting for
    one."""
    if any(one.cause in NO_CPU_CAUSES for one in profile.diagnoses):
        return _cpu_balance_line(profile)
    last = max(profile.per_rank, key=lambda one: one.compute_s, default=None)
    uneven = imbalance(one.compute_s for one in profile.per_rank)
    if last is None or uneven is None or len(profile.per_rank) < 2:
        return ""
    if uneven < _EVEN:
        most, percent = show(last.compute_s, "s"), show_percent(_EVEN)
        return f"All ranks compute about equally long: {most} at most, less than {percent} above the mean"
    return (
        f"Rank {last.rank} on {last.host} computes longest: {show(last.compute_s, 's')}, "
        f"{show_percent(uneven)} above the mean of all ranks"
    )


def _cpu_balance_line(profile: Profile) -> str:
    used = [(one, one.cpu.cpu_s) for one in profile.per_rank if one.cpu is not None and one.cpu.cpu_s is not None]
    uneven = imbalance(cpu_s for _, cpu_s in used)
    if uneven is None or len(used) < max(2, len(profile.per_rank)):
        return ""
    last, cpu_s = max(used, key=lambda one: one[1])
    return (
        f"Rank {last.rank} on {last.host} used most CPU time: {show(cpu_s, 's')}, {show_percent(uneven)} above the "
        "mean of all ranks; ranks that wait actively in MPI use it too"
    )


def main_diagnosis(profile: Profile) -> Diagnosis | None:
    """The cause to act on first: MPI startup only if there is no other."""
    causes = profile.diagnoses
    return next((one for one in causes if one.cause is not Cause.STARTUP), causes[0] if causes else None)


def diagnosis_lines(profile: Profile) -> list[str]:
    """A sentence for each cause that takes a relevant share of the time."""
    return [sentence(one) for one in profile.diagnoses]


def file_share(profile: Profile) -> float | None:
    """The share of the time in calls on files outside MPI; None if they were not timed."""
    timed = [one for one in profile.per_rank if one.system is not None]
    if not timed or profile.wall_s <= 0:
        return None
    return sum(one.system_s(*FILE_CALLS) for one in timed) / profile.wall_s


def cpu_line(profile: Profile) -> str:
    """How much of a CPU each rank had, and how long ranks waited for one; "" if not known."""
    spread = profile.cpu_spread
    if spread is None:
        return ""
    least, most = f"{spread.least_cpus:.2f}", f"{spread.most_cpus:.2f}"
    used = least if least == most else f"{least} to {most}"
    of = "" if spread.ranks == profile.ranks else f" (known of {spread.ranks} of {profile.ranks} ranks)"
    return f"{used} CPUs used per rank, waited for a CPU at most {show_percent(spread.most_delay)} of the time{of}"


def next_experiment(profile: Profile) -> str:
    """What to do next about the main cause; commands in backticks."""
    if not profile.calls:
        return without_mpi(())
    main = main_diagnosis(profile)
    return remedy(main if main is not None else Diagnosis(Cause.COMPUTATION, 1.0, Sureness.MEASURED))


def without_mpi(command: Sequence[str]) -> str:
    """What to do about a program that made no MPI call: the command that looks at any program, with these words."""
    words = shlex.join(command) if command else "PROGRAM ARGUMENTS"
    return f"`seatrial run command -- {words}` measures any program, also without MPI, and says what takes its time."


def trust_lines(profile: Profile) -> list[Aspect]:
    """The reliability of the numbers, limitations first."""
    trust = profile.trust
    lines = [_complete(profile), *_cpu_time(profile)]
    if profile.others:
        lines.append(
            Aspect("Scope", f"{count(profile.others, 'other MPI program')} of the same command not included", True)
        )
    if trust.overflow:
        lines.append(Aspect("Overflow", _overflow(trust), True))
    if trust.unmatched_B:
        lines.append(Aspect("Messages", f"senders and receivers differ by {show(trust.unmatched_B, 'B')}", True))
    if trust.unknown_length:
        lines.append(Aspect("Receives", f"{count(trust.unknown_length, 'message')} of unknown length", True))
    if not trust.has_sizes:
        lines.append(Aspect("Sizes", "unknown MPI library: only times and counts are recorded", True))
    faults = region_faults(profile)
    if faults:
        lines.append(Aspect("Regions", "; ".join(faults), True))
    if profile.faults.stopped_s > 0:
        text = f"MPI_Pcontrol(0) stopped it for {show(profile.faults.stopped_s, 's')}, summed over ranks"
        lines.append(Aspect("Recording", text, True))
    sampled, of = profile.measured_calls
    if sampled:
        lines.append(Aspect("Waiting", f"measured with a barrier before {sampled} of {of} collective calls"))
    several = sum(one.threads > 1 for one in profile.per_rank)
    if several:
        lines.append(
            Aspect("Threads", f"{count(several, 'rank')} called MPI from several threads; their times are summed")
        )
    calls = sum(one.count for one in profile.calls)
    share = profile.overhead_s / profile.wall_s if profile.wall_s > 0 else 0.0
    own = (
        f"{show(profile.overhead_s, 's')} over all ranks for {count(calls, 'call')}, {share_words(share)} of wall time"
    )
    lines.append(Aspect("Overhead", own, share > 0.01))
    lines.append(Aspect("MPI library", "; ".join(trust.libraries) or ", ".join(trust.families) or "not reported"))
    return sorted(lines, key=lambda line: not line.is_weak)


def _cpu_time(profile: Profile) -> list[Aspect]:
    """Where it is unknown, a missing CPU cannot be excluded; after a rank was killed it is known up to a sample."""
    without = [one.rank for one in profile.per_rank if one.cpu is None or one.cpu.delay_s is None]
    text = f"not known of {_ranks(without)}: they may have waited for a CPU"
    return [Aspect("CPU time", text, True)] if without else []


def _overflow(trust: Trust) -> str:
    parts = [f"{trust.without_site} calls without call site"] if trust.without_site or trust.lost_calls else []
    parts += [f"{trust.without_path} without their path or line of Python"] if trust.without_path else []
    parts += [f"{trust.lost_calls} not recorded"] if trust.without_site or trust.lost_calls else []
    more = "; --rows 65536 has space for more of them" if trust.without_site else ""
    return f"{', '.join(parts)}, because a table was full{more}"


def _complete(profile: Profile) -> Aspect:
    trust = profile.trust
    if trust.is_complete:
        every = "the only rank" if profile.ranks == 1 else f"all {profile.ranks} ranks"
        return Aspect("Complete", f"{every} reached MPI_Finalize")
    reasons = [] if trust.families else ["no process left a table"]
    if trust.missing:
        reasons.append(f"no table from {_ranks(trust.missing)}")
    if trust.unfinished:
        reasons.append(f"{_ranks(trust.unfinished)} ended without MPI_Finalize (calls that returned are counted)")
    if trust.lost_calls:
        reasons.append("calls of some threads were not recorded: too many threads")
    if trust.damaged:
        reasons.append(f"{count(trust.damaged, 'table')} could not be read")
    return Aspect("Incomplete", "; ".join(reasons), True)


def _ranks(ranks: Sequence[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {few_names(ranks, _MOST_NAMED)}"


def spread_words(values: Sequence[float]) -> str:
    """Minimum and maximum over ranks, in seconds: "1.2 to 3.4 s"; one number if they are equal."""
    if not values:
        return ""
    least, most = min(values), max(values)
    alike = show(least, "s")
    return alike if alike == show(most, "s") else show_range(least, most, "s")


def waiting_words(call: CallTotals) -> str:
    """The share of waiting in a call's time if it was measured, else ""."""
    return "" if call.measured is None or call.time_s <= 0 else share_words(call.waiting_s / call.time_s)


def calls_table(profile: Profile, most: int | None = None) -> Table:
    """Every call with both shares, count, typical size and what it is bound by; the first `most` of them."""
    measured = bool(profile.measured_calls[0])
    rows: list[Cells] = []
    for one in profile.calls[:most]:
        rows.append(
            [
                one.call,
                *(share_cell(one.time_s, of) for of in (profile.wall_s, profile.mpi_s)),
                Cell.amount(one.time_s, "s"),
                Cell.number(one.count),
                Cell.amount(one.mean_s, "s"),
                Cell.amount(one.bytes, "B"),
                spread_words([one.least_rank_s, one.most_rank_s]),
                *[waiting_words(one) or NO_VALUE] * measured,
                typical_size(profile.sizes, one) or NO_VALUE,
                BOUND_WORDS[one.bound],
            ]
        )
    columns = headings("Call", *right("Of wall", "Of MPI", "Time", "Calls", "Mean", "Bytes"))
    columns.append(Column("Range over ranks", numeric=True, short="per rank"))
    columns += [Column("Waiting, measured", numeric=True, short="waiting")] * measured
    columns += headings(Column("Size", short=None), "Bound by")
    return Table.of("Calls by time", columns, rows)


def sizes_table(profile: Profile, sizes: Sequence[SizeTotals], most: int) -> Table:
    """The first of these sizes with their share of MPI time, count, mean and best time."""
    rows: list[Cells] = []
    for one in sizes[:most]:
        shown = [Cell(size_words(one), one.size_B), share_cell(one.time_s, profile.mpi_s)]
        mean_s = one.time_s / one.count if one.count else 0.0
        times = [Cell.amount(mean_s, "s"), Cell.amount(one.best_s, "s")]
        rows.append(
            [one.call, *shown, Cell.number(one.count), Cell.amount(one.bytes, "B"), *times, BOUND_WORDS[one.bound]]
        )
    left = f", the first {len(rows)} of {len(sizes)}" if len(sizes) > len(rows) else ""
    columns = headings("Call", *right("Size", "Of MPI", "Calls", "Bytes", "Mean", "Best"), "Bound by")
    return Table.of(f"Sizes by time{left}", columns, rows)


def share_cell(time_s: float, of_s: float) -> Cell:
    """A part of a time in percent."""
    share = time_s / of_s if of_s > 0 else 0.0
    return Cell(share_words(share), share)
