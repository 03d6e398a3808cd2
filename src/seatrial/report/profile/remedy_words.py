"""Sentences about ranks that wait for others, and what to do about each cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from seatrial.benchmarks import benchmark_of
from seatrial.diagnosis.cpu import raise_quota, stop_others, use_own_host
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.spelling import count, show_percent
from seatrial.profiler.cause import CallSite, Cause, Diagnosis, Signal
from seatrial.report.profile.io_words import (
    has_small_pieces,
    is_explained,
    waits_for_locks,
    waits_for_threads,
    while_threads_run,
)
from seatrial.report.profile.place_words import call_words, number_of, rank_words, seconds_of, site_words, upper

_LARGER_PIECES = "Read and write in larger pieces: with a buffer (setvbuf of C, for one), or less often."
_MOSTLY = 0.5
_OPENED = 0.1
"""Programs whose calls on the names of files open files less often query or change them."""
_EACH_WAITS = 0.1
"""If the rank that waits least waits for more than this part of the mean, no rank is the last one each time."""
_MESSAGES = {
    Cause.LATE_SENDER: ("Ranks wait for messages that are sent late", "sends", "sends messages late"),
    Cause.LATE_RECEIVER: ("Ranks wait until others take their messages", "receives", "receives messages late"),
}


def late_partner(one: Diagnosis) -> str:
    """Messages that are sent or received late; with what follows from it."""
    waiting, verb, late = _MESSAGES[one.cause]
    rank, where = rank_words(one), _at(one.late_at)
    share = show_percent(one.share)
    if one.then is not None and one.rank is not None:
        return (
            f"{upper(rank)} {late}{where}, so that rank {one.then_rank} waits for it; and because rank "
            f"{one.then_rank} comes late for that reason, others wait for it{_at(one.then)} ({share} of the time "
            "together). "
            f"{not_by_computing(one)}."
        )
    of = ""
    if one.rank is not None:
        of = f" {upper(rank)} {verb} {show_percent(number_of(one, Signal.MESSAGES_SHARE))} of it{where}."
    return f"{waiting} ({share} of the time). {not_by_computing(one)}.{of}"


def short_late_partner(one: Diagnosis) -> str:
    """The same in a few words."""
    if one.then is not None and one.rank is not None:
        return f"waiting, because {rank_words(one)} {_MESSAGES[one.cause][2]}"
    if one.cause is Cause.LATE_RECEIVER:
        return (
            "waiting until messages are received" if one.rank is None else f"waiting until {rank_words(one)} receives"
        )
    return f"waiting for messages that {'are sent' if one.rank is None else f'{rank_words(one)} sends'} late"


def late_at_collective(one: Diagnosis) -> str:
    """Ranks that arrive late at collective calls, one or another."""
    how = "measured with barriers" if one.sureness == "measured" else "estimated from the shortest calls"
    waiting = f"Ranks wait in collective calls, mostly {one.call}, for {show_percent(one.share)} of the time ({how})."
    if one.rank is not None:
        return f"{waiting} {not_by_computing(one)}: {rank_words(one)} hardly waits there, so it arrives last."
    within = number_of(one, Signal.EXPLAINED_IN_SLICES)
    if varies(one):
        slices = seconds_of(one, Signal.SLICE)
        return (
            f"{waiting} In sum, computing differs little between ranks (which explains "
            f"{show_percent(number_of(one, Signal.WAITING_EXPLAINED))} of the waiting), but it varies over time: "
            f"within slices of {slices}, the differences explain {show_percent(within)} of it. Another rank is late "
            f"each time{_work_or_cpu_varies(one)}."
        )
    is_sure = one.sureness == "measured" and number_of(one, Signal.LEAST_WAITING) > _EACH_WAITS
    late = "is" if is_sure else "may be"
    return f"{waiting} {not_by_computing(one)}: another rank {late} late each time{_work_or_cpu_varies(one)}."


_STEADY = 0.05
"""A CPU whose short loop varied by less was equally fast all the time."""


def _work_or_cpu_varies(one: Diagnosis) -> str:
    varied = one.value(Signal.CPU_VARIES)
    if varied is not None and varied < _STEADY:
        return ", because its work varies: the speed of the CPUs did not"
    known = "" if varied is None else f" (a short loop varied by {show_percent(varied)})"
    return f", because its work varies or its CPU is slower at that time{known}"


def has_more_work(one: Diagnosis) -> bool:
    """Whether it is shown that the rank has more work, not a slower CPU."""
    shown = [seen for seen in one.evidence if seen.signal is Signal.MORE_INSTRUCTIONS or seen.is_against]
    return any(seen.signal in (Signal.MORE_INSTRUCTIONS, Signal.SLOWER_CPU) for seen in shown)


_CLEARLY_MORE = 0.4
"""A rank that is outside MPI so much longer than the mean has more work. Less may be its memory: another NUMA node, or
the traffic of a neighbour. The short loop only computes."""


def may_be_memory(one: Diagnosis) -> bool:
    """Whether slower access to memory could be the reason instead of more work."""
    return one.value(Signal.MORE_INSTRUCTIONS) is None and number_of(one, Signal.EXCESS_COMPUTING) < _CLEARLY_MORE


def longest_words(one: Diagnosis) -> str:
    """The same in a few words, of the rank: "which has more work"."""
    if has_more_work(one):
        return "which has more work" + (", or slower access to memory" if may_be_memory(one) else "")
    both = "and" if one.value(Signal.SLOWER_CPU) is not None else "or"
    return f"which computes longest (more work {both} a slower CPU)"


def more_work_or_slower(one: Diagnosis) -> str:
    """What separates more work from a slower CPU, or that nothing does."""
    more, slower = one.value(Signal.MORE_INSTRUCTIONS), one.value(Signal.SLOWER_CPU)
    if more is not None:
        what = f"It made {show_percent(abs(more))} {'more' if more >= 0 else 'fewer'} instructions than the mean"
        return f"{what}: {'its CPU is slower' if one.cause is Cause.SLOW_CPU else 'it has more work'}."
    if slower is None:
        return "Whether it has more work or a slower CPU was not measured."
    loop = (
        f"The same short loop took it {show_percent(abs(slower))} {'longer' if slower >= 0 else 'less'} than the mean "
        "of all ranks"
    )
    if one.cause is Cause.SLOW_CPU:
        return f"{loop}: its CPU is slower."
    if not has_more_work(one):
        return f"{loop}: it has more work, and its CPU is slower."
    memory = ", or slower access to memory: that loop uses none" if may_be_memory(one) else ""
    return f"{loop}: it has more work{memory}."


def varies(one: Diagnosis) -> bool:
    """Whether slices of time show that computing differs between ranks, where its sums over the run do not."""
    within = number_of(one, Signal.EXPLAINED_IN_SLICES)
    return within >= _MOSTLY and number_of(one, Signal.WAITING_EXPLAINED) <= within / 2


def late_in_call(one: Diagnosis) -> str:
    """A rank that others wait for while it is in MPI."""
    calls = count(round(number_of(one, Signal.CALLS)), "call")
    return (
        f"Ranks wait for {rank_words(one)} at collective calls for "
        f"{show_percent(number_of(one, Signal.WAITING_SHARE))} of the time. It does not compute meanwhile: it is in "
        f"{call_words(one)}{_at(one.late_at, call=False)} for {seconds_of(one, Signal.CALL_TIME)} ({calls}, "
        f"{seconds_of(one, Signal.CALL_MEAN)} on average and {seconds_of(one, Signal.CALL_BEST)} at best). Its "
        f"partners can have been late for {seconds_of(one, Signal.PARTNERS_FREE)} of it at most, since they waited in "
        "MPI: these calls themselves take so long; the cause is unknown."
    )


def slow_collective(one: Diagnosis) -> str:
    """A collective call that takes long although nobody is late."""
    if one.value(Signal.OPERATIONS):
        return (
            f"{call_words(one)} takes {seconds_of(one, Signal.CALL_BEST)} at best and "
            f"{seconds_of(one, Signal.CALL_MEAN)} on average. The program makes its own reduction operations "
            "(MPI_Op_create), which compute inside such a call: nothing shows that ranks are late or that the transfer "
            "takes so long."
        )
    return (
        f"{call_words(one)} takes {seconds_of(one, Signal.CALL_BEST)} at best and {seconds_of(one, Signal.CALL_MEAN)} "
        f"on average; by constants ({one.source}), it takes at most {seconds_of(one, Signal.ALLOWED)}. In each call, "
        f"some rank is the last to arrive and waits for nobody, so the call itself takes so long; the cause is "
        "unknown."
    )


def operation_name(one: Diagnosis) -> str:
    """The function of a reduction operation, without its file."""
    site = one.site
    if site is None or not (site.frames or site.module):
        return "functions of MPI_Op_create"
    return site.frames[0].function if site.frames else site_words(site)


def own_operation(one: Diagnosis) -> str:
    """A reduction operation of the program that computes in MPI calls."""
    calls, waited = round(number_of(one, Signal.CALLS)), number_of(one, Signal.WAITING_SHARE)
    others = round(number_of(one, Signal.OPERATIONS)) - 1
    name = operation_name(one) if one.site is None or not one.site.frames else site_words(one.site)
    spent = number_of(one, Signal.OPERATION_SHARE)
    within = f"{one.call} spends {show_percent(spent)} of its time in operations" if spent else "Requests complete by"
    text = (
        f"{within} of the program (MPI_Op_create): {name} was called "
        f"{count(calls, 'time')}, {seconds_of(one, Signal.CALL_MEAN)} each"
    )
    text += f"; {count(others, 'other function')} took less." if others else "."
    if waited >= _LEAST_OF_WAITING:
        text += (
            " Ranks that apply operations for less time than the longest rank wait meanwhile: at most "
            f"{show_percent(waited)} of the time."
        )
    return text


_LEAST_OF_WAITING = 0.01


def not_by_computing(one: Diagnosis) -> str:
    """How little differences in computing explain."""
    explained = show_percent(min(1.0, number_of(one, Signal.WAITING_EXPLAINED)))
    return f"Differences in computing explain {explained} of the waiting"


def _at(site: CallSite | None, *, call: bool = True) -> str:
    if site is None:
        return ""
    return f" in {site.call} at {site_words(site)}" if call else f" at {site_words(site)}"


def remedy(one: Diagnosis) -> str:
    """What to do, with a full stop; commands in backticks."""
    if one.value(Signal.SMALL_CALLS) is not None:
        return _LARGER_PIECES
    return _REMEDY[one.cause](one)


def _unblock(one: Diagnosis) -> str:
    if while_threads_run(one) and one.value(Signal.PYTHON) is not None:
        return (
            "Threads that run Python code compute one at a time, since they share the interpreter's lock: start more "
            "ranks or processes instead, or compute in functions that release it (NumPy, for one)."
        )
    if waits_for_locks(one) and not while_threads_run(one):
        return (
            "Hold the lock for a shorter time (compute before it is taken), or do without: a file for each rank, "
            "MPI-IO, or one rank that writes for all."
        )
    if waits_for_threads(one) or while_threads_run(one):
        return (
            "Let the thread that calls MPI compute meanwhile, share the work of the threads evenly, or hold their "
            "locks for a shorter time."
        )
    if is_explained(one):
        return f"Remove that wait from {rank_words(one)}, or let the other ranks go on meanwhile."
    return f"Find out what {rank_words(one)} waits for (`strace -c -f -p PID`)."


def _less_io(one: Diagnosis) -> str:
    if 2 * number_of(one, Signal.SYNC_TIME) > number_of(one, Signal.IO_TIME):
        return "Call fsync less often: once at the end of a checkpoint is enough for it to be safe."
    if has_small_pieces(one):
        return _LARGER_PIECES
    return "Read and write less or in larger pieces, with MPI-IO, or while computing goes on (in another thread)."


def _shorter_calls(one: Diagnosis) -> str:
    where = "" if one.late_at is None else f" at {site_words(one.late_at)}"
    text = _by_call(one, f"Make fewer or shorter calls of {one.call}{where}.")
    return f"{text} {_POSTED_FIRST}" if "recv" in one.call.lower() else text


_POSTED_FIRST = (
    "If messages arrive before their receives are posted, post these first (MPI_Irecv), and receive in the order of "
    "sending: then the library need not search among those that have arrived."
)


def _measures_bandwidth(one: Diagnosis) -> str:
    what = "what contiguous messages reach here" if one.value(Signal.HOSTS) == 1 else "the fabric"
    return f"`seatrial run {benchmark_of(Role.MESSAGE_BANDWIDTH)}` measures {what}."


_BY_CALL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(f"MPI_{names}(_c)?"), text)
    for names, text in (
        (
            r"(Unp|P)ack(_external)?",
            "Describe the data with a derived datatype (MPI_Type_vector, MPI_Type_indexed) and send that, or pack a "
            "whole array with one call.",
        ),
        ("Win_fence", "Use fewer epochs: put or get all elements of a step between two calls of MPI_Win_fence."),
        (
            r"Win_(lock|unlock|flush|start|complete|post|wait)\w*",
            "Use fewer epochs: access all elements of a step within one, or lock all targets once (MPI_Win_lock_all).",
        ),
        (
            r"R?(Put|Get|[Aa]ccumulate|Get_accumulate)",
            "Move more elements with each call: contiguous ones by its count, others by a derived datatype.",
        ),
        (r"(Wait|Test)any", "Complete several requests with each call (MPI_Waitsome), or all of them (MPI_Waitall)."),
        (r"Win_(create|allocate|free)\w*", "Make windows once, before the steps of the program, and keep them."),
        (r"Type_\w+", "Make datatypes once, before the steps of the program, and keep them."),
        (r"W(time|tick)", "Read the clock less often: around a larger piece of work."),
        (
            r"(Comm_(rank|size|group|compare|test_inter)|Group_\w+|Get_(count|elements|address|processor_name)"
            r"|Initialized|Finalized|Query_thread|Is_thread_main|Cart_\w+|Attr_\w+|\w+_get_attr)",
            "Call it once, before the loop, and keep its result.",
        ),
        (r"(I?probe|Improbe|Mprobe)", "Post the receives (MPI_Irecv) instead of asking for each message."),
        (
            r"(Barrier|Bcast|Reduce\w*|Allreduce|All(gather|toall)\w*|Gatherv?|Scatterv?|Scan|Exscan)",
            "Combine calls: several values in one call, or one call every few steps.",
        ),
    )
)
"""What to do about calls that cost time by their number or latency; of messages below."""


def _by_call(one: Diagnosis, otherwise: str) -> str:
    return next((text for names, text in _BY_CALL if names.fullmatch(one.call)), otherwise)


_REMEDY: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: lambda one: (
        f"Start as many ranks and threads on {one.host} as it has CPUs ({number_of(one, Signal.CPUS):.0f}), then "
        "profile again."
    ),
    Cause.SAME_CPUS: lambda _: (
        "Give each rank its own CPUs (`mpirun --report-bindings` and `srun --cpu-bind=verbose` show the bindings), "
        "then profile again."
    ),
    Cause.CPU_QUOTA: lambda one: f"{raise_quota(number_of(one, Signal.QUOTA), 'start fewer ranks')}.",
    Cause.STEAL: lambda _: f"{use_own_host('Run')}, then profile again.",
    Cause.OTHER_PROCESSES: lambda one: (
        f"Find out what runs on {one.host} every {seconds_of(one, Signal.PERIOD)} (`top -d 0.5`, cron, monitoring), "
        "and profile again without it."
        if one.value(Signal.PERIOD) is not None
        else f"{stop_others(one.host)}, then profile again."
        if one.value(Signal.FROM) is None
        else f"Find out what else ran on {one.host} at that time (other jobs, cron), and profile again without it."
    ),
    Cause.CHILD_PROCESSES: lambda _: (
        "Start these programs when the ranks are idle, on CPUs that no rank uses, or do their work in the program."
    ),
    Cause.NO_CPU: lambda one: f"Run alone on {one.host}, with one rank per CPU, and profile again.",
    Cause.IMBALANCE: lambda one: (
        f"Distribute the work more evenly, or run fewer ranks with more threads each. Start with {rank_words(one)}."
        if has_more_work(one) and not may_be_memory(one)
        else f"Exchange the ranks over the CPUs and profile again: if {rank_words(one)} is longest again, distribute "
        "its work; if the rank that is then on its CPU is, find out what slows its memory (NUMA node, other programs)."
        if has_more_work(one)
        else f"Run again with ranks on other CPUs: if {rank_words(one)} is longest again, distribute its work."
    ),
    Cause.SLOW_CPU: lambda one: (
        f"Find out why the CPU of {rank_words(one)} is slower (its clock, the other thread of its core, other "
        "guests of the host), or give that rank less work."
    ),
    Cause.SERIAL_IO: lambda one: (
        _less_io(one)
        if 2 * number_of(one, Signal.SYNC_TIME) > number_of(one, Signal.IO_TIME) > 0
        else "Write from several ranks (MPI-IO), write less, or write while computing goes on."
    ),
    Cause.BLOCKED_RANK: _unblock,
    Cause.BLOCKED: _unblock,
    Cause.IDLE_RANK: lambda one: (
        f"Give {rank_words(one)} its own work, or start one rank more than there are CPUs, if it waits without "
        "using a CPU."
    ),
    Cause.WINDOW_WAIT: lambda _: (
        "Hold locks for a shorter time, use shared locks for reading, or lock all targets once (MPI_Win_lock_all); or "
        "let the target call MPI more often (MPICH does so in the background with MPIR_CVAR_ASYNC_PROGRESS=1)."
    ),
    Cause.IO: _less_io,
    Cause.METADATA: lambda one: (
        "Keep files open, or put the content of many small files into a few."
        if number_of(one, Signal.OPEN_CALLS) >= _OPENED * number_of(one, Signal.METADATA_CALLS)
        else "Query and change files less often (stat, access, rename and the like): once for many steps."
    ),
    Cause.LATE_SENDER: lambda _: (
        "Send earlier (nonblocking, before computing), so that partners work at the same time instead of in turn."
    ),
    Cause.LATE_RECEIVER: lambda _: "Post receives earlier (nonblocking, before computing), or send smaller messages.",
    Cause.LATE_AT_COLLECTIVE: lambda one: (
        "Distribute the work again while the program runs, or combine steps between collective calls, so that delays "
        "of single ranks even out."
        if one.sureness == "measured" or varies(one)
        else "`seatrial profile --wait 10` measures waiting and transfer separately."
    ),
    Cause.LATE_IN_CALL: _shorter_calls,
    Cause.SLOW_RECEIVES: lambda _: _POSTED_FIRST,
    Cause.SLOW_COLLECTIVE: lambda one: (
        "Make the function that was given to MPI_Op_create faster, or reduce with an operation of MPI (MPI_SUM and "
        "the like), or reduce fewer elements."
        if one.value(Signal.OPERATIONS)
        else "`seatrial run` with the benchmark of this call measures what it takes here without the program."
    ),
    Cause.OPERATION: lambda one: (
        f"Make {operation_name(one)} faster, reduce fewer elements, or reduce with an operation of MPI (MPI_SUM and "
        "the like)."
    ),
    Cause.MESSAGE_RATE: lambda one: _by_call(one, "Combine messages: send fewer, larger ones."),
    Cause.LOCAL_CALLS: lambda one: _by_call(one, f"Call {one.call} less often."),
    Cause.MANY_REQUESTS: lambda one: _by_call(one, "Keep fewer requests open, or complete all with one call."),
    Cause.POLLING: lambda one: f"Call {one.call} less often: once for a larger piece of work.",
    Cause.LATENCY: lambda one: (
        f"{_by_call(one, 'Send fewer, larger messages, or run fewer ranks.')} "
        f"`seatrial run {benchmark_of(Role.MESSAGE_TIME)}` measures the fabric."
    ),
    Cause.COMMUNICATORS: lambda one: _by_call(
        one, "Make communicators once, before the steps of the program, and keep them."
    ),
    Cause.MPI_IO: lambda _: (
        "Access files in fewer, larger pieces: collect them in memory, or use the collective functions (..._all)."
    ),
    Cause.TRANSFER: lambda one: (
        f"Send less{'' if one.value(Signal.HOSTS) == 1 else ', or place communicating ranks on one node'}; "
        f"{_measures_bandwidth(one)}"
    ),
    Cause.PACKING: lambda one: (
        "Store what is sent contiguously, or with longer contiguous blocks; or copy it to a contiguous buffer and send "
        f"that; {_measures_bandwidth(one)}"
    ),
    Cause.THREAD_IMBALANCE: lambda _: (
        "If the iterations of a loop take different times, share them out with `schedule(dynamic)` or "
        "`schedule(guided)`; if one thread works alone, share its work."
    ),
    Cause.PAGING: lambda _: (
        "Use less memory per node if it swaps (`vmstat 1` shows si and so); read mapped files ahead "
        "(`madvise(MADV_WILLNEED)`) or into memory once."
    ),
    Cause.PAGE_FAULTS: lambda _: (
        "Allocate large arrays once instead of in each step; or let the C library keep freed memory "
        "(`MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`, glibc), or use huge pages."
    ),
    Cause.KERNEL_TIME: lambda one: (
        f"Call {one.system_call} less often, or with more at a time; `strace -c -f -p PID` counts its calls."
        if one.system_call
        else "Find out what it does for them: `perf top` shows the kernel's functions, `strace -c -f -p PID` the calls."
    ),
    Cause.WAITING_LOOP: lambda _: (
        "Find what changes the memory that the loop reads, and why that comes late: share the work more evenly, or do "
        "other work until then. Messages of MPI in place of the loop show in a profile who waits for whom."
    ),
    Cause.MEMORY_BOUND: lambda _: (
        "Reuse data in caches (block loops), or store less of it (smaller types); more ranks per node do not help."
    ),
    Cause.COMPUTE_BOUND: lambda _: (
        "The cores are used well: use more of them, or an algorithm that needs fewer operations."
    ),
    Cause.STARTUP: lambda _: "Most of the MPI time is startup: profile a longer run before judging the program.",
    Cause.COMPUTATION: lambda _: (
        "MPI is not the bottleneck: "
        f"`seatrial run {benchmark_of(Role.FMA_RATE)} {benchmark_of(Role.MEMORY_BANDWIDTH)}` measures the limits of "
        "computation."
    ),
    Cause.NOT_KNOWN: lambda one: (
        "Message sizes are unknown for this MPI library: use one that the profiler supports."
        if one.value(Signal.CALL_SHARE) is not None
        else "`seatrial profile --wait 10` separates waiting from transfer; profile again on a quiet machine."
    ),
}
