"""The MPI libraries that MPI programs are planted with, and the programs built with each."""

from __future__ import annotations

import functools
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
def built(library: Library, source: Path) -> Path:
    """The program of a source with a library, with debug information; removed when the script ends. Raises Skip."""
    if shutil.which(library.compiler) is None:
        raise Skip(f"{library.name} is missing ({library.compiler} not found)")
    program = Path(_builds().name) / f"{source.stem}-{library.compiler}"
    subprocess.run(
        [library.compiler, "-O2", "-g", "-w", str(source), "-o", str(program), "-lm", "-lpthread"], check=True
    )
    return program
