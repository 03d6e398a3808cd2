"""Sentences, tables and sections about the inside of ranks: threads, memory, kernel time and hardware counters."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOENT, ENOSYS, EOPNOTSUPP
from statistics import median

from seatrial.model.spelling import NO_VALUE, count, show, show_percent
from seatrial.model.units import Unit
from seatrial.profiler.cpu import RankCounters
from seatrial.profiler.profile import Profile, RankCpu, RankTotals
from seatrial.report.blocks import Cell, Cells, Section, Table, headings, right
from seatrial.report.profile.place_words import REGION_RULE, longest_words, region_lines, region_name, site_words
from seatrial.report.studies.article import tables_section

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
    "Parallel regions by where they begin, over all ranks. Waiting at the end is for the last thread; "
    "waiting within is at barriers, those at the end of work-sharing loops included. Lost: what equal shares of the "
    "work would save."
)


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
        f"{_share(parallel_s, wall_s)} of the time of {count(len(seen), 'rank')} in "
        f"parallel regions with up to {count(max(one.threads for one in seen), 'thread')}, which wait "
        f"{_share(waits_s, thread_s)} of it at barriers"
    ]
    lost = sum(one.lost for one in seen)
    if lost:
        said.append(f"{count(lost, 'parallel region')} not recorded (at most 64 call sites, and within MPI)")
    return said


def places_table(profile: Profile, most: int) -> Table | None:
    """The first parallel regions; waiting is a share of the time of all their threads."""
    rows = []
    for one in profile.parallel[:most]:
        waits = [_share(wait_s, one.thread_s) for wait_s in (one.end_wait_s, one.barrier_s)]
        times = [show(one.time_s, "s"), *waits, show(one.lost_s, "s")]
        rows.append([site_words(one.site), str(one.count), str(one.threads), *times])
    numbers = right("Count", "Threads", "Time", "Wait at end", "Wait within", "Lost")
    return Table.if_any("Parallel regions", ["Begins at", *numbers], rows)


def operations_table(profile: Profile, most: int) -> Table | None:
    """The first functions that the program gave to MPI_Op_create."""
    rows = []
    for one in profile.operations[:most]:
        name = site_words(one.site) if one.site.module or one.site.frames else "others, together"
        mean = show(one.time_s / one.count, "s") if one.count else NO_VALUE
        rows.append(
            [name, str(one.made), str(one.count), show(one.time_s, "s"), mean, _share(one.time_s, profile.wall_s)]
        )
    numbers = right("Made", "Calls", "Time", "Mean", "Of wall")
    return Table.if_any("Reduction operations", ["Function", *numbers], rows)


def regions_table(profile: Profile, most: int) -> Table | None:
    """The first regions of the program; MPI, waiting and CPU are shares of their time."""
    rows = []
    for one in profile.regions[:most]:
        shares = [_share(part_s, one.wall_s) for part_s in (one.mpi_s, one.waiting_s, one.cpu_s)]
        shares = [_share(one.wall_s, profile.wall_s), *shares]
        rows.append([region_name(one), str(one.count), *shares, longest_words(one)])
    columns = headings("Region", *right("Count", "Of wall", "MPI", "Waiting", "CPU", "Longest"))
    return Table.if_any("Regions by time", columns, rows)


def _share(part_s: float, of_s: float) -> str:
    return show_percent(part_s / of_s) if of_s > 0 else NO_VALUE


_MOST_ROWS = 40
_IPC_COLUMNS = ("IPC", "IPC outside MPI", "IPC in MPI")


def node_sections(profile: Profile) -> list[Section]:
    """Those that have something to show."""
    return [*_regions(profile), *_operations(profile), *_openmp(profile), *_ranks(profile)]


def _operations(profile: Profile) -> list[Section]:
    made = operations_table(profile, _MOST_ROWS)
    about = "Functions that the program gave to MPI_Op_create, within MPI calls, over all ranks."
    return [tables_section("operations", "Reduction operations", about, [made], [], 0)] if made else []


def _regions(profile: Profile) -> list[Section]:
    made = regions_table(profile, _MOST_ROWS)
    lines, left_out = _sentences(region_lines(profile)), len(profile.regions) - _MOST_ROWS
    return [tables_section("regions", "Regions of the program", REGION_RULE, [made], lines, left_out)] if made else []


def _openmp(profile: Profile) -> list[Section]:
    lines = openmp_lines(profile)
    if not lines:
        return []
    made, left_out = places_table(profile, _MOST_ROWS), len(profile.parallel) - _MOST_ROWS
    return [tables_section("openmp", "OpenMP", OPENMP_RULE, [made], _sentences(lines), left_out)]


def _ranks(profile: Profile) -> list[Section]:
    """CPU time and memory of each rank, the most memory first; the counters."""
    known = [(one, one.cpu) for one in profile.per_rank if one.cpu is not None]
    if not known:
        return []
    counters = [one.counters for one, _ in known if one.counters is not None]
    has_ipc = any(one.ipc is not None for one in counters)
    known.sort(key=lambda one: -(one[1].most_resident_B or 0))
    numbers = ("CPU", "Waited for a CPU", "Blocked", "Switches", "Minor faults", "Major faults", "Most memory")
    columns = headings("Rank", "Host", *right(*numbers, *_IPC_COLUMNS * has_ipc))
    rows: list[Cells] = [
        (str(one.rank), one.host, *_cells(cpu), *_ipc_cells(one) * has_ipc) for one, cpu in known[:_MOST_ROWS]
    ]
    made = Table.of("CPU time and memory by rank", columns, rows)
    lines = [*memory_lines(profile), *counter_lines(profile)]
    if any(one.flops is not None or one.memory_lines is not None for one in counters):
        lines.append(UNVERIFIED.removesuffix("."))
    about = (
        "From MPI_Init to MPI_Finalize, all threads of a rank. Blocked: neither running nor ready to run. A major "
        "fault reads a page from a device. Switches: voluntary and involuntary."
    )
    if has_ipc:
        about += " IPC: instructions per cycle; in MPI, active waiting counts too."
    left_out = len(known) - _MOST_ROWS
    return [tables_section("memory", "CPU time and memory", about, [made], _sentences(lines), left_out)]


def _cells(cpu: RankCpu) -> list[str]:
    switches = None if cpu.voluntary is None or cpu.involuntary is None else cpu.voluntary + cpu.involuntary
    return [
        NO_VALUE if cpu.cpu_s is None else show(cpu.cpu_s, "s"),
        *(NO_VALUE if share is None else show_percent(share) for share in (cpu.delay_share, cpu.blocked_share)),
        *(NO_VALUE if n is None else str(n) for n in (switches, cpu.minor_faults, cpu.major_faults)),
        NO_VALUE if cpu.most_resident_B is None else show(cpu.most_resident_B, "B", binary=True),
    ]


def _ipc_cells(rank: RankTotals) -> list[Cell]:
    counters = rank.counters
    values: list[float | None] = [None] * len(_IPC_COLUMNS)
    if counters is not None:
        values = [counters.ipc, counters.ipc_outside, None if counters.in_mpi is None else counters.in_mpi.ipc]
    return [Cell(NO_VALUE if ipc is None else f"{ipc:.2f}", ipc) for ipc in values]


def _sentences(lines: Sequence[str]) -> list[str]:
    return [f"{line[:1].upper()}{line[1:]}." for line in lines]
