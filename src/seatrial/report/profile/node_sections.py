"""Sections of a profile's page about what happens inside ranks: regions, memory and CPU time, counters, OpenMP."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.profile import Profile, RankTotals
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.profile.counter_words import UNVERIFIED, counter_lines
from seatrial.report.profile.memory_words import memory_lines
from seatrial.report.profile.openmp_words import OPENMP_RULE, PLACE_COLUMNS, openmp_lines, place_cells, place_name
from seatrial.report.profile.region_words import (
    REGION_COLUMNS,
    REGION_RULE,
    region_cells,
    region_lines,
    region_name,
)
from seatrial.report.studies.section import Section
from seatrial.report.units import NO_VALUE, show, show_percent

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
