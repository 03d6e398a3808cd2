"""The MPI profiler as a library to preload: built once, for any MPI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seatrial.environments.compiler import Compiler
from seatrial.environments.loader import build_library, build_program
from seatrial.profiler.capture.wrappers import wrapper_texts

_SOURCES = Path(__file__).parents[1] / "native"
INCLUDE = Path(__file__).parents[1] / "include"
"""The folder of the header that programs include."""
SHARED_SOURCES = ("io.c", "sparse_copy.c")
"""Compiled into both the library and the collector."""
_LINK_FLAGS = ("-Wl,--no-as-needed", "-l:libdl.so.2")
"""Before glibc 2.34 dlsym is in libdl, which the program may not have loaded."""


def build_profiler(compiler: Compiler | None) -> Path:
    """The library, from the cache or built now (some seconds). Raises BuildError with the compiler's message."""
    return build_library("seatrial-mpi", compiler, sorted(_SOURCES.glob("*.c")), wrapper_texts(), _LINK_FLAGS)


def build_collector(compiler: Compiler | None) -> Path:
    """The program that collects the tables of a node while the ranks run, from the cache or built now. Raises
    BuildError with the compiler's message."""
    sources = [*sorted((_SOURCES / "collector").glob("*.c")), *(_SOURCES / name for name in SHARED_SOURCES)]
    return build_program("seatrial-collector", compiler, sources)


def profiler_variables(
    library: Path,
    folder: Path,
    variables: Mapping[str, str],
    *,
    node_folder: str = "",
    collector: Path | None = None,
    io_s: float = 0.0,
    wait_every: int = 0,
    trace_B: int = 0,
    path_frames: int = 0,
    rows: int = 0,
    has_counters: bool = False,
    has_openmp: bool = False,
) -> dict[str, str]:
    """The environment variables with which each rank of a program writes its table to `folder`. The library precedes
    other preloaded ones.

    While the program runs, tables are in `node_folder` (on each node's memory file system; created if necessary). One
    `collector` on each node watches them and samples input and output every `io_s` seconds (0: off). Every
    `wait_every`-th blocking collective gets a barrier before it (0: none). `trace_B` is the largest trace of a rank
    (0: no trace). `path_frames` is the number of calls that a call path has (0: none), `rows` that of the rows of each
    thread's table (0: as many as usual). `has_counters`: with hardware counters; `has_openmp`: with OpenMP regions, if
    the runtime has OMPT.
    """
    others = variables.get("LD_PRELOAD", "")
    chosen = {
        "LD_PRELOAD": f"{library}:{others}" if others else str(library),
        "SEATRIAL_PROFILE_DIR": str(folder.absolute()),
    }
    optional = {
        "SEATRIAL_PROFILE_NODE_DIR": node_folder,
        "SEATRIAL_PROFILE_COLLECTOR": str(collector.absolute()) if collector else "",
        "SEATRIAL_PROFILE_IO": f"{io_s:g}" if io_s > 0 else "",
        "SEATRIAL_PROFILE_WAIT": str(wait_every) if wait_every > 0 else "",
        "SEATRIAL_PROFILE_TRACE": str(trace_B) if trace_B > 0 else "",
        "SEATRIAL_PROFILE_PATHS": str(path_frames) if path_frames > 0 else "",
        "SEATRIAL_PROFILE_ROWS": str(rows) if rows > 0 else "",
        "SEATRIAL_PROFILE_COUNTERS": "1" if has_counters else "",
        "SEATRIAL_PROFILE_OPENMP": "1" if has_openmp else "",
    }
    return {**chosen, **{name: value for name, value in optional.items() if value}}
