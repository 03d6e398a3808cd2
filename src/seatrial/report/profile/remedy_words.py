"""What to do about a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seatrial.benchmarks import benchmark_of
from seatrial.model.role import Role
from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.report.profile import node_words
from seatrial.report.profile.outside_words import is_explained, waits_for_locks
from seatrial.report.profile.rank_words import cpus_words, number_of, rank_words
from seatrial.report.profile.waiting_words import late_in_call_remedy, slow_collective_remedy, varies


def remedy(one: Diagnosis) -> str:
    """What to do, with a full stop; commands in backticks."""
    if one.value(Signal.SMALL_CALLS) is not None:
        return "Read and write in larger pieces: with a buffer (setvbuf of C, for one), or less often."
    return _REMEDY[one.cause](one)


def _distribute(one: Diagnosis) -> str:
    return f"Distribute the work more evenly, or run fewer ranks with more threads each. Start with {rank_words(one)}."


def _unblock(one: Diagnosis) -> str:
    if waits_for_locks(one):
        return (
            "Hold the lock for a shorter time (compute before it is taken), or do without: a file for each rank, "
            "MPI-IO, or one rank that writes for all."
        )
    if is_explained(one):
        return f"Remove that wait from {rank_words(one)}, or let the other ranks go on meanwhile."
    return f"Find out what {rank_words(one)} waits for (`strace -c -f -p PID`)."


def _less_io(one: Diagnosis) -> str:
    if 2 * number_of(one, Signal.SYNC_TIME) > number_of(one, Signal.IO_TIME):
        return "Call fsync less often: once at the end of a checkpoint is enough for it to be safe."
    return "Read and write less or in larger pieces, with MPI-IO, or while computing goes on (a thread of its own)."


def _closer(one: Diagnosis) -> str:
    return "" if one.value(Signal.HOSTS) == 1 else ", or place communicating ranks on one node"


def _measures_bandwidth(one: Diagnosis) -> str:
    what = "what contiguous messages reach here" if one.value(Signal.HOSTS) == 1 else "the fabric"
    return f"`seatrial run {benchmark_of(Role.MESSAGE_BANDWIDTH)}` measures {what}."


_REMEDY: Mapping[Cause, Callable[[Diagnosis], str]] = {
    Cause.MORE_RANKS_THAN_CPUS: lambda one: (
        f"Start as many ranks and threads on {one.host} as it has CPUs ({number_of(one, Signal.CPUS):.0f}), then "
        "profile again."
    ),
    Cause.SAME_CPUS: lambda _: (
        "Give each rank its own CPUs (`mpirun --report-bindings` and `srun --cpu-bind=verbose` show the bindings), "
        "then profile again."
    ),
    Cause.CPU_QUOTA: lambda one: (
        f"Raise the CPU quota of the job or container (cpu.max of its control group; now "
        f"{cpus_words(number_of(one, Signal.QUOTA))}), or start fewer ranks."
    ),
    Cause.STEAL: lambda _: "Run on a host whose CPUs are not shared with other virtual machines, then profile again.",
    Cause.OTHER_PROCESSES: lambda one: (
        f"Stop the other processes on {one.host} (`top` shows them), then profile again."
        if one.value(Signal.FROM) is None
        else f"Find out what else ran on {one.host} at that time (other jobs, cron), and profile again without it."
    ),
    Cause.NO_CPU: lambda one: f"Run alone on {one.host}, with one rank per CPU, and profile again.",
    Cause.IMBALANCE: _distribute,
    Cause.SERIAL_IO: lambda one: (
        _less_io(one)
        if 2 * number_of(one, Signal.SYNC_TIME) > number_of(one, Signal.IO_TIME) > 0
        else "Write from several ranks (MPI-IO), write less, or write while computing goes on."
    ),
    Cause.BLOCKED_RANK: lambda one: _unblock(one),
    Cause.BLOCKED: lambda one: _unblock(one),
    Cause.IDLE_RANK: lambda one: (
        f"Give {rank_words(one)} work of its own, or start one rank more than there are CPUs, if it waits without "
        "using a CPU."
    ),
    Cause.WINDOW_WAIT: lambda _: (
        "Hold locks for a shorter time, use shared locks for reading, or lock all targets once (MPI_Win_lock_all); or "
        "let the target call MPI more often (MPICH does so in the background with MPIR_CVAR_ASYNC_PROGRESS=1)."
    ),
    Cause.IO: _less_io,
    Cause.METADATA: lambda _: "Keep files open, or put the content of many small files into a few.",
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
    Cause.LATE_IN_CALL: late_in_call_remedy,
    Cause.SLOW_COLLECTIVE: slow_collective_remedy,
    Cause.MESSAGE_RATE: lambda _: "Combine messages: send fewer, larger ones.",
    Cause.POLLING: lambda one: f"Call {one.call} less often: once for a larger piece of work.",
    Cause.LATENCY: lambda _: (
        "Send fewer, larger messages, or run fewer ranks; "
        f"`seatrial run {benchmark_of(Role.MESSAGE_TIME)}` measures the fabric."
    ),
    Cause.COMMUNICATORS: lambda _: "Make communicators once, before the steps of the program, and keep them.",
    Cause.MPI_IO: lambda _: (
        "Access files in fewer, larger pieces: collect them in memory, or use the collective functions (..._all)."
    ),
    Cause.TRANSFER: lambda one: f"Send less{_closer(one)}; {_measures_bandwidth(one)}",
    Cause.PACKING: lambda one: (
        "Store what is sent contiguously, or with longer contiguous blocks; or copy it to a contiguous buffer and send "
        f"that; {_measures_bandwidth(one)}"
    ),
    Cause.THREAD_IMBALANCE: node_words.thread_imbalance_remedy,
    Cause.PAGING: node_words.paging_remedy,
    Cause.PAGE_FAULTS: node_words.page_faults_remedy,
    Cause.KERNEL_TIME: node_words.kernel_time_remedy,
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
