"""A cause of slow or disturbed repeats, as a value and in sentences; each states what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import field

from seatrial.diagnosis.cpu import (
    NOT_KNOWN,
    cpus_words,
    others_words,
    quota_words,
    raise_quota,
    ready_words,
    steal_words,
    stop_others,
    use_own_host,
)
from seatrial.model.frozen import Frozen
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.spelling import count, cpu_list, show, show_percent
from seatrial.profiler import cause as profile


class RepeatCause(StrEnum):
    """What takes the time of repeats. A cause that profiles name, too, has the same name here."""

    CPU_QUOTA = profile.Cause.CPU_QUOTA.value
    STEAL = profile.Cause.STEAL.value
    OTHER_PROCESSES = profile.Cause.OTHER_PROCESSES.value
    NO_CPU = profile.Cause.NO_CPU.value
    """It waited for a CPU; the cause is unknown."""
    MORE_THREADS_THAN_CPUS = "more-threads-than-cpus"
    IO_LIMIT = "io-limit"
    FILE_SYSTEM = "file-system"
    SYNCHRONISED_IO = "synchronised-io"
    MEMORY = "memory-shortage"
    LOCKS = "lock-contention"
    PAGE_FAULTS = profile.Cause.PAGE_FAULTS.value
    SLEEP = "sleep"
    CHILD = "child-process"
    KERNEL_TIME = profile.Cause.KERNEL_TIME.value
    """CPU time in the kernel; what for is unknown."""
    SMALL_CALLS = "small-calls"
    FILE_OPENINGS = "file-openings"
    THREAD_STARTS = "thread-starts"
    PROCESS_STARTS = "process-starts"
    UNEVEN_THREADS = "uneven-threads"
    WAITING_LOOP = profile.Cause.WAITING_LOOP.value
    OTHERS_DATA = "waits-for-data"
    """For data of another process, or until it reads."""
    FILE_LOCK = "file-lock"


CPU_CAUSES = frozenset(
    {
        RepeatCause.CPU_QUOTA,
        RepeatCause.STEAL,
        RepeatCause.OTHER_PROCESSES,
        RepeatCause.NO_CPU,
        RepeatCause.MORE_THREADS_THAN_CPUS,
    }
)

IN_KERNEL = frozenset(
    {
        *(RepeatCause.KERNEL_TIME, RepeatCause.SMALL_CALLS, RepeatCause.FILE_OPENINGS),
        *(RepeatCause.THREAD_STARTS, RepeatCause.PROCESS_STARTS),
    }
)
"""CPU time that calls take in the kernel, by what they are for."""

HABITS = IN_KERNEL | {
    *(RepeatCause.LOCKS, RepeatCause.PAGE_FAULTS, RepeatCause.SLEEP, RepeatCause.CHILD),
    *(RepeatCause.UNEVEN_THREADS, RepeatCause.WAITING_LOOP, RepeatCause.OTHERS_DATA, RepeatCause.FILE_LOCK),
}
"""How the program works: it does so in all repeats, so this does not explain why they differ."""


class Disturbance(Frozen):
    """A cause and the share of the repeats' time that it explains (0..1; None: not measured).

    `seen` are the values that speak for it, by name, as the sentences use them.
    """

    cause: RepeatCause
    share: float | None
    sureness: profile.Sureness
    seen: dict[str, Any] = field(default_factory=dict)


_NETWORK = "Its calls go over a network or through another process, so figures are those of that file system"


def sentence(one: Disturbance) -> str:
    """The cause and what was seen, with a full stop."""
    return _SENTENCE[one.cause](one)


def sentences(found: Sequence[Disturbance]) -> str:
    """All causes in their order, separated by blanks."""
    return " ".join(map(sentence, found))


def remedy(one: Disturbance) -> str:
    """What to do, without a full stop."""
    return _REMEDY[one.cause](one)


def no_cpu(found: Sequence[Disturbance], who: str) -> NoCpu | None:
    """The causes among these that took CPUs, as one: the largest with what all of them explain. None: there is none."""
    missing = [one for one in found if one.cause in CPU_CAUSES]
    if not missing:
        return None
    first = max(missing, key=lambda one: one.share or 0.0)
    shares = [one.share for one in missing if one.share is not None]
    return NoCpu(
        who,
        min(1.0, sum(shares)) if shares else None,
        first.cause.value,
        _WHY[first.cause](first),
        is_own=first.cause is RepeatCause.MORE_THREADS_THAN_CPUS,
    )


def evidence(found: Sequence[Disturbance], cpus: Sequence[int]) -> str:
    """The values behind the causes, with the CPUs that the program might use."""
    parts = [
        f"{one.cause}: " + ("share not measured" if one.share is None else show_percent(one.share)) for one in found
    ]
    return "; ".join([*parts, *([f"CPUs {cpu_list(cpus)}"] if cpus else [])])


def _share(one: Disturbance) -> str:
    return "an unknown part of its time" if one.share is None else f"{show_percent(one.share)} of its time"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _and_others(one: Disturbance) -> str:
    return f" and {count(one.seen['others'], 'other')}" if one.seen["others"] else ""


def _ready(one: Disturbance) -> str:
    """Who was ready to run without a CPU, and how long."""
    bound = one.seen.get("bound")
    if not bound:
        return ready_words("The program", _share(one))
    is_one = one.seen["threads"] == 1
    who = f"The {'thread that is' if is_one else 'threads that are'} bound to "
    who += f"{'CPU' if len(bound) == 1 else 'CPUs'} {cpu_list(bound)}"
    share = f"{show_percent(one.share or 0.0)} of {'its' if is_one else 'their'} time"
    return ready_words(who, share, are_several=not is_one)


def _others(one: Disturbance) -> str:
    others, cpus = one.seen["others"], cpus_words(one.seen["cpus"])
    if one.seen["delay"] is None:
        used = others_words(f"{others:.2g}", f"the {cpus} that the program may use")
        return f"{_capital(used)}, and none was idle; how long the program waited for a CPU is unknown."
    used = others_words(f"{others:.2g}", f"{'the' if one.seen.get('bound') else 'its'} {cpus}")
    return f"{_ready(one)}: {used}{one.seen.get('during', '')}."


def _no_cpu(one: Disturbance) -> str:
    others = one.seen.get("others")
    looked = (
        "what other processes used of its CPUs is unknown"
        if others is None
        else others_words(f"{others:.2g}", f"its {cpus_words(one.seen['cpus'])}")
        + f", and {one.seen['idle']:.2g} were idle"
    )
    return f"{_ready(one)}; {NOT_KNOWN} ({looked})."


def _rate(value: float, unit: str) -> str:
    return f"{value:.4g} operations/s" if unit == "op/s" else show(value, "B/s")


def _io_limit(one: Disturbance) -> str:
    seen = one.seen
    return (
        f"A limit on I/O was reached: {seen['direction']}s on device {seen['device']} may take "
        f"{_rate(seen['limit'], seen['unit'])} ({seen['file']}), and they took {_rate(seen['rate'], seen['unit'])} on "
        f"average; the limit explains {_share(one)}."
    )


def _where(one: Disturbance) -> str:
    options = one.seen["options"]
    mounted = f", mounted with {', '.join(options)}" if options else ""
    kind, place = one.seen["type"], one.seen["mount_point"]
    return f"{place} ({kind}{mounted})" if place else "a file system that is unknown"


def _locks(one: Disturbance) -> str:
    seen = one.seen
    kernel = (
        f", and blocking and waking them took up to {show_percent(seen['kernel'])} in the kernel"
        if seen["kernel"] > 0
        else ""
    )
    return (
        "Threads waited for locks (mutexes) that other threads held: they were blocked for "
        f"{show_percent(seen['blocked'])} of their working time{kernel}; the program had {_rounded(seen['rate'])} "
        "voluntary switches a second."
    )


def _page_faults(one: Disturbance) -> str:
    seen = one.seen
    return (
        f"Page faults took about {_share(one)}: {_rounded(seen['rate'])} a second, each "
        f"{seen['per_fault_s'] * 1e6:.2g} µs of CPU time in the kernel. Each page of its memory was handed "
        f"out {_rounded(seen['per_page'])} times."
    )


def _kernel(one: Disturbance) -> str:
    return f"{show_percent(one.seen['kernel'])} of the CPU time was in the kernel"


def _calls(one: Disturbance) -> str:
    """The reads and writes of a run; "" if there were none."""
    if not one.seen["calls"]:
        return ""
    return f"{_rounded(one.seen['calls'])} reads and writes of {show(one.seen['each_B'], 'B')} on average"


def _kernel_time(one: Disturbance) -> str:
    switches = f"{_rounded(one.seen['switches'])} voluntary switches a second"
    if call := one.seen.get("call"):
        return (
            f"{_capital(_kernel(one))}. Where threads were seen to come back from a system call, it was {call} in "
            f"{show_percent(one.seen['of_returns'])} of {one.seen['returns']:.0f} samples."
        )
    if one.seen["waits"]:
        return f"{_capital(_kernel(one))}, and threads or processes waited for each other very often ({switches})."
    counted = ", ".join(filter(None, (f"{_rounded(one.seen['faults'])} page faults", _calls(one))))
    faults = " It catches SIGSEGV: page faults that end in a signal are not counted." if one.seen["catches"] else ""
    return f"{_capital(_kernel(one))}; for which calls is unknown: {counted} and {switches} do not explain it.{faults}"


_READ_S = 2e-6
_MORE_CALLS = ": more than a small one takes, so other calls are made besides, such as opening a file for each"


def has_more_calls(one: Disturbance) -> bool:
    """Whether the time in the kernel for each read or write shows that there are other calls."""
    return float(one.seen["each_s"]) >= _READ_S


def _starts(one: Disturbance, what: str) -> str:
    return f"up to {_rounded(one.seen['started'])} {what} in each run ({_rounded(one.seen['rate'])} a second)"


def _uneven(one: Disturbance) -> str:
    seen = one.seen
    others = "the other one" if seen["threads"] == 2 else f"each of the other {seen['threads'] - 1}"
    return (
        f"{count(seen['threads'], 'thread')} used {seen['used']:.2g} CPUs: one ran for {show_percent(seen['busiest'])} "
        f"of the time, {others} for {show_percent(seen['others'])}, and waited for other threads for most of the rest."
    )


_FOR_DATA = {
    "pipe": "for data of {} (a pipe)",
    "full pipe": "until {} read its data (the pipe was full)",
    "socket": "for data of {} (a socket)",
}


def _other(one: Disturbance) -> str:
    name, waits = one.seen["other"], one.seen["process"]
    return f"another {name}" if name == waits else name or "a process that is unknown"


def _ran(one: Disturbance) -> str:
    if not one.seen["other"]:
        return ""
    name = "that one" if one.seen["other"] == one.seen["process"] else one.seen["other"]
    return f"; {name} ran in {show_percent(one.seen['ran'])} of that time"


def _sets_pace(one: Disturbance) -> str:
    """What to do about another process that is waited for."""
    name = one.seen["other"]
    if not name:
        return "See which process it waits for (`lsof -p PID`, `ss -xp`), and what that one does"
    if one.seen["ran"] >= _MOSTLY:
        return f"Make {name} faster, or divide its work: the program cannot be faster than it"
    return f"See what {name} waits for: measure it alone with `seatrial run command`"


_MOSTLY = 0.5


def _rounded(value: float) -> str:
    """Two digits: `210 000`, `7.5`."""
    digits = float(f"{value:.2g}")
    return (f"{digits:,.0f}" if digits >= 10 else f"{digits:g}").replace(",", " ")


def _others_used(one: Disturbance) -> str:
    cpus = one.seen["cpus"]
    used = others_words(f"{one.seen['others']:.2g}", "its CPU" if cpus == 1 else f"the {cpus_words(cpus)}")
    return f"{used}{one.seen.get('during', '')}"


_WHY: Mapping[RepeatCause, Callable[[Disturbance], str]] = {
    RepeatCause.CPU_QUOTA: lambda one: quota_words(one.seen["quota"], show_percent(one.seen["throttled"])),
    RepeatCause.STEAL: lambda one: steal_words(f"{show_percent(one.share or 0.0)} of the CPU time"),
    RepeatCause.OTHER_PROCESSES: _others_used,
    RepeatCause.NO_CPU: lambda _: NOT_KNOWN,
    RepeatCause.MORE_THREADS_THAN_CPUS: lambda one: (
        f"{'its threads' if one.seen['threads'] is None else count(one.seen['threads'], 'thread')} shared "
        f"{cpus_words(one.seen['cpus'])}"
    ),
}
"""Why there was no CPU, in a few words."""

_SENTENCE: Mapping[RepeatCause, Callable[[Disturbance], str]] = {
    RepeatCause.CPU_QUOTA: lambda one: (
        f"A CPU quota stopped the program for {_share(one)}: {cpus_words(one.seen['quota'])} ({one.seen['file']}), "
        f"used up in {show_percent(one.seen['throttled'])} of its periods."
    ),
    RepeatCause.STEAL: lambda one: f"{_capital(steal_words(f'{show_percent(one.share or 0.0)} of the CPU time'))}.",
    RepeatCause.OTHER_PROCESSES: _others,
    RepeatCause.NO_CPU: _no_cpu,
    RepeatCause.MORE_THREADS_THAN_CPUS: lambda one: (
        f"{_ready(one)}: {'its threads' if one.seen['threads'] is None else count(one.seen['threads'], 'thread')} "
        f"shared the {cpus_words(one.seen['cpus'])} that {'they' if one.seen.get('bound') else 'it'} may use, and "
        f"{one.seen['wanted']:.2g} were ready to run on average."
    ),
    RepeatCause.IO_LIMIT: _io_limit,
    RepeatCause.FILE_SYSTEM: lambda one: (
        f"The files are on {_where(one)}. {_NETWORK}."
        if one.share is None
        else f"The program waited {_share(one)} for files on {_where(one)}."
    ),
    RepeatCause.SYNCHRONISED_IO: lambda one: (
        f"The program waited {_share(one)} in fsync and similar calls, until data was on the device of {_where(one)}."
    ),
    RepeatCause.MEMORY: lambda one: (
        f"Memory was short: tasks waited for memory {_share(one)}, and each repeat had {one.seen['faults']:.3g} page "
        "faults that read from a device or swap."
    ),
    RepeatCause.LOCKS: _locks,
    RepeatCause.PAGE_FAULTS: _page_faults,
    RepeatCause.SLEEP: lambda one: (
        f"The program slept for {_share(one)} (nanosleep, usleep and the like), and none of its threads ran."
    ),
    RepeatCause.CHILD: lambda one: (
        f"{one.seen['process']} waited {_share(one)} for child processes to end: {one.seen['child']}"
        f"{_and_others(one)}. It computes itself for "
        f"{show_percent(one.seen['own'])} of its time."
    ),
    RepeatCause.KERNEL_TIME: _kernel_time,
    RepeatCause.SMALL_CALLS: lambda one: (
        f"{_capital(_kernel(one))}, with {_calls(one)}, {one.seen['each_s'] * 1e6:.2g} µs for each"
        f"{_MORE_CALLS if has_more_calls(one) else ''}."
    ),
    RepeatCause.FILE_OPENINGS: lambda one: (
        f"{_capital(_kernel(one))}, and files were opened and closed again and again: {one.seen['looks']:.0f} of "
        f"{one.seen['of']:.0f} looks found one that was open at that look only, such as {one.seen['file']}"
        f"{f'; there were {_calls(one)}' if one.seen['calls'] else ''}."
    ),
    RepeatCause.THREAD_STARTS: lambda one: (
        f"{_capital(_kernel(one))}, and threads were started and ended again and again: {_starts(one, 'threads')}."
    ),
    RepeatCause.PROCESS_STARTS: lambda one: (
        f"Processes that ended at once had {show_percent(one.seen['cpu'])} of the CPU time: "
        f"{_starts(one, 'processes and threads')}, mostly {' and '.join(one.seen['names'])}."
    ),
    RepeatCause.UNEVEN_THREADS: _uneven,
    RepeatCause.WAITING_LOOP: lambda one: (
        f"A loop that only waits, in {one.seen['file']} at {one.seen['offset']:#x}, had at least "
        f"{show_percent(one.seen['cpu'])} of the CPU time: it reads the same memory until another thread or process "
        "changes it."
    ),
    RepeatCause.OTHERS_DATA: lambda one: (
        f"{one.seen['process']} waited {_share(one)} {_FOR_DATA[one.seen['in']].format(_other(one))}{_ran(one)}."
    ),
    RepeatCause.FILE_LOCK: lambda one: (
        f"{one.seen['process']} waited {_share(one)} for a lock on {one.seen['path'] or 'a file'} (flock, fcntl), "
        f"which {_other(one)} held{_ran(one)}."
    ),
}

_REMEDY: Mapping[RepeatCause, Callable[[Disturbance], str]] = {
    RepeatCause.CPU_QUOTA: lambda one: raise_quota(one.seen["quota"], "use fewer threads"),
    RepeatCause.STEAL: lambda _: use_own_host("Measure"),
    RepeatCause.OTHER_PROCESSES: lambda _: f"{stop_others()} or wait until they end (`--wait-quiet 10min`)",
    RepeatCause.NO_CPU: lambda _: "Measure with nothing else running; `perf sched timehist` shows who had the CPUs",
    RepeatCause.MORE_THREADS_THAN_CPUS: lambda one: (
        f"Start as many threads as there are CPUs for them ({one.seen['cpus']}), or let the program use more CPUs "
        "(`taskset -cp PID` shows those of a process)"
    ),
    RepeatCause.IO_LIMIT: lambda one: (
        f"Raise the limit in {one.seen['file']}, or measure outside of this control group"
    ),
    RepeatCause.FILE_SYSTEM: lambda one: (
        "Put the files on a file system of this machine (`df -T` lists them)"
        if not one.seen["options"]
        else f"Mount {one.seen['mount_point']} without {', '.join(one.seen['options'])}, or put the files elsewhere"
    ),
    RepeatCause.SYNCHRONISED_IO: lambda _: "Synchronise less often, or more data at a time",
    RepeatCause.MEMORY: lambda _: (
        "Use less memory, or raise the limit of the control group (`memory.max`), and avoid swap"
    ),
    RepeatCause.LOCKS: lambda _: (
        "Hold locks for a shorter time, use several locks, or let each thread collect its own results "
        "(`perf trace -s -e futex` counts the calls)"
    ),
    RepeatCause.PAGE_FAULTS: lambda _: (
        "Allocate large arrays once instead of in each step; or let the C library keep freed memory "
        "(`MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`, glibc), or use huge pages"
    ),
    RepeatCause.SLEEP: lambda _: (
        "Wait for the event itself (a condition variable, a pipe, inotify), or sleep for a shorter time at once"
    ),
    RepeatCause.CHILD: lambda one: (
        f"Go on with other work while {one.seen['child']} runs, or do its work in the program"
    ),
    RepeatCause.KERNEL_TIME: lambda one: (
        f"Call {one.seen['call']} less often, or with more at a time (`strace -c -f` counts its calls)"
        if one.seen.get("call")
        else "Hand over more work at a time, so that threads and processes wait for each other less often"
        if one.seen["waits"]
        else "See which system calls it makes (`strace -c -f`, `perf trace -s`), and make fewer of them"
        + (" (`strace -f -e trace=mprotect -e signal=SIGSEGV` shows signals)" if one.seen["catches"] else "")
    ),
    RepeatCause.SMALL_CALLS: lambda one: (
        "Keep files open, or read each once and keep what it contains (`strace -c -f` counts the calls); and read and "
        "write many elements at a time"
        if has_more_calls(one)
        else "Read and write through a buffer, many elements at a time (fread, fwrite, setvbuf); between processes, "
        "send blocks or share memory"
    ),
    RepeatCause.FILE_OPENINGS: lambda _: (
        "Read each file once and keep what it contains, or keep it open (`strace -c -f` counts the calls)"
    ),
    RepeatCause.THREAD_STARTS: lambda _: "Start the threads once and give them work again and again (a pool, OpenMP)",
    RepeatCause.PROCESS_STARTS: lambda _: (
        "Do their work in the program, start them once and send them work over a pipe, or give each more to do"
    ),
    RepeatCause.OTHERS_DATA: _sets_pace,
    RepeatCause.FILE_LOCK: lambda _: (
        "Hold the lock for a shorter time, lock parts of the file (fcntl), or give each process its own file"
    ),
    RepeatCause.WAITING_LOOP: lambda one: (
        f"See what the loop waits for (`addr2line -f -e {one.seen['file']} {one.seen['offset']:#x}`), and why that "
        "comes late; if threads share the work, divide it more evenly"
    ),
    RepeatCause.UNEVEN_THREADS: lambda _: (
        "Where the threads share a loop, hand out its iterations in small parts (`schedule(dynamic)`); where one works "
        "alone, divide its part"
    ),
}
