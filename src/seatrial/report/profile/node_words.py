"""Sentences, tables and sections about the inside of ranks: threads, memory, kernel time and hardware counters."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from seatrial.model.spelling import NO_VALUE, count, show, show_percent
from seatrial.model.units import Unit
from seatrial.profiler.cause import Diagnosis, Signal
from seatrial.profiler.profile import Profile, RankTotals
from seatrial.profiler.regions import ParallelPlace
from seatrial.report.pages.templating import Cell, Column, Table
from seatrial.report.profile.counter_words import UNVERIFIED, counter_lines
from seatrial.report.profile.place_words import (
    REGION_COLUMNS,
    REGION_RULE,
    region_cells,
    region_lines,
    region_name,
    site_words,
)
from seatrial.report.studies.article import Section


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


_TIMES = 2.0
_LEAST_MORE_B = 256 << 20


def memory_lines(profile: Profile) -> list[str]:
    """How much memory the ranks had at most, and a rank that had far more; empty if the kernel did not report it."""
    known = {
        one.rank: one.cpu.most_resident_B
        for one in profile.per_rank
        if one.cpu is not None and one.cpu.most_resident_B is not None
    }
    if not known:
        return []
    middle, rank = median(known.values()), max(known, key=lambda one: known[one])
    most = known[rank]
    text = f"up to {show(most, 'B', binary=True)} of memory in a rank"
    if len(known) > 2 and most >= _TIMES * middle and most - middle >= _LEAST_MORE_B:
        text = f"rank {rank} had up to {show(most, 'B', binary=True)} of memory, the median of all ranks is "
        text += show(middle, "B", binary=True)
    faults = sum(one.cpu.major_faults or 0 for one in profile.per_rank if one.cpu is not None)
    return [text, *([f"{faults} pages were read from files or swap (major page faults)"] if faults else [])]


OPENMP_RULE = (
    "Parallel regions by the place where they begin, over all ranks. Waiting at the end is for the last thread; "
    "waiting within is at barriers, those at the end of work-sharing loops included. Lost: what equal shares of the "
    "work would save."
)
PLACE_COLUMNS = ("Count", "Threads", "Time", "Wait at end", "Wait within", "Lost")


def openmp_lines(profile: Profile) -> list[str]:
    """Sentences without a full stop; empty if OpenMP was not requested."""
    ranks = [one.openmp for one in profile.per_rank if one.openmp is not None]
    if not ranks:
        return []
    seen = [one for one in ranks if one.is_seen]
    if not seen:
        return [
            "no OpenMP runtime with OMPT was started: LLVM's and Intel's have it (`clang -fopenmp`), GCC's libgomp has "
            "not"
        ]
    parallel_s, thread_s = sum(one.parallel_s for one in seen), sum(one.thread_s for one in seen)
    waits_s = sum(one.end_wait_s + one.barrier_s for one in seen)
    wall_s = sum(one.wall_s for one in profile.per_rank if one.openmp is not None and one.openmp.is_seen)
    said = [
        f"{show_percent(parallel_s / wall_s) if wall_s > 0 else NO_VALUE} of the time of {count(len(seen), 'rank')} in "
        f"parallel regions with up to {count(max(one.threads for one in seen), 'thread')}, which wait "
        f"{show_percent(waits_s / thread_s) if thread_s > 0 else NO_VALUE} of it at barriers"
    ]
    lost = sum(one.lost for one in seen)
    if lost:
        said.append(f"{count(lost, 'parallel region')} not recorded (at most 64 places, and within MPI)")
    return said


def place_name(place: ParallelPlace) -> str:
    """Where the parallel region begins."""
    return site_words(place.site)


def place_cells(place: ParallelPlace) -> list[str]:
    """The cells of PLACE_COLUMNS; waiting is a share of the time of all its threads."""
    shares = [
        show_percent(value / place.thread_s) if place.thread_s > 0 else NO_VALUE
        for value in (place.end_wait_s, place.barrier_s)
    ]
    return [str(place.count), str(place.threads), show(place.time_s, "s"), *shares, show(place.lost_s, "s")]


_MOST_ROWS = 40
_IPC_COLUMNS = ("IPC", "IPC outside MPI", "IPC in MPI")


def node_sections(profile: Profile) -> list[Section]:
    """Those that have something to show."""
    return [*_regions(profile), *_openmp(profile), *_ranks(profile)]


def _section(name: str, title: str, about: str, table: Table | None, left: int, lines: Sequence[str]) -> Section:
    tables = [] if table is None else [table]
    context = {"about": about, "tables": tables, "left_out": max(0, left), "lines": [f"{line}." for line in lines]}
    return Section(name, title, "profile_tables", context)


def _columns(first: Sequence[str], numeric: Sequence[str]) -> list[Column]:
    return [*map(Column, first), *(Column(name, numeric=True) for name in numeric)]


def _regions(profile: Profile) -> list[Section]:
    if not profile.regions:
        return []
    rows = [[Cell(region_name(one)), *map(Cell, region_cells(profile, one))] for one in profile.regions[:_MOST_ROWS]]
    table = Table("Regions by time", _columns(("Region",), REGION_COLUMNS), rows)
    left = len(profile.regions) - len(rows)
    return [_section("regions", "Regions of the program", REGION_RULE, table, left, region_lines(profile))]


def _openmp(profile: Profile) -> list[Section]:
    lines = openmp_lines(profile)
    if not lines:
        return []
    rows = [[Cell(place_name(one)), *map(Cell, place_cells(one))] for one in profile.parallel[:_MOST_ROWS]]
    table = Table("Parallel regions", _columns(("Begins at",), PLACE_COLUMNS), rows) if rows else None
    return [_section("openmp", "OpenMP", OPENMP_RULE, table, len(profile.parallel) - len(rows), _upper(lines))]


def _ranks(profile: Profile) -> list[Section]:
    """CPU time and memory of each rank, the most memory first; the counters."""
    known = [one for one in profile.per_rank if one.cpu is not None]
    if not known:
        return []
    counters = [one.counters for one in known if one.counters is not None]
    has_ipc = any(one.ipc is not None for one in counters)
    order = sorted(known, key=lambda one: -(_resident_B(one) or 0))
    numeric = ("CPU", "Waited for a CPU", "Blocked", "Switches", "Minor faults", "Major faults", "Most memory")
    columns = _columns(("Rank", "Host"), (*numeric, *_IPC_COLUMNS * has_ipc))
    rows = [[*map(Cell, (str(one.rank), one.host, *_cells(one))), *_ipc(one, has_ipc)] for one in order]
    table = Table("CPU time and memory by rank", columns, rows[:_MOST_ROWS])
    lines = [*memory_lines(profile), *counter_lines(profile)]
    if any(one.flops is not None or one.memory_lines is not None for one in counters):
        lines.append(UNVERIFIED.removesuffix("."))
    about = (
        "From MPI_Init to MPI_Finalize, all threads of a rank. Blocked: neither running nor ready to run. A major "
        "fault reads a page from a device. Switches: voluntary and involuntary."
    )
    if has_ipc:
        about += " IPC: instructions per cycle; in MPI, active waiting counts too."
    return [_section("memory", "CPU time and memory", about, table, len(rows) - _MOST_ROWS, _upper(lines))]


def _resident_B(rank: RankTotals) -> int | None:
    return None if rank.cpu is None else rank.cpu.most_resident_B


def _cells(rank: RankTotals) -> list[str]:
    cpu = rank.cpu
    if cpu is None:
        return []
    switches = NO_VALUE
    if cpu.voluntary is not None and cpu.involuntary is not None:
        switches = str(cpu.voluntary + cpu.involuntary)
    return [
        NO_VALUE if cpu.cpu_s is None else show(cpu.cpu_s, "s"),
        *(NO_VALUE if share is None else show_percent(share) for share in (cpu.delay_share, cpu.blocked_share)),
        switches,
        *(NO_VALUE if faults is None else str(faults) for faults in (cpu.minor_faults, cpu.major_faults)),
        NO_VALUE if cpu.most_resident_B is None else show(cpu.most_resident_B, "B", binary=True),
    ]


def _ipc(rank: RankTotals, is_shown: bool) -> list[Cell]:
    if not is_shown:
        return []
    counters = rank.counters
    values: list[float | None] = [None] * len(_IPC_COLUMNS)
    if counters is not None:
        values = [counters.ipc, counters.ipc_outside, None if counters.in_mpi is None else counters.in_mpi.ipc]
    return [Cell(NO_VALUE if ipc is None else f"{ipc:.2f}", ipc) for ipc in values]


def _upper(lines: Sequence[str]) -> list[str]:
    return [line[:1].upper() + line[1:] for line in lines]
