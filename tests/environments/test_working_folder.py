"""Files of the working folder take no part in builds and probes, whatever their names, and wherever an empty or
relative entry of a search path leads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.environments import compiler as compilers
from seatrial.environments.asking import ask
from seatrial.environments.build import NATIVE_HEADERS, _Object
from seatrial.environments.chosen import native_environment
from seatrial.environments.compiled import units_of
from seatrial.environments.compiler import first_compiler
from seatrial.environments.installed import _modules_of
from seatrial.environments.loader import library_files
from seatrial.environments.mpi import discover_mpis
from seatrial.launch.allocation import leaf_switches
from seatrial.machine.live import discover_live, survey_tools
from seatrial.processes.working_folder import on_path, without_working_folder

pytestmark = pytest.mark.real

_PROGRAMS = ("g++", "c++", "cc", "as", "ld", "mpicc", "mpirun", "lstopo", "lstopo-no-graphics", "nvidia-smi",
             "ldconfig", "opainfo", "addr2line", "srun", "spack", "python3", "qemu-system-x86_64")  # fmt: skip
_HEADERS = (
    "version",
    "cstddef",
    "vector",
    "mpi.h",
    "stdio.h",
    "string",
    "atomic",
    "string_view",
    "cstdio",
    "program.hpp",
)
_MODULES = ("json", "numpy", "importlib/__init__", "platform", "ctypes", "sitecustomize", "struct", "typer", "msgspec",
            "logging/__init__")  # fmt: skip
_LIBRARIES = ("libstdc++.so.6", "libmpi.so.40", "libopenblas.so.0", "libblas.so.3", "libhwloc.so.15", "libgcc_s.so.1")
_SEARCHED = ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "LD_LIBRARY_PATH",
             "PYTHONPATH", "PATH")  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder: each file in it leaves `seen/NAME`, or breaks who reads it."""
    folder, seen = tmp_path / "planted", tmp_path / "seen"
    folder.mkdir()
    seen.mkdir()
    for name in _PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\n: >{seen}/{name}\nexit 1\n")
        (folder / name).chmod(0o755)
    for name in _HEADERS:
        (folder / name).write_text(f"#error {name} of the working folder\n")
    for name in _MODULES:
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(seen / path.parent.name)!r} + {path.stem!r}, 'w')\nraise ImportError\n")
    for name in (*_LIBRARIES, "crt1.o", "libc.so", "libm.so"):
        (folder / name).write_text("not a library\n")
    for name in (".gdbinit", "Makefile", "CMakeLists.txt", "mpiexec.conf", "openmpi-mca-params.conf", "topology.xml"):
        (folder / name).write_text("shell : >seen\n")
    for name in _SEARCHED:
        before = os.environ.get(name, "")
        monkeypatch.setenv(name, f":.:{before}" if before else ":.")
    monkeypatch.setenv("LD_PRELOAD", "./libstdc++.so.6")
    monkeypatch.chdir(folder)
    for answers in (compilers._examine, _modules_of):
        answers.cache_clear()
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))  # no answers of other tests
    yield seen
    for answers in (compilers._examine, _modules_of):
        answers.cache_clear()


def test_the_compiler_is_found_and_builds_its_own_files(planted: Path, tmp_path: Path) -> None:
    """The text that a program embeds is that beside its source: the assembler looks where it runs first."""
    home = tmp_path / "source"
    home.mkdir()
    (home / "kernel.cl").write_text("ours")
    Path("kernel.cl").write_text("planted")
    text = (NATIVE_HEADERS / "device/embedded.hpp").read_text().replace("#pragma once\n", "")
    (home / "tiny.cpp").write_text(
        f'{text}\n#include <cstdio>\nSEATRIAL_EMBEDDED_TEXT(kernel, "kernel.cl")\n'
        "int main() { std::string_view text = kernel(); std::fwrite(text.data(), 1, text.size(), stdout); "
        'std::puts("\\n{\\"ev\\":\\"hello\\",\\"v\\":1,\\"program\\":\\"tiny\\",\\"build\\":\\"\\"}"); }\n'
    )
    compiler = first_compiler()
    assert Path(compiler.command[0]).is_absolute() and not compiler.command[0].startswith(str(Path.cwd()))
    environment = replace(native_environment(discover_live(use_hwloc=False)), mpi=None)
    assert environment.compiler == compiler
    (unit,) = units_of(home / "tiny.cpp", NATIVE_HEADERS)
    made = tmp_path / "tiny"
    ask([*_Object.of(environment, unit).command, "-o", f"{made}.o"])
    ask([*compiler.command, f"{made}.o", "-o", str(made)])
    assert ask([str(made)]).stdout.startswith("ours\n")
    assert not list(planted.iterdir())


def test_probes_start_no_program_of_the_folder(planted: Path) -> None:
    discover_live()
    assert survey_tools() == ()
    leaf_switches({**os.environ, "SLURM_JOB_ID": "1"})
    assert not any(str(mpi.library).startswith(str(Path.cwd())) for mpi in discover_mpis().mpis)
    assert not any(path.is_relative_to(Path.cwd()) for path, _ in library_files(_LIBRARIES, (), os.environ))
    assert all(on_path(name) != str(Path(name).absolute()) for name in _PROGRAMS)
    assert not list(planted.iterdir())


def test_an_interpreter_is_asked_for_its_own_modules(planted: Path) -> None:
    assert "" in _modules_of(sys.executable)
    assert not list(planted.iterdir())


def test_seatrial_loads_no_module_of_the_folder(planted: Path) -> None:
    """Started as a module, for which Python searches the working folder first."""
    shutil.rmtree("importlib")  # which Python itself loads before it starts a module, as it does sitecustomize
    Path("sitecustomize.py").unlink()
    package = str(Path(native_environment.__code__.co_filename).parents[2])
    variables = {name: value for name, value in os.environ.items() if name not in (*_SEARCHED, "LD_PRELOAD")}
    command = [sys.executable, "-m", "seatrial", "list", "cpu"]
    for searched in (package, f"{package}::."):
        done = subprocess.run(command, env={**variables, "PYTHONPATH": searched}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert not list(planted.iterdir())


_READS = """
from seatrial.store.reading import LARGE_B, read_in_order
def start():
    return abs
if __name__ == "__main__":
    assert list(read_in_order(start, (), [-1, -2], LARGE_B)) == [1, 2]
"""
_STARTS = """
import os
os.environ["LD_LIBRARY_PATH"] = ":/opt/lib"
from seatrial.processes.start import output_of
assert output_of(["/bin/echo", "x"], os.environ, 60.0).stdout == b"x\\n"
"""


@pytest.mark.parametrize("text", [_READS, _STARTS], ids=["readers of large folders", "the guard"])
def test_processes_of_seatrial_load_nothing_of_the_folder(planted: Path, tmp_path: Path, text: str) -> None:
    """Those that are not started by the guard, and the guard itself."""
    Path("multiprocessing").mkdir()
    for name in ("multiprocessing/__init__.py", "signal.py", "pickle.py"):
        Path(name).write_text(f"open({str(planted / 'module')!r}, 'w')\nraise ImportError\n")
    for name in ("libc.so.6", "libm.so.6"):
        Path(name).write_text("not a library\n")
    script = tmp_path / "script.py"
    script.write_text(text)
    package = str(Path(native_environment.__code__.co_filename).parents[2])
    variables = {name: value for name, value in os.environ.items() if name not in (*_SEARCHED, "LD_PRELOAD")}
    variables |= {"PYTHONPATH": package, "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, str(script)], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(planted.iterdir())


def test_lists_keep_what_is_named_in_full() -> None:
    given = {"LD_LIBRARY_PATH": ":/opt/a/lib;lib:$ORIGIN/b", "CPATH": ".", "PATH": "/usr/bin:/bin", "HOME": "x",
             "LD_PRELOAD": "libm.so.6 ./x.so /opt/y.so", "PYTHONPATH": ""}  # fmt: skip
    assert without_working_folder(given) == {
        "LD_LIBRARY_PATH": "/opt/a/lib:$ORIGIN/b", "PATH": "/usr/bin:/bin", "HOME": "x",
        "LD_PRELOAD": "libm.so.6:/opt/y.so",
    }  # fmt: skip
