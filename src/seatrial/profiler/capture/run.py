"""Run a command under the MPI profiler: its ranks write their tables to a folder of the results.

The folder in a node's memory for the tables of running ranks: with a mapped file on a network file system, every
modified page would cross the network.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import asdict

from seatrial.environments.asking import ask
from seatrial.environments.compiler import Compiler, first_compiler
from seatrial.environments.loader import Texts, build_library, build_program, programs_among, why_not_preloaded
from seatrial.errors import BuildError, NoCompilerError, ResourceError, StoreError, UsageError
from seatrial.launch.local import Ended, run_attached
from seatrial.launch.mpi import forwarded, is_launcher
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import host_in_names
from seatrial.probes.power.credentials import without_passwords
from seatrial.processes.own_folder import owner_of_name, sweep
from seatrial.store.files import opened_file

_PROFILER = Path(__file__).parents[1]
_SOURCES = _PROFILER / "native"
GENERATOR = (
    *("capture/wrappers.py", "capture/functions.py", "capture/functions.txt"),
    *("tables/traffic.py", "trace/calls.py", "merge/bound.py"),
)
"""The files that the text of the wrappers depends on: it is generated only to build them."""
_CODE_SAMPLES = _PROFILER.parent / "native" / "code_samples.h"
"""Included by the library, and by the programs that look at others."""
INCLUDE = _PROFILER / "include"
"""The folder of the header that programs include."""
SHARED_SOURCES = ("io.c", "sparse_copy.c")
"""Compiled into both the library and the collector."""
_LINK_FLAGS = ("-Wl,--no-as-needed", "-l:libdl.so.2")
"""Before glibc 2.34 dlsym is in libdl, which the program may not have loaded."""


def build_profiler(compiler: Compiler | None) -> Path:
    """The library, from the cache or built now (some seconds). Raises BuildError with the compiler's message."""
    texts = Texts(_wrapper_texts, (*(_PROFILER / name for name in GENERATOR), _CODE_SAMPLES))
    return build_library("seatrial-mpi", compiler, sorted(_SOURCES.glob("*.c")), texts, _LINK_FLAGS)


def _wrapper_texts() -> Mapping[str, str]:
    """Raises BuildError if the files are no longer those that this process was loaded from: the library is kept under
    what they are now."""
    if _generator() != _LOADED_FROM:
        raise BuildError("the files of seatrial have changed since this process started", "start it again")
    from seatrial.profiler.capture.wrappers import wrapper_texts  # takes as long as a short profile

    return wrapper_texts()


def _generator() -> tuple[bytes, ...]:
    return tuple(hashlib.sha256((_PROFILER / name).read_bytes()).digest() for name in GENERATOR)


_LOADED_FROM = _generator()


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
    numbers = {"IO": io_s, "WAIT": wait_every, "TRACE": trace_B, "PATHS": path_frames, "ROWS": rows}
    optional = {
        "NODE_DIR": node_folder,
        "COLLECTOR": str(collector.absolute()) if collector else "",
        **{name: f"{value:.15g}" if value > 0 else "" for name, value in numbers.items()},
        "COUNTERS": "1" if has_counters else "",
        "OPENMP": "1" if has_openmp else "",
    }
    return {
        "LD_PRELOAD": f"{library}:{others}" if others else str(library),
        "SEATRIAL_PROFILE_DIR": str(folder.absolute()),
        **{f"SEATRIAL_PROFILE_{name}": value for name, value in optional.items() if value},
    }


_MEMORY = Path("/dev/shm")  # noqa: S108  we create a private folder in it
_KEPT = (".mpi", ".trace", ".io")
_COLLECTORS_END_S = 10.0
_LOOK_EVERY_S = 0.02


def node_folder(target: Path) -> Path | None:
    """The folder that holds the tables for `target` while ranks run, the same on each node; None without a memory file
    system.

    The ranks create it if necessary, with access for this user only.
    """
    if not _MEMORY.is_dir():
        return None
    name = hashlib.sha256(os.fsencode(target.absolute())).hexdigest()[:8]
    return _MEMORY / f"{_prefix()}{owner_of_name()}-{name}"


def _prefix() -> str:
    return f"seatrial-{os.getuid()}-"


@contextmanager
def on_node(path: Path | None, target: Path) -> Iterator[None]:
    """A context in which a command runs. The ranks and the collectors of all nodes move their files to `target`; at the
    end, files still in `path` on this node are moved there too, and `path` is removed. Folders of killed processes of
    this user are removed first: whose the folder is, its name says."""
    if path is not None:
        sweep(path.parent, _prefix(), _remove_own)
        shutil.rmtree(path, ignore_errors=True)  # of an earlier command of this process with the same target
    try:
        yield
    finally:
        deadline = time.monotonic() + _COLLECTORS_END_S
        while any(target.glob("*.collecting")) and time.monotonic() < deadline:  # a collector has files to move
            time.sleep(_LOOK_EVERY_S)
        if path is not None and path.is_dir():
            _move(path, target)


def _remove_own(path: Path) -> None:
    """Remove a folder if it is this user's; everybody may create one of that name."""
    if path.lstat().st_uid == os.getuid():
        shutil.rmtree(path, ignore_errors=True)


def _move(path: Path, target: Path) -> None:
    try:
        for file in sorted(path.iterdir()):
            if file.suffix in _KEPT:  # newer than the copy of a collector that was killed
                private = target / f".{file.name}.part"
                copy_sparse(file, private)
                private.replace(target / file.name)
    except OSError as error:
        remedy = f"the recorded files are in {path}"
        raise StoreError(f"cannot write {target}: {error.strerror or error}", remedy) from error
    shutil.rmtree(path, ignore_errors=True)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file and keep its holes. Raises OSError."""
    with source.open("rb") as data, target.open("wb") as copy:
        size = os.fstat(data.fileno()).st_size
        at = 0
        while at < size:
            try:
                begin = os.lseek(data.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole follows
                break
            at = os.lseek(data.fileno(), begin, os.SEEK_HOLE)
            os.lseek(copy.fileno(), begin, os.SEEK_SET)
            while begin < at:
                begin += os.sendfile(copy.fileno(), data.fileno(), begin, at - begin)
        os.ftruncate(copy.fileno(), size)


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
    try:
        compiler = first_compiler()
    except NoCompilerError:
        compiler = None
    library, collector = build_profiler(compiler), build_collector(compiler)
    for path in (library, collector):
        if set(str(path)) & set(" \t\n:"):
            raise BuildError(
                f"{path} cannot be preloaded: LD_PRELOAD treats blanks and colons as separators",
                "set SEATRIAL_CACHE to a folder without them",
            )
    return Profiler(library, collector)


def run_profiled(command: Sequence[str], folder: Path, settings: ProbeSettings, stdout: int | None = None) -> Ended:
    """Run the command so that its ranks write their tables to `folder`; `stdout` as in `run_attached`.

    Raises UsageError if the command cannot be started, BuildError, StoreError.
    """
    variables = without_passwords(os.environ)
    if shutil.which(command[0], path=variables.get("PATH")) is None:
        raise UsageError(f"{command[0]!r}: command not found", "give its path, or put it on PATH")
    tools = profiler()
    node = node_folder(folder)
    with on_node(node, folder):
        added = profiled_variables(tools, folder, node, settings, variables)
        try:
            return run_attached(_for_all_ranks(command, added, variables), {**variables, **added}, stdout)
        except OSError as error:
            if (limited := ResourceError.of(error)) is not None:
                raise limited from error
            raise UsageError(f"cannot start {command[0]!r}: {error.strerror or error}", "give a program") from error


def profiled_variables(
    tools: Profiler, folder: Path, node: Path | None, settings: ProbeSettings, variables: Mapping[str, str]
) -> dict[str, str]:
    """The variables added to a command's environment: see `profiler_variables`."""
    on_node = "" if node is None else str(node)
    return profiler_variables(
        tools.library, folder, variables, node_folder=on_node, collector=tools.collector, **asdict(settings)
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
    "RTLD_DEEPBIND": "it loaded {} with the flag RTLD_DEEPBIND: its calls bypass a preloaded library",
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
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(started_s))}-{host_in_names(platform.node())}-{os.getpid()}"
