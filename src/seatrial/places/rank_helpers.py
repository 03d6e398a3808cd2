"""The helper programs of `launch`, which start and place ranks and measure links: found or built before anything is
started."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.build import NATIVE_HEADERS, Environment, build, kept_environments, libc_version
from seatrial.environments.cache import cache_folder
from seatrial.environments.cached_files import Start, as_it_is, private_copy
from seatrial.environments.compiler import Target, first_compiler
from seatrial.errors import BuildError, NoCompilerError
from seatrial.launch.mpi import Helpers
from seatrial.places.containers.tiny_root import holding_program

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

    Raises BuildError if they cannot be built, NoCompilerError if there is no compiler and the cache lacks them.
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


def link_probe() -> Path:
    """The program that measures the links of a cluster, from the cache or built now. Raises BuildError."""
    return build(_environment(), NATIVE_HEADERS / "launch" / "link_probe.cpp").path


def node_helpers() -> tuple[Path, Path]:
    """The programs that a job runs on a node without Python: `copy_facts` and `repeats`. Raises BuildError."""
    folder = NATIVE_HEADERS / "launch"
    facts, repeats = (build(_environment(), folder / f"{name}.cpp").path for name in ("copy_facts", "repeats"))
    return facts, repeats


def guest_agent() -> Path:
    """The first process of a guest, which needs no libraries. Raises BuildError."""
    return _static("guest_agent")


def static_copy_facts() -> Path:
    """`copy_facts` for a guest, which has no libraries. Raises BuildError."""
    return _static("copy_facts")


def _static(name: str) -> Path:
    environment = replace(_environment(), added_flags=("-static",))
    return build(environment, NATIVE_HEADERS / "launch" / f"{name}.cpp").path


def inside_probe() -> Path:
    """The program that prints what it sees of a container, linked statically where this machine has static libraries:
    images may have no C library, or an older one. Raises BuildError."""
    try:
        return _static("inside")
    except BuildError:
        return build(_environment(), NATIVE_HEADERS / "launch" / "inside.cpp").path


def ranks_probe(environment: Environment, start: Start = as_it_is) -> Path:
    """The program that finds out whether ranks work together, built with the MPI library of an environment; `start` as
    for `build`. Raises BuildError."""
    return build(environment, RANKS_PROBE, start=start).path


@cache
def _helpers(programs: Path) -> Helpers:
    """Cached: a look into the build cache at each start of ranks would take too long."""
    folder = NATIVE_HEADERS / "launch"
    environment = _environment()
    return Helpers(*(build(environment, folder / f"{name}.cpp").path for name in ("keep", "place", "share")))


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
