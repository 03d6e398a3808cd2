"""The programs on what this machine is not: other instruction sets, other compilers, another architecture.

They are compiled as the lab does, with all warnings as errors; those for AArch64 are also run, under an emulator. Their
times mean nothing there, but every value that a program computes must hold as it does on a real processor.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.environments.build import NATIVE_HEADERS, embedding
from seatrial.environments.compiler import find_compilers
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark import Benchmark, Native
from seatrial.model.protocol import parse_record
from seatrial.plan.points import plan_points

pytestmark = pytest.mark.real

BENCHMARKS = [benchmark for benchmark in registry().values() if isinstance(benchmark.program, Native)]
BY_SOURCE = {benchmark.program.source: benchmark for benchmark in BENCHMARKS}  # several may be one program
OF_MPI = [benchmark for benchmark in BY_SOURCE.values() if benchmark.ranks == "mpi"]
OF_DEVICES = [b for b in BY_SOURCE.values() if b.ranks != "mpi" and b.program.library == "gpu"]
OF_ONE_PROCESS = [b for b in BY_SOURCE.values() if b.ranks != "mpi" and b.program.library != "gpu"]
STRICT = ("-std=c++20", "-O3", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(NATIVE_HEADERS))
CROSS_COMPILER = ("aarch64-linux-gnu-g++", "apt install g++-aarch64-linux-gnu")
EMULATOR = ("qemu-aarch64", "apt install qemu-user")


def make(*commands: Sequence[str]) -> None:
    """They run side by side."""
    running = [
        subprocess.Popen(list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    said = [process.communicate()[0] for process in running]
    assert all(process.returncode == 0 for process in running), "".join(said)


def compiles(benchmark: Benchmark, level: str, flags: Sequence[str], folder: Path) -> None:
    compilers = find_compilers()
    if not compilers:
        pytest.skip("needs a C++20 compiler (apt install g++ clang)")
    words = (*STRICT, *flags, f"-march={level}", "-c", str(benchmark.program.source))
    make(*((*each.command, *words, "-o", str(folder / f"{index}.o")) for index, each in enumerate(compilers)))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs compilers that build for x86-64")
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("benchmark", OF_ONE_PROCESS, ids=lambda benchmark: benchmark.name)
def test_every_level_of_x86_64_compiles_without_a_warning(benchmark: Benchmark, level: str, tmp_path: Path) -> None:
    compiles(benchmark, level, (), tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs compilers that build for x86-64")
@pytest.mark.parametrize("benchmark", OF_MPI, ids=lambda benchmark: benchmark.name)
def test_what_passes_messages_compiles_without_a_warning(benchmark: Benchmark, tmp_path: Path) -> None:
    """For one level and one library: no vector type is in them, and other tests build them for every library."""
    mpis = find_mpis()
    if not mpis:
        pytest.skip("needs an MPI library (apt install libopenmpi-dev libmpich-dev)")
    compiles(benchmark, "x86-64", mpis[0].compile_flags, tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs compilers that build for x86-64")
@pytest.mark.parametrize("benchmark", OF_DEVICES, ids=lambda benchmark: benchmark.name)
def test_what_drives_devices_compiles_without_a_warning(benchmark: Benchmark, tmp_path: Path) -> None:
    """For one level: the kernels are compiled by others (test_gpu_programs.py)."""
    compiles(benchmark, "x86-64", embedding(benchmark.program.source), tmp_path)


@pytest.mark.parametrize("benchmark", OF_ONE_PROCESS, ids=lambda benchmark: benchmark.name)
def test_aarch64(benchmark: Benchmark, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    program = tmp_path / benchmark.program.source.stem
    # Static: the emulator then needs no loader and no libraries of the other architecture.
    make((need(*CROSS_COMPILER), *STRICT, "-static", str(benchmark.program.source), "-o", str(program)))
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
