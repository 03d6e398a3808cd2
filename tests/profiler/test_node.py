"""What happens inside ranks, from made-up tables: regions, hardware counters, OpenMP, page faults; their diagnoses,
each with a control that differs in the decisive signal only."""

from __future__ import annotations

from dataclasses import replace
from errno import EACCES, ENOENT

import duckdb
import pytest
from profiler.made_up_extensions import extension
from profiler.made_up_tables import NAMES, Call, Table, Thread
from published_schemas import check

from seatrial.diagnosis.diagnose import diagnose
from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.errors import ParseError
from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.profiler.cpu import NodeLimits
from seatrial.profiler.parquet import write_parquet
from seatrial.profiler.profile import Profile
from seatrial.profiler.tables.extension import EXTENSION_B, CpuCounterKind
from seatrial.profiler.tables.header import HEADER, OLD_VERSION
from seatrial.profiler.tables.process_table import parse_table
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.node_words import counter_lines, memory_lines, openmp_lines
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.place_words import region_faults, region_lines
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.text import profile_text

S = 10**9
NONE = 2**64 - 1
REDUCE = Call("MPI_Allreduce", 200, 8, 1e-2, 1e-5, site=0x10100)


def cpu(
    at_s: float, cpu_s: float = 0.0, *, voluntary: int = 0, minor: int = 0, major: int = 0, resident_B: int = 1 << 20
):
    """The fields of `struct seatrial_cpu_use`."""
    return (round(at_s * S), round(cpu_s * S), 0, voluntary, 0, minor, major, resident_B, *(NONE,) * 5)


def table(number: int, ranks: int, data: bytes, calls=(REDUCE,), cpu_s: float = 10.0, **counted: int) -> Table:
    return Table(
        number,
        ranks,
        [Thread(calls)],
        pid=100 + number,
        modules="10000 20000 0 /opt/app\n",
        extension=data,
        cpu_first=cpu(100.0),
        cpu_last=cpu(110.0, cpu_s, **counted),
        cpus=(0, 1),
        online=2,
    )


def merged(*tables: Table) -> Profile:
    (profile,) = profiles([parse_table(one.data(), len(NAMES)) for one in tables], NAMES)
    return profile


def named(profile: Profile, cause: Cause) -> Diagnosis | None:
    return next((one for one in profile.diagnoses if one.cause is cause), None)


def in_region(call: Call, region: int) -> Call:
    return replace(call, site=call.site | region << 56)


def test_regions_are_merged_by_name_and_carry_the_waiting_of_their_calls() -> None:
    fast = (in_region(REDUCE, 2), replace(REDUCE, count=1, mean_s=1e-5))
    slow = (in_region(replace(REDUCE, mean_s=1e-5), 1), replace(REDUCE, count=1, mean_s=1e-5))
    profile = merged(
        table(0, 2, extension(regions=[(0, "step", 5, 5, 4 * S, S, S), (1, "halo", 10, 10, 2 * S, S, S)]), fast),
        # Another order, and one begin without an end.
        table(1, 2, extension(regions=[(0, "halo", 3, 3, S, 0, S), (0, "step", 5, 4, 6 * S, 0, 6 * S)]), slow),
    )
    found = {one.path: one for one in profile.regions}
    assert [one.path for one in profile.regions] == [("step",), ("step", "halo"), ("halo",)]
    step, halo = found["step",], found["step", "halo"]
    assert (step.count, step.wall_s, step.mpi_s, step.unended) == (10, 10.0, 1.0, 1)
    assert step.imbalance == pytest.approx(6 / 4.5 - 1) and step.slowest.rank == 1
    # 200 calls of 10 ms, 10 us of which are no waiting; a region's waiting is that of the regions around it, too.
    assert halo.waiting_s == pytest.approx(1.998, rel=1e-3) and step.waiting_s == pytest.approx(halo.waiting_s)
    assert found["halo",].waiting_s < 1e-3
    assert sum(one.waiting_s for one in profile.calls) == pytest.approx(step.waiting_s, rel=1e-3)
    assert {one.offset for one in profile.callsites} == {0x100}, "the region is no part of the call site"
    assert region_lines(profile) == ["Ranks wait most in region step / halo: 10.0 % of the wall time"]
    assert region_faults(profile) == ["1 region begun but not ended (step)"]
    assert "step / halo" in profile_text(profile)


def test_what_is_wrong_with_regions_is_said_and_stopped_time_is_no_wall_time() -> None:
    stopped_at = 1_000_000 + 8 * S  # and to the end, after 10 s
    profile = merged(table(0, 1, extension(faults=(3, 1, 2, 4, 1, S, stopped_at))))
    assert profile.wall_s == pytest.approx(7.0) and profile.faults.stopped_s == pytest.approx(3.0)
    said = " ".join(region_faults(profile))
    for words in ("1 end of regions that were not begun", "2 regions ended by", "3 begins not recorded", "4 begins or"):
        assert words in said
    assert "MPI_Pcontrol(0) stopped it for 3.00 s" in profile_text(profile)


def test_a_table_without_extension_has_no_regions() -> None:
    data = bytearray(table(0, 1, b"").data())
    data[8] = OLD_VERSION
    found = parse_table(bytes(data), len(NAMES))
    assert found.extension is None and found.stopped_s == 0.0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (extension(regions=[(2, "a", 1, 1, 0, 0, 0), (0, "b", 1, 1, 0, 0, 0)]), "comes later"),
        (extension(regions=[(1, "itself", 1, 1, 0, 0, 0)]), "comes later"),
        (extension(regions=[(0, "a", 1, 2, 0, 0, 0)]), "ended 2 times"),
        (extension(counters=[(99, 0, 0, 0, 0)]), "unknown kind"),
        (extension(counters=[(1, 0, 5, 10, 11)]), "11 of 10 ns"),
        (extension(counters=[(1, 0, 5, 10, 10)], split=(1, 2, 1, 0)), "2 of 1 ticks"),
        (extension(counters=[(1, 0, 5, 10, 10)], in_mpi=[(1, 5, 6)]), "6 of 5 ns in MPI"),
        (extension(used=65), "65 samples"),
    ],
)
def test_an_inconsistent_extension_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_table(table(0, 1, data).data(), len(NAMES))


def test_an_extension_at_another_place_is_refused() -> None:
    data = bytearray(table(0, 1, extension()).data())
    at = HEADER.size - 40 - 272  # before the fields of places, and those after them
    data[at : at + 8] = (1 << 40).to_bytes(8, "little")
    with pytest.raises(ParseError, match="inside other parts"):
        parse_table(bytes(data), len(NAMES))


def test_any_bytes_are_parsed_or_refused() -> None:
    for byte in (1, 0x7F, 0xFF):
        try:
            profile = merged(table(0, 1, bytes([byte]) * EXTENSION_B))
        except ParseError:
            continue
        assert profile_text(profile) and profile_document(profile, 0)


def counted(lines: int, flops_each: int, running: int = 10 * S) -> bytes:
    """A rank of 10 s with 2e10 cycles and 3e10 instructions; `flops_each` instructions of each width."""
    whole = running / (10 * S)
    values = {
        CpuCounterKind.CYCLES: 2 * 10**10,
        CpuCounterKind.INSTRUCTIONS: 3 * 10**10,
        CpuCounterKind.LINES_FROM_MEMORY: lines,
        **dict.fromkeys((CpuCounterKind.FP_1, CpuCounterKind.FP_2, CpuCounterKind.FP_4), flops_each),
        **dict.fromkeys((CpuCounterKind.FP_8, CpuCounterKind.FP_16), flops_each),
    }
    return extension(counters=[(kind, 0, round(value * whole), 10 * S, running) for kind, value in values.items()])


def with_limits(profile: Profile, memory: float | None, flops: float | None) -> Profile:
    limited = replace(profile, limits=NodeLimits(memory, flops))
    return replace(limited, diagnoses=diagnose(limited))


def test_counters_are_scaled_if_they_took_turns() -> None:
    profile = merged(table(0, 1, counted(10**9, 10**8, running=4 * S)))
    counters = profile.per_rank[0].counters
    assert counters is not None and counters.least_share == pytest.approx(0.4)
    assert counters.cycles == pytest.approx(2e10) and counters.ipc == pytest.approx(1.5)
    assert counters.memory_B == pytest.approx(64e9) and counters.flops == pytest.approx(31e8)
    first, turns = counter_lines(profile)
    assert first.startswith("1.5 instructions per cycle, 6.40 GB/s from memory, 310 MFLOP/s")
    assert "97 % of it by vector instructions" in first and "at least 40 % of the time" in turns


def test_counts_in_mpi_are_scaled_to_all_of_its_time() -> None:
    """Half of the time in MPI was counted: 2e9 cycles and 6e9 instructions, of 2e10 and 3e10 in all."""
    counters = [
        (CpuCounterKind.CYCLES, 0, 2 * 10**10, 10 * S, 10 * S),
        (CpuCounterKind.INSTRUCTIONS, 0, 3 * 10**10, S, S),
    ]
    data = extension(counters=counters, split=(2 * S, S, 100, 1000), in_mpi=[(2 * 10**9, S, S), (3 * 10**9, S, S // 2)])
    profile = merged(table(0, 1, data))
    (found,) = (one.counters for one in profile.per_rank)
    assert found is not None and found.in_mpi is not None
    assert found.in_mpi.cycles == pytest.approx(4e9) and found.in_mpi.ipc == pytest.approx(3.0)
    assert found.ipc_outside == pytest.approx(18 / 16)
    assert "1.1 outside MPI, 3 in MPI calls" in counter_lines(profile)[1]
    assert "at least 50 % of the time in MPI" in counter_lines(profile)[1]
    document = profile_document(profile, 0)
    check(document, "profile-1")
    assert document["per_rank"][0]["counters"]["in_mpi"]["counted_share"] == pytest.approx(0.5)
    several = merged(replace(table(0, 1, data), threads=[Thread([REDUCE]), Thread([REDUCE])]))
    assert several.per_rank[0].counters.in_mpi is None, "one of the threads is counted"


def test_kernel_time_with_and_without_page_faults() -> None:
    """4 of 10 s in the kernel, of which 2 s may be in MPI; each of two million page faults takes 1 us of the rest."""
    data = extension(kernel=(S, 5 * S, 0, 0))
    found = named(merged(table(0, 1, data, minor=2_000_000)), Cause.PAGE_FAULTS)
    assert found is not None and found.share == pytest.approx(0.2) and found.site is None
    assert "2000000 page faults that read no device" in sentence(found) and "1.00 µs of this time each" in sentence(
        found
    )
    once = table(0, 1, data, minor=2_000_000, resident_B=2_000_000 * 4096)
    assert named(merged(once), Cause.PAGE_FAULTS) is None, "each page was touched once"
    again = named(merged(table(0, 1, data, minor=2_000_000, resident_B=20_000 * 4096)), Cause.PAGE_FAULTS)
    assert again is not None and "100 faults: memory is given back to the kernel and taken again" in sentence(again)
    few = named(merged(table(0, 1, data, minor=1000)), Cause.KERNEL_TIME)
    assert few is not None and "too few to explain it; the cause is unknown" in sentence(few)
    written = replace(table(0, 1, data, minor=2_000_000), system_uses={"write": (1000, 2.0, 1 << 30)})
    assert named(merged(written), Cause.PAGE_FAULTS) is None, "the time of calls on files may be in the kernel, too"
    assert named(merged(table(0, 1, extension(kernel=(0, 5 * S, 0, 0)), minor=2_000_000)), Cause.PAGE_FAULTS) is None


def test_waiting_for_locks_is_known() -> None:
    data = extension(kernel=(0, 0, 300, 4 * S))
    profile = merged(replace(table(0, 1, data, cpu_s=5.0), system_uses={}))
    found = named(profile, Cause.BLOCKED)
    assert found is not None and "waits for locks of files or semaphores" in sentence(found)
    assert found.value(Signal.LOCK_TIME) == pytest.approx(4.0) and "Hold the lock" in remedy(found)
    both = merged(*(replace(table(n, 2, data, cpu_s=5.0), system_uses={}) for n in range(2)))
    found = named(both, Cause.BLOCKED)
    assert found is not None and "2 ranks wait for such locks" in sentence(found)


def test_a_rank_that_is_blocked_outside_parallel_regions_is_named() -> None:
    """It has 3 of 10 s of a CPU, and 2 s in MPI: 5 s are for an unknown reason, 1 s of which may be in a region."""
    profile = merged(table(0, 1, parallel(busy_s=2.0, wall_s=1.0), cpu_s=3.0))
    found = named(profile, Cause.BLOCKED)
    assert found is not None and found.share == pytest.approx(0.4, abs=0.01)
    assert named(merged(table(0, 1, parallel(busy_s=18.0, wall_s=9.0), cpu_s=3.0)), Cause.BLOCKED) is None


def test_a_bound_is_named_near_a_measured_limit_only() -> None:
    profile = merged(*(table(number, 2, counted(10**9, 10**8)) for number in range(2)))
    assert named(profile, Cause.MEMORY_BOUND) is None, "no limit is known"
    bound = named(with_limits(profile, 20e9, 40e9), Cause.MEMORY_BOUND)
    assert bound is not None and bound.value(Signal.MEMORY_RATE) == pytest.approx(12.8e9)
    assert named(with_limits(profile, 25e9, 40e9), Cause.MEMORY_BOUND) is None
    assert named(with_limits(profile, 25e9, 1e9), Cause.COMPUTE_BOUND) is not None
    assert named(with_limits(profile, 25e9, 2e9), Cause.COMPUTE_BOUND) is None
    assert named(with_limits(profile, None, None), Cause.COMPUTE_BOUND) is None


@pytest.mark.parametrize(
    ("error", "has_unit", "said"),
    [
        (ENOENT, 0, "not supported here: the kernel has no unit with hardware counters"),
        (EACCES, 1, "not permitted here (kernel.perf_event_paranoid = 3)"),
    ],
)
def test_missing_counters_are_said_and_nothing_is_claimed(error: int, has_unit: int, said: str) -> None:
    data = extension(counters=[(1, error, 0, 0, 0), (2, error, 0, 0, 0)], paranoid=3, has_unit=has_unit)
    profile = with_limits(merged(table(0, 1, data)), 1.0, 1.0)
    assert counter_lines(profile)[0].startswith(said)
    assert not {one.cause for one in profile.diagnoses} & {Cause.MEMORY_BOUND, Cause.COMPUTE_BOUND}
    document = profile_document(profile, 0)["per_rank"][0]["counters"]
    assert document is not None and document["cycles"] is None and document["errors"] == [error]


def parallel(busy_s: float, count: int = 100, wall_s: float = 4.0) -> bytes:
    """Two threads; the last one takes `wall_s`, both together `busy_s`."""
    ticks = [round(one * S) for one in (wall_s, busy_s, wall_s, 2 * wall_s)]
    return extension(
        openmp=(1, 0, round(wall_s * S)),
        parallel=[(0x10200, count, 2, ticks[0], 2 * count, *ticks[1:], 0, 0)],
    )


def test_threads_that_wait_for_the_last_one_are_named() -> None:
    profile = merged(table(0, 1, parallel(busy_s=5.0)))
    found = named(profile, Cause.THREAD_IMBALANCE)
    assert found is not None and found.share == pytest.approx(0.15) and found.site is not None
    assert found.site.offset == 0x200 and found.value(Signal.THREADS_WAIT) == pytest.approx(3 / 8)
    assert "40 % of the time of 1 rank in parallel regions with up to 2 threads" in openmp_lines(profile)[0]
    assert profile_document(profile, 0)["parallel"][0]["lost_s"] == pytest.approx(1.5)


@pytest.mark.parametrize("data", [parallel(busy_s=7.8), parallel(busy_s=5.0, count=100_000)])
def test_even_or_very_short_parallel_regions_are_no_cause(data: bytes) -> None:
    assert named(merged(table(0, 1, data)), Cause.THREAD_IMBALANCE) is None


def test_a_runtime_without_ompt_is_said() -> None:
    assert "libgomp" in openmp_lines(merged(table(0, 1, extension(openmp=(0, 0, 0)))))[0]
    assert openmp_lines(merged(table(0, 1, extension()))) == []


def test_page_faults_are_named_where_most_pauses_are_faults() -> None:
    profile = merged(table(0, 1, b"", cpu_s=4.0, voluntary=5200, major=5000))
    found = named(profile, Cause.PAGING)
    assert found is not None and found.share == pytest.approx(0.6) and found.rank == 0
    assert "5000 pages were read" in " ".join(memory_lines(profile))


@pytest.mark.parametrize(
    "counts",
    [
        {"voluntary": 50_000, "major": 5000},  # most pauses are of another kind
        {"voluntary": 110, "major": 100},  # 60 ms each: no device takes so long
        {"voluntary": 50, "major": 50},
    ],
)
def test_other_pauses_are_no_page_faults(counts: dict[str, int]) -> None:
    assert named(merged(table(0, 1, b"", cpu_s=4.0, **counts)), Cause.PAGING) is None


def test_a_rank_with_far_more_memory_is_said() -> None:
    uneven = [table(k, 4, b"", resident_B=(8 << 30) if k == 2 else 1 << 30) for k in range(4)]
    assert memory_lines(merged(*uneven))[0].startswith("rank 2 had up to 8 GiB of memory, the median")
    even = [table(k, 4, b"", resident_B=1 << 30) for k in range(4)]
    assert memory_lines(merged(*even)) == ["up to 1 GiB of memory in a rank"]


def everything() -> Profile:
    counters = [(kind, 0, 10**9, 10 * S, 10 * S) for kind in (1, 2, 3)] + [(10, ENOENT, 0, 0, 0)]
    regions = [(0, "<script>alert(1)</script>", 1, 1, S, 0, S), (1, "\x1b[31mred\n", 1, 0, S, 0, S)]
    parts = {"openmp": (1, 2, 4 * S), "parallel": [(0x10200, 9, 2, 4 * S, 18, 5 * S, 4 * S, 8 * S, 18, S)]}
    data = extension(counters=counters, regions=regions, faults=(1, 1, 1, 1, 1, S, 0), **parts)
    return merged(table(0, 2, data, major=3), table(1, 2, b""))


def test_the_document_is_valid_and_the_page_and_text_are_clean() -> None:
    profile = everything()
    document = profile_document(profile, 0)
    check(document, "profile-1")
    rank, other = document["per_rank"]
    assert rank["counters"]["flops"] is None and rank["openmp"]["lost"] == 2 and other["counters"] is None
    assert [one["path"][0] for one in document["regions"]] == ["<script>alert(1)</script>"] * 2
    html = profile_page([profile])
    for title in ("Regions of the program", "OpenMP", "CPU time and memory"):
        assert title in html
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html
    assert "\x1b[31m" not in profile_text(profile)


def test_what_is_missing_is_null_in_parquet(tmp_path) -> None:
    files = {path.stem: str(path) for path in write_parquet(everything(), tmp_path)}
    query = "SELECT rank, cycles, flops, major_faults, openmp_wait_s FROM read_parquet(?) ORDER BY rank"
    assert duckdb.sql(query, params=[files["per_rank"]]).fetchall() == [
        (0, 1e9, None, 3, 4.0),
        (1, None, None, 0, None),
    ]
    rows = duckdb.sql("SELECT count, wall_s, unended FROM read_parquet(?)", params=[files["regions"]]).fetchall()
    assert sorted(rows) == [(1, 1.0, 0), (1, 1.0, 1)]


WAITS = bytes.fromhex("8b05ce2d000039c274f6")
"""mov flag(%rip),%eax; cmp %eax,%edx; je: back to the first."""


def test_a_rank_that_waits_in_a_loop_of_the_program_does_not_compute() -> None:
    def spots(begin: int) -> list[tuple[int, int, bytes]]:
        def around(at: int) -> bytes:
            return b"\xcc" * (64 - at) + WAITS + b"\xcc" * (64 - len(WAITS) + at)

        return [(begin + at, samples, around(at)) for at, samples in ((6, 900), (8, 248))]

    in_program = extension(code=(1900, spots(0x10100), ()))
    found = named(merged(table(0, 2, extension()), table(1, 2, in_program)), Cause.WAITING_LOOP)
    assert found is not None and found.rank == 1 and found.site is not None
    assert found.value(Signal.LOOP_TIME) == pytest.approx(1148 * 5.27e-3)
    assert (found.site.module, found.site.offset) == ("/opt/app", 0x106)
    elsewhere = extension(code=(1900, spots(0x90100), ()))  # such as a library of MPI
    assert named(merged(table(0, 2, extension()), table(1, 2, elsewhere)), Cause.WAITING_LOOP) is None
