"""Programs that load MPI themselves and look its functions up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, Seen, profiler, seen

from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.run import profiler_variables, read_note, why_nothing

pytestmark = [pytest.mark.real, pytest.mark.parallel]

LOADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

/* By the header of the library, but without being linked to it. */
int main(int argc, char** argv) {
  const char* how = argv[1];
  const int global = strcmp(how, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  void* mpi = strcmp(how, "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, argv[argc - 1], RTLD_NOW)
                                          : dlopen(argv[argc - 1], RTLD_NOW | global);
  if (mpi == NULL)
    return 2;
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(mpi, "MPI_Init");
  int (*finalize)(void) = (int (*)(void))dlsym(mpi, "MPI_Finalize");
  int (*barrier)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(mpi, "PMPI_Barrier");
  if (dlsym(mpi, "MPI_Nothing") != NULL || dlerror() == NULL || dlerror() != NULL)
    return 4;
#ifdef OPEN_MPI
  MPI_Comm world = (MPI_Comm)dlsym(mpi, "ompi_mpi_comm_world");
#else
  MPI_Comm world = MPI_COMM_WORLD;
#endif
  init(NULL, NULL);
  for (int i = 0; i < 7; i++)
    barrier(world);
  finalize();
  /* Names of no MPI: what the loader says of a caller in this program. */
  void* next = dlsym(RTLD_NEXT, "getenv");
  return next != NULL && next == dlsym(RTLD_DEFAULT, "getenv") ? 0 : 5;
}
"""


def started(mpi: Mpi, tables: Path, command: list[str]) -> int:
    tables.mkdir()
    around = {**os.environ, **ROOT_MAY, **dict(mpi.variables)}
    around |= profiler_variables(profiler(), tables, around)
    return subprocess.run(command, env=around, check=False, timeout=60).returncode


def loader(mpi: Mpi, folder: Path) -> Path:
    source = folder / "loads_mpi.c"
    source.write_text(LOADER)
    compiler = shutil.which("cc") or "gcc"
    program = folder / "loads_mpi"
    subprocess.run([compiler, *mpi.compile_flags, str(source), "-o", str(program), "-ldl"], check=True)
    return program


@pytest.mark.parametrize("how", ["local", "global"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_functions_that_are_looked_up_are_counted(name: str, how: str, tmp_path: Path) -> None:
    mpi, tables = library(name), tmp_path / "tables"
    assert started(mpi, tables, [str(loader(mpi, tmp_path)), how, str(mpi.library)]) == 0
    (one,) = map(seen, tables.glob("*.mpi"))
    assert one.calls["MPI_Barrier"] == (7, 0) and one.calls["MPI_Init"] == one.calls["MPI_Finalize"] == (1, 0)


def test_mpi_in_another_namespace_is_named_as_not_profiled(tmp_path: Path) -> None:
    """MPICH: Open MPI cannot run in one."""
    mpi, tables = library("mpich"), tmp_path / "tables"
    assert started(mpi, tables, [str(loader(mpi, tmp_path)), "dlmopen", str(mpi.library)]) == 0
    assert not list(tables.glob("*.mpi"))
    said = read_note(tables)
    assert said is not None and "dlmopen" in said and str(mpi.library) in said
    assert why_nothing(["true"], os.environ, tables) == said


IN_A_PLUGIN = """
#include <mpi.h>
void communicate(void) {
  MPI_Init(0, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
"""
DEEP = """
#define _GNU_SOURCE
#include <dlfcn.h>
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
  void (*communicate)(void) = (void (*)(void))dlsym(plugin, "communicate");
  communicate();
  return 0;
}
"""


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_plugin_that_excludes_preloaded_libraries_is_named_as_not_profiled(name: str, tmp_path: Path) -> None:
    mpi, tables = library(name), tmp_path / "tables"
    compiler = shutil.which("cc") or "gcc"
    for file, text in (("plugin.c", IN_A_PLUGIN), ("deep.c", DEEP)):
        (tmp_path / file).write_text(text)
    flags = ["-shared", "-fPIC", *mpi.compile_flags, str(tmp_path / "plugin.c"), *mpi.link_flags]
    subprocess.run([compiler, *flags, "-o", str(tmp_path / "plugin.so")], check=True)
    subprocess.run([compiler, str(tmp_path / "deep.c"), "-o", str(tmp_path / "deep"), "-ldl"], check=True)
    assert started(mpi, tables, [str(tmp_path / "deep"), str(tmp_path / "plugin.so")]) == 0
    assert not list(tables.glob("*.mpi"))
    said = read_note(tables)
    assert said is not None and "RTLD_DEEPBIND" in said and "plugin.so" in said


def test_a_note_that_was_not_written_by_the_profiler_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "node.note").write_bytes(b"\xff\x00 evil" * 1000)
    assert read_note(tmp_path) is None


CTYPES = """
import ctypes, sys
mpi = ctypes.CDLL(sys.argv[1])
world = ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")) if sys.argv[2] == "openmpi" else 0x44000000
mpi.MPI_Init(None, None)
for _ in range(5):
    mpi.MPI_Barrier(ctypes.c_void_p(world) if sys.argv[2] == "openmpi" else ctypes.c_int(world))
mpi.MPI_Finalize()
"""
CFFI = """
import cffi, sys
ffi = cffi.FFI()
ffi.cdef("int MPI_Init(void*, void*); int MPI_Finalize(void); int MPI_Barrier(intptr_t);")
mpi = ffi.dlopen(sys.argv[1])
if sys.argv[2] == "openmpi":
    ffi.cdef("extern char ompi_mpi_comm_world;")
    world = int(ffi.cast("intptr_t", ffi.addressof(mpi, "ompi_mpi_comm_world")))
else:
    world = 0x44000000
mpi.MPI_Init(ffi.NULL, ffi.NULL)
for _ in range(5):
    mpi.MPI_Barrier(world)
mpi.MPI_Finalize()
"""


def of_python(name: str, text: str, tmp_path: Path) -> Seen:
    mpi, tables, script = library(name), tmp_path / "tables", tmp_path / "script.py"
    script.write_text(text)
    assert started(mpi, tables, [sys.executable, str(script), str(mpi.library), name]) == 0
    (one,) = map(seen, tables.glob("*.mpi"))
    return one


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_ctypes(name: str, tmp_path: Path) -> None:
    one = of_python(name, CTYPES, tmp_path)
    assert one.calls["MPI_Barrier"] == (5, 0) and one.calls["MPI_Finalize"] == (1, 0)


@pytest.mark.skipif(find_spec("cffi") is None, reason="needs cffi")
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_cffi(name: str, tmp_path: Path) -> None:
    one = of_python(name, CFFI, tmp_path)
    assert one.calls["MPI_Barrier"] == (5, 0) and one.calls["MPI_Finalize"] == (1, 0)
