"""The MPI profiler as a library to preload: one for every MPI, built once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seatrial.environments.build import NATIVE_HEADERS
from seatrial.environments.compiler import Compiler
from seatrial.environments.shared_library import build_library
from seatrial.probes.mpi_wrappers import wrapper_text

_SOURCES = NATIVE_HEADERS / "profiler"
_LINK_FLAGS = ("-Wl,--no-as-needed", "-l:libdl.so.2")
"""Before glibc 2.34 dlsym is there, and a program need not have brought it."""


def build_profiler(compiler: Compiler) -> Path:
    """The library, from the cache or built now (about half a minute). Raises BuildError with the compiler's words."""
    return build_library("seatrial-mpi", compiler, sorted(_SOURCES.glob("*.c")), wrapper_text(), _LINK_FLAGS)


def profiler_variables(library: Path, folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """What the environment of a program's ranks gets so that each leaves its table in `folder`: the library comes
    before what is preloaded already."""
    others = variables.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{library}:{others}" if others else str(library),
        "SEATRIAL_PROFILE_DIR": str(folder.absolute()),
    }
