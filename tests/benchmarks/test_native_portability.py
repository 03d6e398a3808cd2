"""The programs on what this machine is not: other instruction sets, other compilers, another architecture.

They are compiled as the lab does, with all warnings as errors; those for AArch64 are also run, under an emulator. Their
times mean nothing there, but every value that a program computes must hold as it does on a real processor.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.environments.build import NATIVE_HEADERS, embedding
from seatrial.environments.compiler import Started, ask, find_compilers, side_by_side
from seatrial.environments.mpi import find_mpis
from seatrial.environments.native_sources import Unit, units_of
from seatrial.errors import BuildError
from seatrial.model.benchmark import Benchmark, Native
from seatrial.model.protocol import parse_record
from seatrial.plan.points import plan_points

pytestmark = pytest.mark.real

BENCHMARKS = [benchmark for benchmark in registry().values() if isinstance(benchmark.program, Native)]
BY_SOURCE = {benchmark.program.source: benchmark for benchmark in BENCHMARKS}  # several may be one program
OF_ONE_PROCESS = [b for b in BY_SOURCE.values() if b.ranks != "mpi" and b.program.library != "gpu"]
HELPERS = [NATIVE_HEADERS / "launch" / f"{name}.cpp" for name in ("keep", "place")]
UNITS = {unit.source: unit for source in (*BY_SOURCE, *HELPERS) for unit in units_of(source, NATIVE_HEADERS)}
"""Every source that is compiled by itself: those of programs, and the parts that they share."""
LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4")
STRICT = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(NATIVE_HEADERS))
OPTIMISED = {"gcc": "-O3", "clang": "-O0"}
"""As the lab does where warnings follow from the optimiser (GCC's); clang's are said before it."""
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


COMPILED = [
    pytest.param(
        unit,
        level,
        compiler,
        marks=() if level == LEVELS[0] or has_vectors(unit) else pytest.mark.exhaustive,
        id=f"{named(unit)}-{level}-{compiler}",
    )
    for unit in UNITS.values()
    for level in LEVELS
    for compiler in OPTIMISED
]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs compilers that build for x86-64")
@pytest.mark.parametrize(("unit", "level", "compiler"), COMPILED)
def test_it_compiles_without_a_warning(unit: Unit, level: str, compiler: str, tmp_path: Path) -> None:
    """For every level of x86-64 where there is code for one or another. What passes messages is compiled with one
    library: other tests build it with every one."""
    found = next((each for each in find_compilers() if each.family == compiler), None)
    if found is None:
        pytest.skip(f"needs {compiler} for C++20 (apt install g++ clang)")
    mpis = find_mpis()
    if unit.needs_mpi and not mpis:
        pytest.skip("needs an MPI library (apt install libopenmpi-dev libmpich-dev)")
    mpi = mpis[0].compile_flags if unit.needs_mpi else ()
    words = (*STRICT, OPTIMISED[compiler], *embedding(unit), *mpi, f"-march={level}", "-c", str(unit.source))
    make((*found.command, *words, "-o", str(tmp_path / "made.o")))


@pytest.fixture(scope="session")
def parts_for_aarch64(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[str]]:
    """The objects of the parts of a program, each made once."""
    folder = tmp_path_factory.mktemp("aarch64")

    def get(source: Path) -> list[str]:
        made = {unit.source: folder / f"{unit.source.stem}.o" for unit in units_of(source, NATIVE_HEADERS)[1:]}
        missing = {part: place for part, place in made.items() if not place.exists()}
        make(*((CROSS_COMPILER[0], *STRICT, "-O2", "-c", str(a), "-o", str(b)) for a, b in missing.items()))
        return [str(place) for place in made.values()]

    return get


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
    if benchmark.program.library is not None:
        return  # it needs a library of the other architecture: test_gemm_real.py runs it with one
    if shutil.which(EMULATOR[0]) is None:
        pytest.skip(f"it compiles; to run it needs {EMULATOR[0]} ({EMULATOR[1]})")

    machine = made_up_machine(cores=2, l3_bytes=1 << 18)
    (point,) = plan_points([benchmark.name], {}, machine)
    own = [*benchmark.program.arguments(point.parameters), "--slice", "0.01"]
    first = own.index("--slice")  # the declaration's own, for which an emulator is too slow
    del own[first : first + 2]
    cpus = ",".join(map(str, point.cpus))
    make((EMULATOR[0], str(program), "--record", str(tmp_path), "--cpus", cpus, *own))

    record = parse_record((tmp_path / "rank-000000.jsonl").read_bytes())
    assert record.ended and record.skip is None and record.hello is not None
    assert "asimd" in record.hello.isa
    assert record.hello.cpus == tuple((cpu,) for cpu in point.cpus)
    assert {figure.series for figure in benchmark.figures} == {sample.series for sample in record.samples}
    for check in benchmark.checks:
        if check.derive is None:
            low, high = check.bound(machine, point.parameters)
            value = record.checks[check.name]
            assert value is not None and low <= value <= high, (check.name, value)
