"""Regions, hardware counters and OpenMP of real programs of MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import ROOT_MAY, run

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import INCLUDE
from seatrial.profiler.merge.bound import is_start
from seatrial.profiler.profile import Profile
from seatrial.profiler.tables.process_table import read_table
from seatrial.store.cache import cache_folder

pytestmark = pytest.mark.real

HERE = Path(__file__).parent


def compiled(mpi: Mpi, name: str, *flags: str, compiler: str | None = None) -> Path:
    program = cache_folder() / f"{name}-{os.getpid()}-{abs(hash((mpi.build_id, flags)))}"
    command = [compiler] if compiler else list(c_compiler(first_compiler()))
    words = [*command, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", f"-I{INCLUDE}", *flags]
    words += [*mpi.compile_flags, "-pthread", str(HERE / f"{name}.c"), "-o", str(program), *mpi.link_flags]
    subprocess.run(words, check=True)
    return program


def profiled(folder: Path) -> Profile:
    names = function_names()
    (profile,) = profiles([read_table(path, len(names)) for path in sorted(folder.glob("*.mpi"))], names)
    return profile


@pytest.fixture(scope="module", params=FOUR[:2])
def regions(request: pytest.FixtureRequest) -> tuple[Mpi, Path]:
    mpi = library(request.param)
    return mpi, compiled(mpi, "mpi_region_program")


@pytest.mark.parallel
def test_regions_have_their_counts_times_and_waiting(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 2, "nested")
    profile = profiled(tmp_path / "t")
    found = {one.path: one for one in profile.regions}
    assert set(found) == {("step",), ("step", "halo"), ("by name",)}
    assert [one.count for one in found["step", "halo"].per_rank] == [5, 5]
    assert [one.count for one in found["by name",].per_rank] == [2, 2]
    step, halo = found["step",], found["step", "halo"]
    for outer, inner in zip(step.per_rank, halo.per_rank, strict=True):
        assert outer.wall_s > inner.wall_s > inner.mpi_s > 0 and outer.mpi_s > inner.mpi_s
        assert inner.compute_s > 5 * 0.002 and inner.cpu_s < outer.wall_s
        assert 0 <= inner.waiting_s <= outer.waiting_s and not outer.unended
    assert profile.faults.early == 2, "the region before MPI_Init"
    counts = {one.call: one.count for one in profile.calls}
    assert counts["MPI_Allreduce"] == 2 * 16 and counts["MPI_Barrier"] == 2 * 2
    in_mpi = sum(one.time_s for one in profile.calls if one.call in ("MPI_Allreduce", "MPI_Barrier"))
    assert step.mpi_s + found["by name",].mpi_s <= in_mpi * 1.0001
    assert len({one.offset for one in profile.callsites if one.call == "MPI_Allreduce"}) == 1


def test_faults_of_regions_are_counted(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 1, "faulty")
    profile = profiled(tmp_path / "t")
    faults = profile.faults
    # "inner" is ended by "outer", so that its own end has no begin. Of 70 regions 62 have a row besides these two; of
    # the 20 within each other the first has one, and the others find no row.
    assert (faults.unbegun, faults.crossed) == (2, 1)
    assert len(profile.regions) == 64 and faults.lost == 8 + 19
    outer = next(one for one in profile.regions if one.path == ("outer",))
    assert (outer.count, outer.unended) == (3, 1) and outer.mpi_s > 0, "it counts until MPI ends"


def test_recording_stops_and_resumes_and_other_arguments_are_no_names(
    regions: tuple[Mpi, Path], tmp_path: Path
) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 2, "controls")
    profile = profiled(tmp_path / "t")
    counts = {one.call: one.count for one in profile.calls}
    assert counts["MPI_Allreduce"] == 2 * 2 and "MPI_Barrier" not in counts and "MPI_Comm_dup" not in counts
    assert profile.trust.is_complete and profile.regions == ()
    assert profile.faults.stopped_s > 2 * 0.05
    assert all(one.wall_s > 0 for one in profile.per_rank)


@pytest.mark.parallel
def test_a_region_belongs_to_the_thread_that_calls(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 1, "threads")
    found = {one.path: one for one in profiled(tmp_path / "t").regions}
    assert {path: one.count for path, one in found.items()} == {("thread",): 4, ("thread", "inside"): 12}


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pic")])
def test_without_the_profiler_regions_do_nothing(flags: tuple[str, ...], tmp_path: Path) -> None:
    mpi = library(FOUR[0])
    program = compiled(mpi, "mpi_region_program", *flags)
    variables = {**os.environ, **ROOT_MAY, **dict(mpi.variables)}
    subprocess.run([program, "faulty"], check=True, env=variables, timeout=60)
    run(mpi, program, tmp_path / "t", 1, "nested")
    assert {one.path for one in profiled(tmp_path / "t").regions} >= {("step",), ("step", "halo")}


def fake_counters(tmp_path: Path, mode: str) -> Profile:
    mpi = library(FOUR[0])
    fake = tmp_path / "fake_perf.so"
    command = [*c_compiler(first_compiler()), "-D_GNU_SOURCE", "-shared", "-fPIC", str(HERE / "fake_perf.c")]
    subprocess.run([*command, "-o", str(fake)], check=True)
    from profiler.mpi_programs import profiler

    more = {
        "LD_PRELOAD": f"{profiler()}:{fake}",
        "SEATRIAL_PROFILE_COUNTERS": "1",
        "FAKE_PERF": mode,
    }
    run(mpi, compiled(mpi, "mpi_region_program"), tmp_path / "t", 1, "nested", more=more)
    return profiled(tmp_path / "t")


def test_counters_are_read_at_the_begin_and_end_and_scaled(tmp_path: Path) -> None:
    counters = fake_counters(tmp_path, "").per_rank[0].counters
    assert counters is not None and not counters.errors and counters.in_mpi is not None
    # Each reading is 1000 cycles after the one before: two for each call that was counted, one at the end, and one
    # before MPI_Finalize unless that would take too much of the time. One more entry without its exit was seen rarely.
    in_calls = counters.in_mpi.cycles * counters.in_mpi.counted_share
    assert in_calls >= 1000 and round(counters.cycles - 2 * in_calls) in (1000, 2000, 3000)
    assert counters.instructions == 4 * counters.cycles, "the second counted for half of the time"
    assert counters.cache_misses == 6 * counters.cycles and counters.least_share == 0.5


def test_counts_in_mpi_are_told_from_those_outside(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    """With events of the kernel: CPU time as cycles."""
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 1, "nested", more={"SEATRIAL_PROFILE_COUNTERS": "software"})
    profile = profiled(tmp_path / "t")
    (counters,) = (one.counters for one in profile.per_rank)
    assert counters is not None
    if counters.errors:
        pytest.skip(f"perf events cannot be opened here: errno {counters.errors}")
    inside = counters.in_mpi
    assert inside is not None and inside.cycles is not None and counters.cycles is not None
    in_calls_s = sum(one.time_s for one in profile.calls if not is_start(one.call))
    assert inside.mpi_s == pytest.approx(in_calls_s, rel=1e-6) and 0 < inside.counted_share <= 1
    assert 0 < inside.cycles < counters.cycles


def test_cpu_time_is_sampled_over_time(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 1, "nested")
    (cpu,) = (one.cpu for one in profiled(tmp_path / "t").per_rank)
    assert cpu is not None and cpu.slices is not None and cpu.cpu_s is not None and cpu.delay_s is not None
    assert 0 < cpu.slices.span_s <= cpu.wall_s and list(cpu.slices.at_s) == sorted(cpu.slices.at_s)
    assert 0 < cpu.slices.cpu_s[-1] <= cpu.cpu_s and cpu.slices.delay_s[-1] <= cpu.delay_s * 1.0001


@pytest.mark.parametrize("mode", ["denied", "closed"])
def test_counters_that_cannot_be_read_are_missing(mode: str, tmp_path: Path) -> None:
    counters = fake_counters(tmp_path, mode).per_rank[0].counters
    assert counters is not None and not counters.is_any and counters.cycles is None and counters.errors
    assert counters.is_forbidden == (mode == "denied")


def test_without_a_unit_the_program_runs_and_the_reason_is_kept(regions: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = regions
    run(mpi, program, tmp_path / "t", 1, "nested", more={"SEATRIAL_PROFILE_COUNTERS": "1"})
    counters = profiled(tmp_path / "t").per_rank[0].counters
    assert counters is not None and (counters.is_any or counters.errors)


@pytest.fixture(scope="module", params=FOUR[:2])
def openmp(request: pytest.FixtureRequest) -> tuple[Mpi, Path]:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("clang is missing (apt install clang libomp-dev)")
    mpi = library(request.param)
    try:
        return mpi, compiled(mpi, "openmp_program", "-fopenmp", compiler=clang)
    except subprocess.CalledProcessError:
        pytest.skip("clang has no OpenMP (apt install libomp-dev)")


THREADS = {"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "0"}


@pytest.mark.parallel
@pytest.mark.parametrize("how", ["uneven", "even"])
def test_openmp_regions_are_counted_by_place(openmp: tuple[Mpi, Path], how: str, tmp_path: Path) -> None:
    mpi, program = openmp
    run(mpi, program, tmp_path / "t", 1, how, "6", more={"SEATRIAL_PROFILE_OPENMP": "1", **THREADS})
    profile = profiled(tmp_path / "t")
    (rank,) = (one.openmp for one in profile.per_rank)
    assert rank is not None and rank.is_seen and rank.threads == 2 and not rank.lost
    assert sorted((one.count, one.threads) for one in profile.parallel) == [(6, 1), (6, 2), (6, 2)]
    loop = max(profile.parallel, key=lambda one: one.time_s)
    assert 0 < rank.parallel_s <= profile.wall_s and loop.thread_s <= 2 * loop.time_s * 1.0001
    assert sum(one.barrier_s > 0 for one in profile.parallel) == 1, "one of them has a barrier within"
    if how == "uneven":  # the second half of the iterations has three quarters of the work
        assert loop.end_wait_s / loop.thread_s > 0.15


def test_openmp_is_not_recorded_unless_requested(openmp: tuple[Mpi, Path], tmp_path: Path) -> None:
    mpi, program = openmp
    run(mpi, program, tmp_path / "t", 1, "even", "2", more=THREADS)
    profile = profiled(tmp_path / "t")
    assert profile.parallel == () and profile.per_rank[0].openmp is None


def test_the_folder_of_the_header_is_printed() -> None:
    command = [sys.executable, "-m", "seatrial", "profile", "--include"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (Path(printed.strip()) / "seatrial_regions.h").is_file()
