"""The programs on what this machine is not: other instruction sets, other compilers, another architecture.

They are compiled as the lab does, with all warnings as errors; those for AArch64 are also run, under an emulator. Their
times mean nothing there, but every value that a program computes must hold as it does on a real processor.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import pytest
from benchmarks.made_up_blas import made_up_blas
from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.benchmarks.cpu.gemm import BENCHMARK as GEMM
from seatrial.environments.asking import Started, ask, side_by_side
from seatrial.environments.build import NATIVE_HEADERS, build, embedding
from seatrial.environments.cached_files import building_folder
from seatrial.environments.chosen import chosen_environment
from seatrial.environments.compiled import Unit, units_of
from seatrial.environments.compiler import Compiler, find_compilers
from seatrial.environments.mpi import find_mpis
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import Benchmark, Native
from seatrial.model.benchmark.power import is_of_power
from seatrial.model.benchmark.program import parse_record
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.places.containers.tiny_root import STATUS
from seatrial.places.containers.trial import write_started
from seatrial.plan.points import plan_points

pytestmark = [pytest.mark.real, pytest.mark.portability]

BENCHMARKS = [benchmark for benchmark in registry().values() if isinstance(benchmark.program, Native)]
BY_SOURCE = {benchmark.program.source: benchmark for benchmark in BENCHMARKS}  # several may be one program
OF_ONE_PROCESS = [b for b in BY_SOURCE.values() if b.ranks != "mpi" and b.program.library is None]
HELPERS = [NATIVE_HEADERS / "launch" / f"{name}.cpp" for name in ("keep", "place", "share")]
UNITS = {unit.source: unit for source in (*BY_SOURCE, *HELPERS) for unit in units_of(source, NATIVE_HEADERS)}
"""Every source that is compiled by itself: those of programs, and the parts that they share."""
LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4")
STRICT = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(NATIVE_HEADERS))
STAGES = {"gcc": ("-O3", "-c"), "clang": ("-fsyntax-only",)}
"""How far a source is compiled to be sure of it: GCC warns from its optimiser too, clang before it."""
NO_MPI = "needs an MPI library (apt install libopenmpi-dev libmpich-dev)"
HEADERS = ("algorithm", "functional", "memory", "mutex", "random", "ranges", "sstream", "string", "thread", "vector")
CROSS_COMPILER = ("aarch64-linux-gnu-g++", "apt install g++-aarch64-linux-gnu")
EMULATOR = ("qemu-aarch64", "apt install qemu-user")


def make(*commands: Sequence[str]) -> None:
    """They run side by side."""
    side_by_side(partial(run_one, command) for command in commands)


def run_one(command: Sequence[str], started: Started) -> None:
    try:
        ask(command, started=started)
    except BuildError as problem:
        raise AssertionError(problem.output or str(problem)) from problem


def named(unit: Unit) -> str:
    return str(unit.source.relative_to(NATIVE_HEADERS.parent))


def has_vectors(unit: Unit) -> bool:
    """Whether it has code for one instruction set or another."""
    return any(name == "native/vector.hpp" for name, _ in unit.digests)


def lab_builds() -> list[tuple[Path, str | None]]:
    """What the lab compiles on this machine: each program, those of many ranks with each MPI library."""
    with_mpi = {source for source, benchmark in BY_SOURCE.items() if benchmark.ranks == "mpi"}
    mpis = [mpi.name for mpi in find_mpis()]
    return [(source, mpi) for source in (*BY_SOURCE, *HELPERS) for mpi in (mpis if source in with_mpi else [None])]


@pytest.mark.parametrize(("source", "mpi"), [pytest.param(*one, id=f"{one[0].stem}-{one[1]}") for one in lab_builds()])
def test_the_lab_builds_it_without_a_warning(
    source: Path, mpi: str | None, live_machine: Machine, program_cache: Path
) -> None:
    """Every source of the program, as all other tests build it: with GCC the optimiser sees what it warns of."""
    build(chosen_environment(EnvironmentChoice(mpi=mpi), live_machine, with_mpi=mpi is not None), source)
    kept = [json.loads(path.read_bytes()) for path in program_cache.glob("objects/*/build.json")]
    for unit in units_of(source, NATIVE_HEADERS):
        said = [made["warnings"] for made in kept if made["command"][-1] == str(unit.source)]
        assert said and not any(said), said


def levels(unit: Unit) -> list[tuple[str, bool]]:
    """What it is compiled for, and whether always: where it has code for one instruction set or another, all; else the
    lowest."""
    return [(level, has_vectors(unit) or level == LEVELS[0]) for level in LEVELS]


COMPILED = [
    pytest.param(
        unit,
        level,
        compiler,
        marks=() if is_always else pytest.mark.exhaustive,
        id=f"{named(unit)}-{level}-{compiler}",
    )
    for unit in UNITS.values()
    for compiler in STAGES
    for level, is_always in levels(unit)
]


@pytest.fixture(scope="session")
def read_before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Compiler, str], Sequence[str]]:
    """What spares clang half of its work: the standard library's headers, read already. GCC finds those that a source
    forgets to name."""
    folder = tmp_path_factory.mktemp("headers")

    @cache
    def get(clang: Compiler, level: str) -> Sequence[str]:
        text = folder / "standard.hpp"
        text.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
        read = str(folder / f"{level}.pch")
        make((*clang.command, *STRICT, f"-march={level}", "-x", "c++-header", str(text), "-o", read))
        return "-include-pch", read

    return get


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs compilers that build for x86-64")
@pytest.mark.parametrize(("unit", "level", "compiler"), COMPILED)
def test_it_compiles_without_a_warning(
    unit: Unit, level: str, compiler: str, tmp_path: Path, read_before: Callable[[Compiler, str], Sequence[str]]
) -> None:
    """For every level of x86-64 where there is code for one or another. What passes messages is compiled with one
    library: other tests build it with every one."""
    found = next((each for each in find_compilers() if each.family == compiler), None)
    if found is None:
        pytest.skip(f"needs {compiler} for C++20 (apt install g++ clang)")
    mpis = find_mpis()
    if unit.needs_mpi and not mpis:
        pytest.skip(NO_MPI)
    mpi = mpis[0].compile_flags if unit.needs_mpi else ()
    stage = ("-O0", "-c") if compiler == "clang" and has_vectors(unit) else STAGES[compiler]
    if compiler == "gcc" and not has_vectors(unit):
        stage = ("-fsyntax-only", "-O1")  # the lab's own build optimises it, but with the standard headers read already
    stage = (*stage, *read_before(found, level)) if compiler == "clang" and stage == ("-fsyntax-only",) else stage
    words = (*STRICT, *stage, *embedding(unit), *mpi, f"-march={level}", str(unit.source))
    make((*found.command, *words, "-o", str(tmp_path / "made.o")))


@pytest.fixture(scope="session")
def parts_for_aarch64(program_cache: Path) -> Callable[[Path], list[str]]:
    """The objects of the parts of a program, each made once for all workers."""

    def made(part: Path) -> str:
        home = program_cache / "aarch64" / part.stem
        with building_folder(home) as private:
            if not home.exists():
                make((CROSS_COMPILER[0], *STRICT, "-O2", "-c", str(part), "-o", str(private / "part.o")))
                private.rename(home)
        return str(home / "part.o")

    return lambda source: [made(unit.source) for unit in units_of(source, NATIVE_HEADERS)[1:]]


@pytest.mark.parametrize("benchmark", OF_ONE_PROCESS, ids=lambda benchmark: benchmark.name)
def test_aarch64(
    benchmark: Benchmark,
    tmp_path: Path,
    need: Callable[[str, str], str],
    parts_for_aarch64: Callable[[Path], list[str]],
) -> None:
    program, source = tmp_path / benchmark.program.source.stem, benchmark.program.source
    compiler = need(*CROSS_COMPILER)
    # Static: the emulator then needs no loader and no libraries of the other architecture.
    make((compiler, *STRICT, "-O3", "-static", str(source), *parts_for_aarch64(source), "-o", str(program)))
    if shutil.which(EMULATOR[0]) is None:
        pytest.skip(f"it compiles; to run it needs {EMULATOR[0]} ({EMULATOR[1]})")

    machine = made_up_machine(cores=2, l3_bytes=1 << 18)
    (point,) = plan_points([benchmark.name], {}, machine)
    own = [*benchmark.program.arguments(point.parameters), "--slice", "0.01"]
    first = own.index("--slice")  # the declaration's own, for which an emulator is too slow
    del own[first : first + 2]
    if benchmark.program.starts_containers:  # this machine's program in place of a runtime
        write_started(tmp_path)
        started = str(tmp_path / "started")
        own += ["--words", "1", "--word-0", started, "--bare", started, "--expect", str(STATUS)]
    cpus = ",".join(map(str, point.cpus))
    make((EMULATOR[0], str(program), "--record", str(tmp_path), "--cpus", cpus, *own))

    record = parse_record((tmp_path / "rank-000000.jsonl").read_bytes())
    assert record.ended and record.skip is None and record.hello is not None
    assert "asimd" in record.hello.isa
    assert record.hello.cpus == tuple((cpu,) for cpu in point.cpus)
    own_series = {figure.series for figure in benchmark.figures if not is_of_power(figure)}
    missing = own_series - {sample.series for sample in record.samples}
    assert missing <= {"memory"}  # unknown of a program that needs less than the measuring process
    for check in benchmark.checks:
        if check.derive is None:
            low, high = check.bound(machine, point.parameters)
            value = record.checks[check.name]
            assert value is not None and low <= value <= high, (check.name, value)


def test_aarch64_with_a_library(
    tmp_path: Path, need: Callable[[str, str], str], parts_for_aarch64: Callable[[Path], list[str]]
) -> None:
    """Of that architecture too, which the program loads; so this one is not static."""
    compiler, emulator = need(*CROSS_COMPILER), need(*EMULATOR)
    system = Path("/usr/aarch64-linux-gnu")
    if not system.is_dir():
        pytest.skip("needs the AArch64 C library (apt install libc6-dev-arm64-cross)")
    program, source = tmp_path / "gemm", GEMM.program.source
    make((compiler, *STRICT, "-O2", str(source), *parts_for_aarch64(source), "-o", str(program)))
    library = made_up_blas(tmp_path, compiler=(compiler,))
    command = [emulator, "-L", str(system), str(program), "--record", str(tmp_path), "--cpus", "0"]
    command += ["--blas", str(library), "--n", "64", "--slice", "0"]
    subprocess.run(command, check=True, env={**os.environ, "LD_LIBRARY_PATH": ""})
    record = parse_record((tmp_path / "rank-000000.jsonl").read_bytes())
    assert record.ended and record.skip is None and len(record.samples) == 3
    for name in ("row_error", "element_error"):
        value = record.checks[name]
        assert value is not None and value < 0.5
