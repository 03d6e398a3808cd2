"""Run a command under the MPI profiler: its ranks write their tables to a folder of the results."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.environments.asking import ask
from seatrial.environments.compiler import Compiler, first_compiler
from seatrial.environments.loader import programs_among, why_not_preloaded
from seatrial.errors import BuildError, NoCompilerError, UsageError
from seatrial.launch.local import Ended, run_attached
from seatrial.launch.mpi import forwarded, is_launcher
from seatrial.model.frozen import Frozen
from seatrial.profiler.capture.library import build_collector, build_profiler, profiler_variables
from seatrial.profiler.capture.node_folder import NodeFolder, node_folder
from seatrial.store.files import opened_file


class ProbeSettings(Frozen):
    """What is recorded besides counts and times. `io_s`: sampling interval of input and output in seconds;
    `wait_every`: every N-th collective gets a barrier before it; `trace_B`: the largest trace of a rank; `path_frames`:
    calls of a call path; 0: off. `rows`: of each thread's table; 0: as many as usual. `has_counters`: hardware
    counters; `has_openmp`: OpenMP regions."""

    io_s: float = 0.0
    wait_every: int = 0
    trace_B: int = 0
    path_frames: int = 0
    rows: int = 0
    has_counters: bool = False
    has_openmp: bool = False


class Profiler(Frozen):
    """The library to preload, and the collector program that runs on each node."""

    library: Path
    collector: Path


def profiler() -> Profiler:
    """Both, from the cache or built now (some seconds). Raises BuildError."""
    compiler = _compiler()
    library, collector = build_profiler(compiler), build_collector(compiler)
    for path in (library, collector):
        if set(str(path)) & set(" \t\n:"):
            raise BuildError(
                f"{path} cannot be preloaded: LD_PRELOAD treats blanks and colons as separators",
                "set SEATRIAL_CACHE to a folder without them",
            )
    return Profiler(library, collector)


def _compiler() -> Compiler | None:
    try:
        return first_compiler()
    except NoCompilerError:
        return None


def run_profiled(command: Sequence[str], folder: Path, settings: ProbeSettings, stdout: int | None = None) -> Ended:
    """Run the command so that its ranks write their tables to `folder`; `stdout` as in `run_attached`.

    Raises UsageError if the command cannot be started, BuildError, StoreError.
    """
    variables = dict(os.environ)
    if shutil.which(command[0], path=variables.get("PATH")) is None:
        raise UsageError(f"{command[0]!r}: command not found", "give its path, or put it on PATH")
    tools = profiler()
    node = node_folder(folder)
    with NodeFolder(node, folder):
        added = profiled_variables(tools, folder, node, settings, variables)
        try:
            return run_attached(_for_all_ranks(command, added, variables), {**variables, **added}, stdout)
        except OSError as error:
            raise UsageError(f"cannot start {command[0]!r}: {error.strerror or error}", "give a program") from error


def profiled_variables(
    tools: Profiler, folder: Path, node: Path | None, settings: ProbeSettings, variables: Mapping[str, str]
) -> dict[str, str]:
    """The variables added to a command's environment: see `profiler_variables`."""
    return profiler_variables(
        tools.library,
        folder,
        variables,
        node_folder="" if node is None else str(node),
        collector=tools.collector,
        io_s=settings.io_s,
        wait_every=settings.wait_every,
        trace_B=settings.trace_B,
        path_frames=settings.path_frames,
        rows=settings.rows,
        has_counters=settings.has_counters,
        has_openmp=settings.has_openmp,
    )


def _for_all_ranks(command: Sequence[str], added: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """Open MPI's launcher exports only the listed variables to ranks on other nodes."""
    if not is_launcher(command[0]) or "OMPI_MCA_mca_base_env_list" in variables:
        return list(command)
    try:
        version = ask([command[0], "--version"])
    except BuildError:
        return list(command)
    is_openmpi = any(name in version.stdout + version.stderr for name in ("Open MPI", "OpenRTE", "PRRTE"))
    return forwarded(command, added) if is_openmpi else list(command)


def why_nothing(command: Sequence[str], variables: Mapping[str, str], tables: Path) -> str:
    """Why a command may have left no table: what the profiler noted beside the `tables`, else judged from the program
    files."""
    if (noted := read_note(tables)) is not None:
        return noted
    refused = [
        f"{program.name}: {why}"
        for program in programs_among(command, variables)
        if (why := why_not_preloaded(program)) is not None
    ]
    seen = "no process of this command called MPI_Init under the profiler"
    return f"{seen} ({'; '.join(refused)}: no library can be preloaded)" if refused else seen


_NOTES = {
    "dlmopen": "it loaded MPI with dlmopen ({}): a preloaded library does not see calls in another namespace",
    "RTLD_DEEPBIND": "it loaded {} with the flag RTLD_DEEPBIND: its calls go past a preloaded library",
}
_MOST_NOTE_B = 1200


def read_note(tables: Path) -> str | None:
    """Why a process that loaded MPI is not profiled, as the profiler noted it (profiler/native/loading.c); None if it
    noted nothing."""
    for path in sorted(tables.glob("*.note")):
        try:
            with opened_file(tables, path.name) as file:
                how, _, loaded = file.read(_MOST_NOTE_B).decode("utf-8", "replace").strip().partition(" ")
        except OSError:
            continue
        if how in _NOTES:
            return f"MPI_Init was not called under the profiler; {_NOTES[how].format(loaded)}"
    return None


def profile_name(started_s: float) -> str:
    """The name of a profile's folder: time, host and process id."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(started_s))}-{platform.node()}-{os.getpid()}"
