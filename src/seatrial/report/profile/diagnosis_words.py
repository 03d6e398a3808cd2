"""A diagnosis in sentences: what takes the time, the evidence, and what to do. All sentences about causes are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.diagnosis import cpu as cpu_words
from seatrial.model.spelling import count, show, show_percent, show_range
from seatrial.model.units import Unit
from seatrial.profiler.cause import NO_CPU_CAUSES, WAITING_CAUSES, Cause, Diagnosis, Signal
from seatrial.report.profile.io_words import blocked_words, file_words, io_words, while_threads_run
from seatrial.report.profile.place_words import call_words, number_of, rank_words, seconds_of, site_words, upper
from seatrial.report.profile.remedy_words import (
    late_at_collective,
    late_in_call,
    late_partner,
    longest_words,
    more_work_or_slower,
    not_by_computing,
    operation_name,
    own_operation,
    short_late_partner,
    slow_collective,
)

_NEAR = 1.5
"""A call that takes up to so many times what was measured is as fast as the fabric allows."""


def short_words(one: Diagnosis) -> str:
    """The cause in a few words, to follow a colon."""
    return _SHORT[one.cause](one)


def sentence(one: Diagnosis) -> str:
    """The cause and its evidence, with a full stop."""
    return f"{_LONG[one.cause](one)}{_of_cpu(one)}{_place(one)}{_small_calls(one)}"


def _of_cpu(one: Diagnosis) -> str:
    """Where ranks waited for a CPU: the share of the CPU time that they had."""
    share = one.value(Signal.CPU_SHARE)
    if share is None:
        return ""
    about = "up to" if one.cause is Cause.MESSAGE_RATE else "about"
    return f" That is {about} {show_percent(share)} of the CPU time that the ranks had."


def _small_calls(one: Diagnosis) -> str:
    if one.value(Signal.SMALL_CALLS) is None:
        return ""
    each = show(number_of(one, Signal.SMALL_CALL_BYTES), "B")
    return (
        f" Rank {number_of(one, Signal.SMALL_CALLS_RANK):.0f} made {_many(number_of(one, Signal.SMALL_CALLS))} reads "
        f"and writes of {each} on average: each takes time in the kernel. If they go through a pipe, as output to "
        "mpirun does, the process at its other end needs a CPU for them, too."
    )


def lost_share(diagnoses: Sequence[Diagnosis]) -> str:
    """The headline of missing CPUs; "" if something else comes first."""
    if not diagnoses or diagnoses[0].cause not in NO_CPU_CAUSES:
        return ""
    first = diagnoses[0]
    span = _span(first)
    mostly = f", mostly from {span}" if span else _every(first)
    return f"Rank {first.rank} waited for a CPU {show_percent(first.share)} of the time{mostly}: {short_words(first)}"


def _every(one: Diagnosis) -> str:
    """How often it was, if it came again and again at about the same interval."""
    period_s = one.value(Signal.PERIOD)
    if period_s is None:
        return ""
    return f", {number_of(one, Signal.BURSTS):.0f} times, about {show(period_s, 's')} apart"


def _span(one: Diagnosis) -> str:
    """When it was, if it was not always."""
    begin_s, end_s = one.value(Signal.FROM), one.value(Signal.UNTIL)
    return "" if begin_s is None or end_s is None else show_range(begin_s, end_s, "s")


def _place(one: Diagnosis) -> str:
    if one.site is None or one.cause in (Cause.THREAD_IMBALANCE, Cause.OPERATION, Cause.WAITING_LOOP):
        return ""
    where = f"{one.site.call} at {site_words(one.site)}"
    return f" Ranks wait mostly in {where}." if one.cause in WAITING_CAUSES else f" Mostly {where}."


def _percent(one: Diagnosis, signal: Signal) -> str:
    return show_percent(min(1.0, number_of(one, signal)))


def _whole(one: Diagnosis, signal: Signal, what: str) -> str:
    return count(round(number_of(one, signal)), what)


def _waited(one: Diagnosis, why: str) -> str:
    ran = one.value(Signal.CPU_TIME)
    span = _span(one)
    got = "" if ran is None else f" and had {cpu_words.cpus_words(round(ran, 2))}{'' if span else ' on average'}"
    of = f"its time{_every(one)}"
    if span:
        of = f"the time from {span} after the start ({show_percent(one.share)} of all its time)"
    ready = cpu_words.ready_words(upper(rank_words(one)), f"{_percent(one, Signal.RUN_DELAY)} of {of}")
    return f"{ready}{got}: {why}. {cpu_words.RANKS_WAIT}."


def _crowd(one: Diagnosis) -> str:
    ranks, cpus = _whole(one, Signal.RANKS_ON_NODE, "rank"), cpu_words.cpus_words(number_of(one, Signal.CPUS))
    if number_of(one, Signal.RANKS_ON_NODE) > number_of(one, Signal.CPUS):
        return f"{ranks} share {cpus}"
    busy = number_of(one, Signal.BUSY_THREADS)
    return f"{f'at least {busy:.0f} busy' if busy else 'the'} threads of {ranks} share {cpus}"


def _bound(one: Diagnosis) -> str:
    return f"{_crowd(one)} that they are bound to, of more on the node"


def _quota(one: Diagnosis) -> str:
    return cpu_words.quota_words(number_of(one, Signal.QUOTA), _percent(one, Signal.THROTTLED))


def _steal(one: Diagnosis) -> str:
    of = cpu_words.cpus_words(number_of(one, Signal.CPUS))
    return cpu_words.steal_words(f"{number_of(one, Signal.STEAL_SHARE):.2f} of {of}")


def _others(one: Diagnosis) -> str:
    of = cpu_words.cpus_words(number_of(one, Signal.CPUS))
    return cpu_words.others_words(f"{number_of(one, Signal.OTHERS_CPUS):.2f}", of)


def _children(one: Diagnosis) -> str:
    of = cpu_words.cpus_words(number_of(one, Signal.CPUS))
    return f"programs that the ranks started used {number_of(one, Signal.CHILDREN_CPUS):.2f} of {of}"


def _not_known_cpu(one: Diagnosis) -> str:
    if one.value(Signal.OTHERS_CPUS) is None:
        return cpu_words.NOT_KNOWN
    return f"{cpu_words.NOT_KNOWN} ({_others(one)}, {_steal(one)})"


def _slowest(one: Diagnosis) -> str:
    longer = show_percent(number_of(one, Signal.EXCESS_COMPUTING))
    return (
        f"{upper(rank_words(one))} is outside MPI {longer} longer than the mean of all ranks, which explains "
        f"{_percent(one, Signal.WAITING_EXPLAINED)} of the waiting"
    )


def _serial_io(one: Diagnosis) -> str:
    if one.value(Signal.IO_TIME):
        return f"{_slowest(one)}. There it is in calls on files: {file_words(one)}."
    return (
        f"{_slowest(one)}; it made {_percent(one, Signal.IO_SHARE)} of the input and output of all ranks "
        f"({show(number_of(one, Signal.IO_BYTES), 'B')})."
    )


def _blocked_alone(one: Diagnosis) -> str:
    ranks = round(number_of(one, Signal.RANKS))
    of = "" if ranks < 2 else f" (the longest of {ranks} ranks that are blocked)"
    if while_threads_run(one):
        return f"{upper(rank_words(one))}{of} does not use all of its CPUs: {blocked_words(one)}"
    return (
        f"{upper(rank_words(one))}{of} neither ran nor was ready to run for {_percent(one, Signal.BLOCKED)} of "
        f"its time, outside MPI; {blocked_words(one)}"
    )


def _blocked_rank(one: Diagnosis) -> str:
    blocked = f"It neither ran nor was ready to run for {_percent(one, Signal.BLOCKED)} of its time; "
    return f"{_slowest(one)}. {upper(blocked_words(one)) if while_threads_run(one) else blocked + blocked_words(one)}"


def _where_blocked(one: Diagnosis) -> str:
    return "waits for its own threads" if while_threads_run(one) else "is blocked outside MPI"


def _io(one: Diagnosis) -> str:
    who = "All ranks are" if one.rank is None else f"{upper(rank_words(one))} is"
    return io_words(one, who)


def _idle(one: Diagnosis) -> str:
    ranks = round(number_of(one, Signal.RANKS))
    more = "" if ranks < 2 else f", as do {ranks - 1} more"
    return (
        f"{upper(rank_words(one))} is outside MPI for {_percent(one, Signal.COMPUTING_OF_MEDIAN)} of the time "
        f"of the median rank{more}, and waits for the others, which take about equally long. That explains "
        f"{_percent(one, Signal.WAITING_EXPLAINED)} of the waiting."
    )


def _many(number: float) -> str:
    return f"{number / 1e6:.3g} million" if number >= 1e6 else f"{number:.0f}"


def _each_time(one: Diagnosis) -> str:
    if one.value(Signal.CPU_SHARE) is not None:  # the mean holds waiting for a CPU
        each = " and takes up to a microsecond of CPU time" if one.cause is Cause.MESSAGE_RATE else ""
        return f"is called {_many(number_of(one, Signal.CALLS))} times{each}"
    mean = seconds_of(one, Signal.CALL_MEAN)
    return f"is called {_many(number_of(one, Signal.CALLS))} times and takes {mean} each time"


def _messages_each(one: Diagnosis) -> str:
    messages, accesses = one.value(Signal.MESSAGES_EACH), one.value(Signal.ACCESSES_EACH)
    if accesses is not None:
        each = count(float(f"{accesses:.2g}"), "access", "accesses")
        return f", with {each} in each epoch on average (MPI_Put and the like): the number of epochs"
    return ": the number of calls" if messages is None else f", for {messages:.0f} messages: their number"


def _requests(one: Diagnosis) -> str:
    return (
        f"{one.call} is called {_many(number_of(one, Signal.CALLS))} times with "
        f"{number_of(one, Signal.REQUESTS_EACH):.0f} requests on average, and takes "
        f"{seconds_of(one, Signal.CALL_MEAN)} each time: the library looks through all of them to complete one."
    )


def _packing(one: Diagnosis) -> str:
    share = number_of(one, Signal.NONCONTIGUOUS)
    which = "All" if share == 1 else f"At least {show_percent(share)} of the"
    return (
        f"{_transferred(one)} {which} bytes that are sent have datatypes with gaps: the library copies them piece by "
        "piece."
    )


def _made(one: Diagnosis) -> str:
    return "windows" if one.call.startswith("MPI_Win_") else "communicators"


def _often(one: Diagnosis) -> str:
    calls = _whole(one, Signal.CALLS, "call")
    return f"{calls} of {call_words(one)}, {seconds_of(one, Signal.CALL_MEAN)} each"


def _taken(one: Diagnosis) -> str:
    return (
        f"{call_words(one)} takes {seconds_of(one, Signal.CALL_BEST)} at best and {seconds_of(one, Signal.CALL_MEAN)} "
        "on average, mostly"
    )


def _transferred(one: Diagnosis) -> str:
    return f"{_taken(one)} for the transfer of its data.{_against(one)}"


def _against(one: Diagnosis) -> str:
    """How the fast calls compare with what such a call takes here by measurement, or else by constants."""
    expected_s, best_s = one.value(Signal.REFERENCE), number_of(one, Signal.CALL_BEST)
    allowed_s = one.value(Signal.ALLOWED)
    if not expected_s and allowed_s:
        return (
            f" The results folder has no measurement of such a call; by constants ({one.source}), it takes at most "
            f"{show(allowed_s, 's')}."
        )
    if not expected_s or best_s <= 0:
        return ""
    ratio = best_s / expected_s
    measured = f"{show(expected_s, 's')} that such a call takes by {one.source}"
    if ratio <= _NEAR:
        return f" That is {ratio:.2g} times the {measured}: the limit of this library and fabric."
    return f" That is {ratio:.2g} times the {measured}; the cause is unknown."


def _packed(one: Diagnosis) -> str:
    made = one.value(Signal.DATATYPES) if one.value(Signal.NONCONTIGUOUS) != 0 else None
    return "" if not made else " The program makes derived datatypes: packing them may be part of it."


def _not_known(one: Diagnosis) -> str:
    if one.value(Signal.CALL_SHARE) is not None:
        return (
            f"MPI takes {show_percent(one.share)} of the time, mostly {one.call}; the cause is unknown, because the "
            "sizes of messages are not known for this MPI library."
        )
    delay = one.value(Signal.RUN_DELAY)
    cpu = "" if delay is None else f" No rank waited for a CPU for more than {show_percent(delay)} of its time."
    return (
        f"Calls of MPI take longer than they need for {show_percent(one.share)} of the time, mostly {one.call}; why is "
        f"not known. {not_by_computing(one)}.{_never_outside(one)}{cpu}"
    )


def _never_outside(one: Diagnosis) -> str:
    """If no other rank was outside MPI meanwhile, none was late."""
    possible = one.value(Signal.OUTSIDE_MPI)
    if possible is None or possible >= 0.5:
        return ""
    return (
        f" At most {show_percent(possible)} of it passed while another rank was outside MPI: the rest is time in "
        "MPI itself, not waiting for a late rank."
    )


def _thread_imbalance(one: Diagnosis) -> str:
    place = "" if one.site is None else f" at {site_words(one.site)}"
    return (
        f"In the parallel region{place} the {number_of(one, Signal.THREADS):.0f} threads wait "
        f"{show_percent(number_of(one, Signal.THREADS_WAIT))} of their time for the last one: some threads have more "
        "work than others, or one works alone at the end."
    )


def _paging(one: Diagnosis) -> str:
    return (
        f"{upper(rank_words(one))} read {number_of(one, Signal.MAJOR_FAULTS):.0f} pages that it touched from files or "
        "swap (major page faults), and was blocked for "
        f"{show_percent(number_of(one, Signal.BLOCKED))} of its time; most of its pauses are such faults. It had up to "
        f"{show(number_of(one, Signal.RESIDENT), 'B', binary=True)} in memory."
    )


def _page_faults(one: Diagnosis) -> str:
    each, rate = number_of(one, Signal.FAULTS_PER_PAGE), number_of(one, Signal.FAULT_RATE)
    again = (
        f" For each page that the ranks had at most, there were {each:.0f} faults: memory is given back to the kernel "
        "and taken again, over and over."
    )
    per_s = f" ({rate:.3g} per second and rank)" if rate else ""
    return (
        f"{_in_kernel(one)}. There were {number_of(one, Signal.MINOR_FAULTS):.0f} page faults that read no "
        f"device{per_s}{_per_fault(one)}: the kernel hands out and clears a page when it is touched for the first "
        f"time.{again if each else ''}"
    )


def _per_fault(one: Diagnosis) -> str:
    if one.value(Signal.KERNEL_PER_FAULT) is None:
        return ""
    return f", {seconds_of(one, Signal.KERNEL_PER_FAULT)} of this time each"


def _in_kernel(one: Diagnosis) -> str:
    who = "The ranks use" if one.rank is None else f"{upper(rank_words(one))} uses"
    share = show_percent(one.share)
    return f"{who} CPU time in the kernel for at least {share} of the time, outside MPI and calls on files"


def _kernel_time(one: Diagnosis) -> str:
    faults = f"{number_of(one, Signal.MINOR_FAULTS):.0f} page faults, which are too few to explain it"
    if not one.system_call:
        return f"{_in_kernel(one)}, with {faults}; the cause is unknown."
    return (
        f"{_in_kernel(one)}, with {faults}. Where they were seen to come back from a system call, it was "
        f"{one.system_call} in {_percent(one, Signal.RETURNS_SHARE)} of {number_of(one, Signal.RETURNS):.0f} samples."
    )


def _loop_place(one: Diagnosis) -> str:
    return "" if one.site is None else f" at {site_words(one.site)}"


def _waiting_loop(one: Diagnosis) -> str:
    ranks = round(number_of(one, Signal.RANKS))
    of = "" if ranks < 2 else f" (the longest of {ranks} ranks)"
    return (
        f"{upper(rank_words(one))}{of} is in a loop of the program that only waits for at least "
        f"{_percent(one, Signal.LOOP_SHARE)} of its time, outside MPI{_loop_place(one)}: it uses its CPU, but reads "
        "the same memory until another thread or process changes it. Which one is unknown."
    )


def _of_limit(one: Diagnosis, rate: Signal, limit: Signal, unit: Unit) -> str:
    value, most = number_of(one, rate), number_of(one, limit)
    share = f"{show_percent(value / most)} of the {show(most, unit)}" if most > 0 else "most of what was"
    return f"{show(value, unit)}, {share} measured on this machine"


_LONG: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: lambda one: _waited(one, _crowd(one)),
    Cause.SAME_CPUS: lambda one: _waited(one, _bound(one)),
    Cause.CPU_QUOTA: lambda one: _waited(one, _quota(one)),
    Cause.STEAL: lambda one: _waited(one, _steal(one)),
    Cause.OTHER_PROCESSES: lambda one: _waited(one, _others(one)),
    Cause.CHILD_PROCESSES: lambda one: _waited(one, _children(one)),
    Cause.NO_CPU: lambda one: _waited(one, _not_known_cpu(one)),
    Cause.IMBALANCE: lambda one: f"{_slowest(one)}. {more_work_or_slower(one)}",
    Cause.SLOW_CPU: lambda one: f"{_slowest(one)}. {more_work_or_slower(one)}",
    Cause.IDLE_RANK: _idle,
    Cause.SERIAL_IO: _serial_io,
    Cause.BLOCKED_RANK: _blocked_rank,
    Cause.WINDOW_WAIT: lambda one: (
        f"Ranks wait for access to windows, mostly in {one.call}, for {show_percent(one.share)} of the time: another "
        f"rank holds the lock, or the target makes no progress; which is unknown. {not_by_computing(one)}."
    ),
    Cause.IO: _io,
    Cause.METADATA: _io,
    Cause.BLOCKED: _blocked_alone,
    Cause.LATE_SENDER: late_partner,
    Cause.LATE_RECEIVER: late_partner,
    Cause.LATE_AT_COLLECTIVE: late_at_collective,
    Cause.LATE_IN_CALL: late_in_call,
    Cause.SLOW_RECEIVES: lambda one: (
        f"{call_words(one)} {_each_time(one)}, {seconds_of(one, Signal.CALL_BEST)} at best.{_never_outside(one)} A "
        "receive takes so long where it searches among many messages that have arrived; whether it does is not "
        "measured."
    ),
    Cause.SLOW_COLLECTIVE: slow_collective,
    Cause.OPERATION: own_operation,
    Cause.MESSAGE_RATE: lambda one: (
        f"{call_words(one)} {_each_time(one)}{_messages_each(one)} costs the time, not waiting or data."
    ),
    Cause.LOCAL_CALLS: lambda one: (
        f"{call_words(one)} {_each_time(one)}: work inside MPI on this rank, neither communication nor waiting."
    ),
    Cause.MANY_REQUESTS: _requests,
    Cause.POLLING: lambda one: f"{one.call} {_each_time(one)}: asking so often costs the time, not waiting.",
    Cause.LATENCY: lambda one: f"{_taken(one)} independent of the size.{_against(one)}",
    Cause.TRANSFER: lambda one: f"{_transferred(one)}{_packed(one)}",
    Cause.PACKING: _packing,
    Cause.MPI_IO: lambda one: f"Calls on files in MPI take {show_percent(one.share)} of the time ({_often(one)}).",
    Cause.COMMUNICATORS: lambda one: (
        f"Making and freeing {_made(one)} takes {show_percent(one.share)} of the time: they are made again and again "
        f"({_often(one)})."
    ),
    Cause.THREAD_IMBALANCE: _thread_imbalance,
    Cause.PAGING: _paging,
    Cause.PAGE_FAULTS: _page_faults,
    Cause.KERNEL_TIME: _kernel_time,
    Cause.WAITING_LOOP: _waiting_loop,
    Cause.MEMORY_BOUND: lambda one: (
        "The ranks are memory-bound: they read "
        f"{_of_limit(one, Signal.MEMORY_RATE, Signal.MEMORY_LIMIT, 'B/s')} by the triad."
    ),
    Cause.COMPUTE_BOUND: lambda one: (
        f"The ranks are compute-bound: {_of_limit(one, Signal.FLOP_RATE, Signal.FLOP_LIMIT, 'flop/s')}."
    ),
    Cause.STARTUP: lambda one: f"MPI startup and shutdown take {show_percent(one.share)} of the time.",
    Cause.COMPUTATION: lambda one: f"The program spends {show_percent(one.share)} of its time outside MPI.",
    Cause.NOT_KNOWN: _not_known,
}

_SHORT: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: _crowd,
    Cause.SAME_CPUS: _bound,
    Cause.CPU_QUOTA: _quota,
    Cause.STEAL: _steal,
    Cause.OTHER_PROCESSES: _others,
    Cause.CHILD_PROCESSES: _children,
    Cause.NO_CPU: lambda _: cpu_words.NOT_KNOWN,
    Cause.IMBALANCE: lambda one: f"waiting for {rank_words(one)}, {longest_words(one)}",
    Cause.SLOW_CPU: lambda one: f"waiting for {rank_words(one)}, whose CPU is slower",
    Cause.SERIAL_IO: lambda one: f"waiting for {rank_words(one)}, which reads and writes",
    Cause.BLOCKED_RANK: lambda one: f"waiting for {rank_words(one)}, which {_where_blocked(one)}",
    Cause.LATE_SENDER: short_late_partner,
    Cause.LATE_RECEIVER: short_late_partner,
    Cause.LATE_AT_COLLECTIVE: lambda one: (
        f"waiting for {rank_words(one)}, which arrives last"
        if one.rank is not None
        else "waiting for ranks that are late"
    ),
    Cause.SLOW_COLLECTIVE: lambda one: (
        "an operation of the program's own" if one.value(Signal.OPERATIONS) else "slow, although no rank is late"
    ),
    Cause.OPERATION: lambda one: f"computing in {operation_name(one)}, an operation of the program",
    Cause.SLOW_RECEIVES: lambda _: "receives that take long, although no rank is late",
    Cause.LATE_IN_CALL: lambda one: f"waiting for {rank_words(one)}, which is in {one.call}",
    Cause.IDLE_RANK: lambda one: f"waiting of {rank_words(one)}, which has little to do",
    Cause.WINDOW_WAIT: lambda _: "waiting for access to windows",
    Cause.IO: lambda _: "calls on files",
    Cause.METADATA: lambda _: "opening, closing and querying files",
    Cause.BLOCKED: lambda one: f"{rank_words(one)} {_where_blocked(one)}",
    Cause.MESSAGE_RATE: lambda _: "many short calls",
    Cause.LOCAL_CALLS: lambda _: "work inside MPI on the rank itself",
    Cause.MANY_REQUESTS: lambda _: "looking through many requests each time",
    Cause.POLLING: lambda _: "asking again and again if something is complete",
    Cause.LATENCY: lambda _: "latency-bound",
    Cause.TRANSFER: lambda _: "bandwidth-bound",
    Cause.MPI_IO: lambda _: "calls on files in MPI",
    Cause.COMMUNICATORS: lambda one: f"{_made(one)} that are made again and again",
    Cause.PACKING: lambda _: "transfer of data that is not contiguous",
    Cause.THREAD_IMBALANCE: lambda _: "threads that wait for the last one of their team",
    Cause.PAGING: lambda one: f"page faults of {rank_words(one)}",
    Cause.PAGE_FAULTS: lambda _: "page faults",
    Cause.KERNEL_TIME: lambda one: (
        f"CPU time in the kernel{f', mostly in {one.system_call}' if one.system_call else ''}"
    ),
    Cause.WAITING_LOOP: lambda one: f"{rank_words(one)} waits in a loop of the program{_loop_place(one)}",
    Cause.MEMORY_BOUND: lambda _: "memory-bound",
    Cause.COMPUTE_BOUND: lambda _: "compute-bound",
    Cause.STARTUP: lambda _: "MPI startup and shutdown",
    Cause.COMPUTATION: lambda _: "computation",
    Cause.NOT_KNOWN: lambda _: "waiting for other ranks; the cause is unknown",
}
