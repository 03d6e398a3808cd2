"""The MPI libraries that MPI programs are planted with, and the programs built with each."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from causes.case import Skip


@dataclass(frozen=True)
class Library:
    """An MPI library: its compiler, and its launcher for a number of ranks."""

    name: str
    compiler: str
    launcher: Callable[[int], list[str]]


LIBRARIES = (
    Library(
        "Open MPI",
        "mpicc.openmpi",
        lambda ranks: ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)],
    ),
    Library("MPICH", "mpicc.mpich", lambda ranks: ["mpiexec.mpich", "-n", str(ranks)]),
)


@functools.cache
def _builds() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="seatrial-diagnosis-")


@functools.cache
def built(library: Library, source: Path, *flags: str, compiler: str = "") -> Path:
    """The program of a source with a library, with debug information; removed when the script ends. `compiler` is the
    one that the library's own calls instead of its usual one. Raises Skip."""
    if shutil.which(library.compiler) is None:
        raise Skip(f"{library.name} is missing ({library.compiler} not found)")
    if compiler and shutil.which(compiler) is None:
        raise Skip(f"{compiler} not found")
    program = Path(_builds().name) / f"{source.stem}-{library.compiler}"
    variables = {**os.environ, **({"OMPI_CC": compiler, "MPICH_CC": compiler} if compiler else {})}
    command = [library.compiler, "-O2", "-g", "-w", *flags, str(source), "-o", str(program), "-lm", "-lpthread"]
    if subprocess.run(command, env=variables, capture_output=True, check=False).returncode != 0:
        raise Skip(f"{' '.join(command)} failed")
    return program
