"""The helper programs of `launch`, which start and place ranks and measure links: found or built before anything is
started."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.build import NATIVE_HEADERS, Environment, build, kept_environments, libc_version
from seatrial.environments.cached_files import Start, as_it_is, private_copy
from seatrial.environments.compiler import Target, first_compiler
from seatrial.environments.loader import Texts, build_library
from seatrial.errors import BuildError, NoCompilerError
from seatrial.launch.mpi import Helpers
from seatrial.places.containers.tiny_root import holding_program
from seatrial.store.cache import cache_folder

RANKS_PROBE = NATIVE_HEADERS / "launch" / "ranks_inside.cpp"
"""The source of the program that finds out whether ranks work together."""
_ANY_CPU = "any CPU"
_BASELINE = {"x86_64": "-march=x86-64", "aarch64": "-march=armv8-a"}


def make_helpers(*, for_ranks: bool, with_profiler: bool) -> None:
    """Build the helper programs for ranks, and the MPI profiler. Raises BuildError."""
    if for_ranks:
        rank_helpers()
    if with_profiler:
        from seatrial.profiler.capture.run import profiler

        profiler()


def rank_helpers() -> Helpers:
    """The helper programs for ranks, from the cache or built now, for any CPU of this architecture.

    Raises BuildError if they cannot be built, NoCompilerError if there is no compiler and they are not in the cache.
    """
    return _helpers(cache_folder())


def holder() -> Path:
    """The program that holds a container for the ranks that share it; it needs nothing of an image. Raises BuildError
    if the cache cannot be written."""
    name = Path("hold")
    made = private_copy(holding_program() or b"", name)
    if made == name:
        raise BuildError("the cache cannot be written", "set SEATRIAL_CACHE to a writable folder")
    return made


def helper(name: str, *, is_static: bool = False) -> Path:
    """A program of native/launch/ for any CPU of this architecture, from the cache or built now: `link_probe` measures
    the links of a cluster, a job runs `copy_facts` and `repeats` on a node without Python. `is_static`: without
    libraries, for guests, which have none: `guest_agent` is the first process of one. Raises BuildError."""
    environment = replace(_environment(), added_flags=("-static",)) if is_static else _environment()
    return build(environment, NATIVE_HEADERS / "launch" / f"{name}.cpp").path


def node_faults() -> Path:
    """The library that plants faults on nodes of a cluster of this machine, from the cache or built now. Raises
    BuildError."""
    try:
        compiler = first_compiler()
    except NoCompilerError:
        compiler = None
    source = NATIVE_HEADERS / "launch" / "node_faults.c"
    return build_library("node-faults", compiler, [source], Texts(), ("-l:libdl.so.2",))


def inside_probe() -> Path:
    """The program that prints what it sees of a container, linked statically where this machine has static libraries:
    images may have no C library, or an older one. Raises BuildError."""
    try:
        return helper("inside", is_static=True)
    except BuildError:
        return helper("inside")


def ranks_probe(environment: Environment, start: Start = as_it_is) -> Path:
    """The program that finds out whether ranks work together, built with the MPI library of an environment; `start` as
    for `build`. Raises BuildError."""
    return build(environment, RANKS_PROBE, start=start).path


@cache
def _helpers(programs: Path) -> Helpers:
    """Cached: a look into the build cache at each start of ranks would take too long."""
    return Helpers(*map(helper, ("keep", "place", "share")))


def _environment() -> Environment:
    flags = (_BASELINE.get(platform.machine(), "-mtune=generic"),)
    target = Target(flags, frozenset(), _ANY_CPU)
    try:
        return Environment(first_compiler(), target, libc_version())
    except NoCompilerError:
        for environment in kept_environments():
            if environment.target.resolution == _ANY_CPU and environment.libc == libc_version():
                return environment
        raise
