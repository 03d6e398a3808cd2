"""A diagnosis in sentences: what takes the time, the evidence, and what to do. All sentences about causes are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.benchmarks import benchmark_of
from seatrial.model.role import Role
from seatrial.profiler.diagnosis.cause import NO_CPU_CAUSES, WAITING_CAUSES, Cause, Diagnosis, Signal
from seatrial.report.profile import node_words
from seatrial.report.profile.place_words import site_words
from seatrial.report.units import count, show, show_percent


def short_words(one: Diagnosis) -> str:
    """The cause in a few words, to follow a colon."""
    return _SHORT[one.cause](one)


def sentence(one: Diagnosis) -> str:
    """The cause and its evidence, with a full stop."""
    return f"{_LONG[one.cause](one)}{_place(one)}"


def remedy(one: Diagnosis) -> str:
    """What to do, with a full stop; commands in backticks."""
    return _REMEDY[one.cause](one)


def lost_share(diagnoses: Sequence[Diagnosis]) -> str:
    """The headline of missing CPUs; "" if none was missing."""
    first = next((one for one in diagnoses if one.cause in NO_CPU_CAUSES), None)
    if first is None:
        return ""
    return f"Rank {first.rank} waited for a CPU {show_percent(first.share)} of the time: {short_words(first)}"


def _place(one: Diagnosis) -> str:
    if one.site is None or one.cause is Cause.THREAD_IMBALANCE:
        return ""
    where = f"{one.site.call} at {site_words(one.site)}"
    return f" Ranks wait mostly in {where}." if one.cause in WAITING_CAUSES else f" Mostly {where}."


def _number(one: Diagnosis, signal: Signal) -> float:
    return one.value(signal) or 0.0


def _percent(one: Diagnosis, signal: Signal) -> str:
    return show_percent(min(1.0, _number(one, signal)))


def _cpus(value: float) -> str:
    return "1 CPU" if value == 1 else f"{value:.3g} CPUs"


def _whole(one: Diagnosis, signal: Signal, what: str) -> str:
    return count(round(_number(one, signal)), what)


def _rank(one: Diagnosis) -> str:
    return "a rank" if one.rank is None else f"rank {one.rank}{f' on {one.host}' if one.host else ''}"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _call(one: Diagnosis) -> str:
    if one.size_B is None:
        return one.call
    return f"{one.call} ({show(one.size_B, 'B', binary=one.size_B % 1024 == 0)})"


def _waited(one: Diagnosis, why: str) -> str:
    ran = one.value(Signal.CPU_TIME)
    got = "" if ran is None else f" and had {_cpus(round(ran, 2))} on average"
    return (
        f"{_first_upper(_rank(one))} was ready to run, but had no CPU, for {_percent(one, Signal.RUN_DELAY)} of its "
        f"time{got}: {why}. Times in MPI include waiting for such ranks."
    )


def _crowd(one: Diagnosis) -> str:
    ranks, cpus = _whole(one, Signal.RANKS_ON_NODE, "rank"), _cpus(_number(one, Signal.CPUS))
    if _number(one, Signal.RANKS_ON_NODE) <= _number(one, Signal.CPUS):
        return f"the threads of {ranks} share {cpus}"
    return f"{ranks} share {cpus}"


def _bound(one: Diagnosis) -> str:
    return f"{_crowd(one)} that they are bound to, of more on the node"


def _quota(one: Diagnosis) -> str:
    return (
        f"a quota of {_cpus(_number(one, Signal.QUOTA))} was used up in "
        f"{_percent(one, Signal.THROTTLED)} of its periods"
    )


def _steal(one: Diagnosis) -> str:
    of = _cpus(_number(one, Signal.CPUS))
    return f"the hypervisor gave {_number(one, Signal.STEAL_SHARE):.2f} of {of} to others"


def _others(one: Diagnosis) -> str:
    of = _cpus(_number(one, Signal.CPUS))
    return f"other processes used {_number(one, Signal.OTHERS_CPUS):.2f} of {of}"


def _not_known_cpu(one: Diagnosis) -> str:
    if one.value(Signal.OTHERS_CPUS) is None:
        return "why is not known"
    return f"why is not known ({_others(one)}, {_steal(one)})"


def _slowest(one: Diagnosis) -> str:
    return (
        f"{_rank(one)} is outside MPI {_percent_over(one)} longer than the mean of all ranks, which explains "
        f"{_percent(one, Signal.WAITING_EXPLAINED)} of the waiting"
    )


def _percent_over(one: Diagnosis) -> str:
    return show_percent(_number(one, Signal.EXCESS_COMPUTING))


def _imbalance(one: Diagnosis) -> str:
    return f"{_first_upper(_slowest(one))}."


def _serial_io(one: Diagnosis) -> str:
    return (
        f"{_first_upper(_slowest(one))}; it made {_percent(one, Signal.IO_SHARE)} of the input and output of all ranks "
        f"({show(_number(one, Signal.IO_BYTES), 'B')})."
    )


def _blocked(one: Diagnosis) -> str:
    return (
        f"{_first_upper(_slowest(one))}; it neither ran nor was ready to run for {_percent(one, Signal.BLOCKED)} of "
        "its time. What it waited for is not known (sleep, input and output, another program)."
    )


def _not_by_computing(one: Diagnosis) -> str:
    return f"Differences in computing explain {_percent(one, Signal.WAITING_EXPLAINED)} of the waiting"


def _late(what: str, partner: str) -> Callable[[Diagnosis], str]:
    def words(one: Diagnosis) -> str:
        of = ""
        if one.rank is not None:
            of = f" {_first_upper(_rank(one))} {partner} {_percent(one, Signal.MESSAGES_SHARE)} of it."
        return f"{what} ({show_percent(one.share)} of the time). {_not_by_computing(one)}.{of}"

    return words


def _at_collective(one: Diagnosis) -> str:
    how = "measured with barriers" if one.sureness == "measured" else "estimated from the shortest calls"
    return (
        f"Ranks wait in collective calls, mostly {one.call}, for {show_percent(one.share)} of the time ({how}). "
        f"{_not_by_computing(one)}: another rank may be late each time."
    )


def _many(number: float) -> str:
    return f"{number / 1e6:.3g} million" if number >= 1e6 else f"{number:.0f}"


def _message_rate(one: Diagnosis) -> str:
    mean = show(_number(one, Signal.CALL_MEAN), "s")
    return (
        f"{_call(one)} is called {_many(_number(one, Signal.CALLS))} times and takes {mean} each time: the number of "
        "calls costs the time, not waiting or data."
    )


def _latency(one: Diagnosis) -> str:
    return (
        f"{_call(one)} takes {show(_number(one, Signal.CALL_BEST), 's')} at best and "
        f"{show(_number(one, Signal.CALL_MEAN), 's')} on average, mostly independent of the size."
    )


def _transfer(one: Diagnosis) -> str:
    return (
        f"{_call(one)} takes {show(_number(one, Signal.CALL_BEST), 's')} at best, mostly for the transfer of its data."
    )


def _startup(one: Diagnosis) -> str:
    return f"MPI startup and shutdown take {show_percent(one.share)} of the time."


def _computation(one: Diagnosis) -> str:
    return f"The program spends {show_percent(one.share)} of its time outside MPI."


def _not_known(one: Diagnosis) -> str:
    if one.value(Signal.CALL_SHARE) is not None:
        return (
            f"MPI takes {show_percent(one.share)} of the time, mostly {one.call}; why is not known, because the "
            "sizes of messages are not known for this MPI library."
        )
    delay = one.value(Signal.RUN_DELAY)
    cpu = "" if delay is None else f" No rank waited for a CPU for more than {show_percent(delay)} of its time."
    return (
        f"Ranks wait in MPI for {show_percent(one.share)} of the time, mostly in {one.call}; why is not known. "
        f"{_not_by_computing(one)}.{cpu}"
    )


_LONG: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: lambda one: _waited(one, _crowd(one)),
    Cause.SAME_CPUS: lambda one: _waited(one, _bound(one)),
    Cause.CPU_QUOTA: lambda one: _waited(one, _quota(one)),
    Cause.STEAL: lambda one: _waited(one, _steal(one)),
    Cause.OTHER_PROCESSES: lambda one: _waited(one, _others(one)),
    Cause.NO_CPU: lambda one: _waited(one, _not_known_cpu(one)),
    Cause.IMBALANCE: _imbalance,
    Cause.SERIAL_IO: _serial_io,
    Cause.BLOCKED_RANK: _blocked,
    Cause.LATE_SENDER: _late("Ranks wait for messages that are sent late", "sends"),
    Cause.LATE_RECEIVER: _late("Ranks wait until others take their messages", "receives"),
    Cause.LATE_AT_COLLECTIVE: _at_collective,
    Cause.MESSAGE_RATE: _message_rate,
    Cause.LATENCY: _latency,
    Cause.TRANSFER: _transfer,
    Cause.THREAD_IMBALANCE: node_words.thread_imbalance,
    Cause.PAGING: node_words.paging,
    Cause.MEMORY_BOUND: node_words.memory_bound,
    Cause.COMPUTE_BOUND: node_words.compute_bound,
    Cause.STARTUP: _startup,
    Cause.COMPUTATION: _computation,
    Cause.NOT_KNOWN: _not_known,
}

_SHORT: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: _crowd,
    Cause.SAME_CPUS: _bound,
    Cause.CPU_QUOTA: _quota,
    Cause.STEAL: _steal,
    Cause.OTHER_PROCESSES: _others,
    Cause.NO_CPU: lambda _: "why is not known",
    Cause.IMBALANCE: lambda one: f"waiting for {_rank(one)}, which computes longest",
    Cause.SERIAL_IO: lambda one: f"waiting for {_rank(one)}, which reads and writes",
    Cause.BLOCKED_RANK: lambda one: f"waiting for {_rank(one)}, which is blocked outside MPI",
    Cause.LATE_SENDER: lambda one: (
        f"waiting for messages that {_rank(one)} sends late"
        if one.rank is not None
        else "waiting for messages that are sent late"
    ),
    Cause.LATE_RECEIVER: lambda one: (
        f"waiting until {_rank(one)} receives" if one.rank is not None else "waiting until messages are received"
    ),
    Cause.LATE_AT_COLLECTIVE: lambda _: "waiting for ranks that are late in turn",
    Cause.MESSAGE_RATE: lambda _: "many short calls",
    Cause.LATENCY: lambda _: "latency-bound",
    Cause.TRANSFER: lambda _: "bandwidth-bound",
    Cause.THREAD_IMBALANCE: lambda _: "threads that wait for the last one of their team",
    Cause.PAGING: lambda one: f"page faults of {_rank(one)}",
    Cause.MEMORY_BOUND: lambda _: "memory-bound",
    Cause.COMPUTE_BOUND: lambda _: "compute-bound",
    Cause.STARTUP: lambda _: "MPI startup and shutdown",
    Cause.COMPUTATION: lambda _: "computation",
    Cause.NOT_KNOWN: lambda _: "waiting for other ranks; why is not known",
}


def _distribute(one: Diagnosis) -> str:
    return f"Distribute the work more evenly, or run fewer ranks with more threads each. Start with {_rank(one)}."


_REMEDY: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: lambda one: (
        f"Start as many ranks and threads on {one.host} as it has CPUs ({_number(one, Signal.CPUS):.0f}), then profile "
        "again."
    ),
    Cause.SAME_CPUS: lambda _: (
        "Give each rank its own CPUs (`mpirun --report-bindings` and `srun --cpu-bind=verbose` show the bindings), "
        "then profile again."
    ),
    Cause.CPU_QUOTA: lambda one: (
        f"Raise the CPU quota of the job or container (cpu.max of its control group; now "
        f"{_cpus(_number(one, Signal.QUOTA))}), or start fewer ranks."
    ),
    Cause.STEAL: lambda _: "Run on a host whose CPUs are not shared with other virtual machines, then profile again.",
    Cause.OTHER_PROCESSES: lambda one: (
        f"Stop the other processes on {one.host} (`top` shows them), then profile again."
    ),
    Cause.NO_CPU: lambda one: f"Run alone on {one.host}, with one rank per CPU, and profile again.",
    Cause.IMBALANCE: _distribute,
    Cause.SERIAL_IO: lambda _: "Write from several ranks (MPI-IO), write less, or write while computing goes on.",
    Cause.BLOCKED_RANK: lambda one: f"Find out what {_rank(one)} waits for (`strace -c -f -p PID`).",
    Cause.LATE_SENDER: lambda _: (
        "Send earlier (nonblocking, before computing), so that partners work at the same time instead of in turn."
    ),
    Cause.LATE_RECEIVER: lambda _: "Post receives earlier (nonblocking, before computing), or send smaller messages.",
    Cause.LATE_AT_COLLECTIVE: lambda one: (
        "Combine steps between collective calls, so that delays of single ranks even out."
        if one.sureness == "measured"
        else "`seatrial profile --wait 10` measures waiting and transfer separately."
    ),
    Cause.MESSAGE_RATE: lambda _: "Combine messages: send fewer, larger ones.",
    Cause.LATENCY: lambda _: (
        f"Send fewer, larger messages, or run fewer ranks; `seatrial run {benchmark_of(Role.MESSAGE_TIME)}` measures "
        "the fabric."
    ),
    Cause.TRANSFER: lambda _: (
        "Send less, or place communicating ranks on one node; "
        f"`seatrial run {benchmark_of(Role.MESSAGE_BANDWIDTH)}` measures the fabric."
    ),
    Cause.THREAD_IMBALANCE: node_words.thread_imbalance_remedy,
    Cause.PAGING: node_words.paging_remedy,
    Cause.MEMORY_BOUND: node_words.memory_bound_remedy,
    Cause.COMPUTE_BOUND: node_words.compute_bound_remedy,
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
