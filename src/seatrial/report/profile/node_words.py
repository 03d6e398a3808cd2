"""Sentences about time lost inside ranks: threads, page faults, memory and arithmetic."""

from __future__ import annotations

from seatrial.model.units import Unit
from seatrial.profiler.cause import Diagnosis, Signal
from seatrial.report.profile.place_words import site_words
from seatrial.report.units import show, show_percent


def _value(one: Diagnosis, signal: Signal) -> float:
    return one.value(signal) or 0.0


def _rank(one: Diagnosis) -> str:
    return "A rank" if one.rank is None else f"Rank {one.rank}{f' on {one.host}' if one.host else ''}"


def _of_limit(one: Diagnosis, rate: Signal, limit: Signal, unit: Unit) -> str:
    value, most = _value(one, rate), _value(one, limit)
    share = f"{show_percent(value / most)} of the {show(most, unit)}" if most > 0 else "most of what was"
    return f"{show(value, unit)}, {share} measured on this machine"


def _place(one: Diagnosis) -> str:
    return "" if one.site is None else f" at {site_words(one.site)}"


def thread_imbalance(one: Diagnosis) -> str:
    """Threads that wait for the last one."""
    return (
        f"In the parallel region{_place(one)} the {_value(one, Signal.THREADS):.0f} threads wait "
        f"{show_percent(_value(one, Signal.THREADS_WAIT))} of their time for the last one: some threads have more work "
        "than others, or one works alone at the end."
    )


def thread_imbalance_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return (
        "If the iterations of a loop take different times, share them out with `schedule(dynamic)` or "
        "`schedule(guided)`; if one thread works alone, share its work."
    )


def paging(one: Diagnosis) -> str:
    """A rank that waits for its pages."""
    return (
        f"{_rank(one)} read {_value(one, Signal.MAJOR_FAULTS):.0f} pages "
        f"that it touched from files or swap (major page faults), and was blocked for "
        f"{show_percent(_value(one, Signal.BLOCKED))} of its time; most of its pauses are such faults. It had up to "
        f"{show(_value(one, Signal.RESIDENT), 'B', binary=True)} in memory."
    )


def paging_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return (
        "Use less memory per node if it swaps (`vmstat 1` shows si and so); read mapped files ahead "
        "(`madvise(MADV_WILLNEED)`) or into memory once."
    )


def memory_bound(one: Diagnosis) -> str:
    """Ranks that use up the bandwidth of memory."""
    rate = _of_limit(one, Signal.MEMORY_RATE, Signal.MEMORY_LIMIT, "B/s")
    return f"The ranks are memory-bound: they read {rate} by the triad."


def memory_bound_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return "Reuse data in caches (block loops), or store less of it (smaller types); more ranks per node do not help."


def compute_bound(one: Diagnosis) -> str:
    """Ranks that use up the arithmetic of the cores."""
    return f"The ranks are compute-bound: {_of_limit(one, Signal.FLOP_RATE, Signal.FLOP_LIMIT, 'flop/s')}."


def compute_bound_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return "The cores are used well: use more of them, or an algorithm that needs fewer operations."


def kernel_time(one: Diagnosis) -> str:
    """Ranks that the kernel works for."""
    return (
        f"{_in_kernel(one)}, with {_value(one, Signal.MINOR_FAULTS):.0f} page faults, which are too few to explain it; "
        "what it does is not known."
    )


def page_faults(one: Diagnosis) -> str:
    """Ranks that get new pages all the time."""
    each = _value(one, Signal.FAULTS_PER_PAGE)
    again = (
        f" For each page that the ranks had at most, there were {each:.0f} faults: memory is given back to the kernel "
        "and taken again, over and over."
        if each
        else ""
    )
    rate = _value(one, Signal.FAULT_RATE)
    per_s = f" ({rate:.3g} per second and rank)" if rate else ""
    return (
        f"{_in_kernel(one)}. There were {_value(one, Signal.MINOR_FAULTS):.0f} page faults that read no device{per_s}, "
        f"{show(_value(one, Signal.KERNEL_PER_FAULT), 's')} of this time each: the kernel hands out and clears a page "
        f"when it is touched for the first time.{again}"
    )


def _in_kernel(one: Diagnosis) -> str:
    who = "The ranks use" if one.rank is None else f"{_rank(one)} uses"
    share = show_percent(one.share)
    return f"{who} CPU time in the kernel for at least {share} of the time, outside MPI and calls on files"


def kernel_time_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return "Find out what it does for them: `perf top` shows the kernel's functions, `strace -c -f -p PID` the calls."


def page_faults_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    return (
        "Allocate large arrays once instead of in each step; or let the C library keep freed memory "
        "(`MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`, glibc), or use huge pages."
    )
