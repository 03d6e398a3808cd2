"""The place of a cause under `seatrial profile`: lines of Python, functions that were looked up, callers of a library
that calls MPI for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from causes.case import Bench, Case, Said, Skip, planted
from causes.libraries import LIBRARIES, Library

NO_LOSS = frozenset({"computation", "startup", "message-rate", "latency"})
"""What may be said besides of a short program."""

_COMPUTE = """
import sys, time
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(5000))  # else most of the time is in the kernel, which reads this clock
"""
_MPI4PY = (
    _COMPUTE
    + """
from mpi4py import MPI
import numpy
def exchange():
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, numbers)
numbers = numpy.zeros(4)
uneven = sys.argv[1] == "uneven"
for _ in range(int(float(sys.argv[2]) / 0.02)):
    compute(0.02 if uneven and MPI.COMM_WORLD.rank == 0 else 0.005)
    exchange()
"""
)
_CTYPES = (
    _COMPUTE
    + """
import ctypes
mpi = ctypes.CDLL(sys.argv[3])
is_open = hasattr(mpi, "ompi_mpi_comm_world")
def handle(name, number):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name))) if is_open else ctypes.c_int(number)
world = handle("ompi_mpi_comm_world", 0x44000000)
mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
for _ in range(int(float(sys.argv[2]) / 0.02)):
    compute(0.02 if sys.argv[1] == "uneven" and rank.value == 0 else 0.005)
    mpi.MPI_Barrier(world)
mpi.MPI_Finalize()
"""
)
_LIBRARY = """
#include <mpi.h>
int solver_reduce(double* value) {
  double sum = 0;
  const int reason = MPI_Allreduce(value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  *value = sum;
  return reason;
}
"""
_PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int solver_reduce(double* value);
static void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end)
    ;
}
__attribute__((noinline)) static void uneven_step(int rank, int is_uneven) {
  double value = 1;
  compute(is_uneven && rank == 0 ? 0.02 : 0.005);
  solver_reduce(&value);
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < atof(argv[2]) / 0.02; i++)
    uneven_step(rank, strcmp(argv[1], "uneven") == 0);
  MPI_Finalize();
  return 0;
}
"""


def _said(bench: Bench, library: Library, words: list[str], options: tuple[str, ...] = ()) -> Said:
    results = str(bench.folder / "results")
    document = bench.seatrial(
        "profile", "--results", results, *options, "--format", "json", "--", *library.launcher(2), *words
    )
    diagnoses = document.get("diagnoses", [])
    return Said(tuple((one["cause"], one["share"]) for one in diagnoses), " ".join(one["said"] for one in diagnoses))


def _script(bench: Bench, text: str) -> str:
    script = bench.folder / "solver.py"
    script.write_text(text)
    return str(script)


def _mpi4py(bench: Bench, library: Library, how: str) -> Said:
    if find_spec("mpi4py") is None:
        raise Skip("needs mpi4py")
    return _said(bench, library, [sys.executable, _script(bench, _MPI4PY), how, str(bench.seconds)])


def _ctypes(bench: Bench, library: Library, how: str) -> Said:
    name = {"Open MPI": "libmpi.so.40", "MPICH": "libmpich.so.12"}[library.name]
    return _said(bench, library, [sys.executable, _script(bench, _CTYPES), how, str(bench.seconds), name])


def _through_library(bench: Bench, library: Library, how: str) -> Said:
    if shutil.which(library.compiler) is None:
        raise Skip(f"{library.name} is missing ({library.compiler} not found)")
    shared, program = bench.folder / "libpetsc_planted.so", bench.folder / "program"
    for path, text in ((shared, _LIBRARY), (program, _PROGRAM)):
        path.with_suffix(".c").write_text(text)
    _compiled(library, shared.with_suffix(".c"), shared, "-shared", "-fPIC")
    _compiled(library, program.with_suffix(".c"), program, str(shared), f"-Wl,-rpath,{bench.folder}")
    return _said(bench, library, [str(program), how, str(bench.seconds)], ("--paths", "4"))


def _compiled(library: Library, source: Path, made: Path, *flags: str) -> None:
    subprocess.run([library.compiler, "-O2", "-g", str(source), "-o", str(made), *flags], check=True)


_KINDS = (
    ("mpi4py", _mpi4py, ("solver.py:",), ("Open MPI",)),
    ("MPI by ctypes", _ctypes, ("solver.py:",), ("Open MPI", "MPICH")),
    ("MPI through a library", _through_library, ("uneven_step", "program.c:"), ("Open MPI", "MPICH")),
)
CASES = tuple(
    Case(
        "places",
        f"{name}: {'one rank computes longer' if how == 'uneven' else 'even work'}",
        lambda bench, say=say, library=library, how=how: say(bench, library, how),
        right=planted("imbalance") if how == "uneven" else frozenset(),
        words=words if how == "uneven" else (),
        allowed=NO_LOSS,
        variant=library.name,
        needs_cpus=2,
    )
    for name, say, words, libraries in _KINDS
    for library in LIBRARIES
    if library.name in libraries
    for how in ("uneven", "even")
)
