"""Where an MPI library may be, also one that Spack installed, best first.

Nothing is run here. The variables are those that modules and vendors set. Debian adds suffixes to its wrappers and has
several libraries in one folder; Red Hat has a folder for each (`/usr/lib64/openmpi/bin`), which a module loads.

The MPI libraries that Spack installed, read from its database; Spack is not run.

The database of an install tree is `.spack-db/index.json`: {"database": {"installs": {hash: {"spec": {"name",
"version"}, "path", "installed"}}}} (spack/database.py, versions 6 to 8; in 5 the package's name is the key in "spec").
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seatrial.environments.modules import mpis_of_modules
from seatrial.environments.mpi_identity import is_file
from seatrial.errors import BuildError
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.environment.site import Place, SiteEnvironment
from seatrial.model.frozen import Frozen
from seatrial.processes.working_folder import on_path
from seatrial.store.cache import caches

_TREE = Path("opt/spack/.spack-db/index.json")
_LARGEST_DATABASE_B = 128 << 20
_PACKAGES = (
    *("openmpi", "hpcx-mpi", "mpich", "cray-mpich", "intel-oneapi-mpi", "intel-mpi"),
    *("mvapich-plus", "mvapich", "mvapich2"),
)


def mpis_of_spack(variables: Mapping[str, str]) -> list[tuple[Path, str]]:
    """(prefix, how it was found) of each; [] without Spack, or if its database cannot be read."""
    root = variables.get("SPACK_ROOT", "")
    if not root.startswith("/"):
        program = on_path("spack", variables.get("PATH", ""))
        if program is None:
            return []
        root = str(Path(program).resolve().parent.parent)
    return list(_installed(_database(Path(root) / _TREE)))


def _database(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_DATABASE_B:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _installed(content: Any) -> Iterator[tuple[Path, str]]:
    installs = _at(_at(content, "database"), "installs")
    entries = list(installs.values()) if isinstance(installs, dict) else []
    found: list[tuple[int, Path, str]] = []
    for entry in entries:
        spec, path = _at(entry, "spec"), _at(entry, "path")
        name = _at(spec, "name") or (next(iter(spec), None) if isinstance(spec, dict) and len(spec) == 1 else None)
        is_installed = _at(entry, "installed") is True and isinstance(path, str) and path.startswith("/")
        if is_installed and name in _PACKAGES:
            version = _at(spec, "version") or _at(_at(spec, name), "version")
            label = f"Spack, {name}" + (f"@{version}" if isinstance(version, str) and version.isprintable() else "")
            found.append((_PACKAGES.index(name), Path(path), label))
    for _, prefix, label in sorted(found):
        below = [*sorted(prefix.glob("mpi/20*"), reverse=True)] if "oneapi" in label else []
        yield from ((each, label) for each in (*below, prefix))


def _at(content: Any, key: str) -> Any:
    return content.get(key) if isinstance(content, dict) else None


ROOTS = (
    *("MPI_HOME", "MPI_ROOT", "MPI_DIR"),
    *("OMPI_HOME", "OMPI_DIR", "OPENMPI_HOME", "OPENMPI_DIR", "OPENMPI_ROOT", "HPCX_MPI_DIR"),
    *("I_MPI_ROOT", "CRAY_MPICH_DIR", "CRAY_MPICH_PREFIX", "MPICH_HOME", "MPICH_DIR", "MPICH_ROOT"),
    *("MVAPICH2_HOME", "MVAPICH_HOME", "MV2_HOME"),
    *("EBROOTOPENMPI", "EBROOTMPICH", "EBROOTIMPI", "EBROOTMVAPICH2", "EBROOTMVAPICH", "EBROOTPSMPI"),
)
"""Variables that hold the prefix of a loaded module."""

_CRAY = ("CRAYPE_VERSION", "CRAYPE_DIR", "CRAY_MPICH_DIR", "CRAY_MPICH_VERSION")
"""If one of these is set, cc and CC are Cray's wrappers; otherwise they are plain compilers."""

READ = ("PATH", "LD_LIBRARY_PATH", "MODULEPATH", "SPACK_ROOT", "HOME", *ROOTS, *_CRAY)
"""All variables that affect what is found."""

_WRAPPERS = ("mpicc", "mpigcc", "mpiicx", "mpiicc", "mpicxx", "mpic++", "mpiicpx", "mpiicpc")
"""Wrappers of one library, in order of preference: those for C add no C++ or Fortran bindings."""

_SUFFIXED = re.compile(r"mpicc\.[a-z][a-z0-9]{1,30}")
_BELOW_PREFIX = ("bin", "intel64/bin", "bin64", "mpi/latest/bin")
_USUAL = (
    "/usr/lib64/{name}*/bin",
    f"/usr/lib/{platform.machine()}-linux-gnu/{{name}}/bin",
    "/usr/lib/{name}*/bin",
    "/usr/local/{name}*/bin",
    "/opt/{name}*/bin",
    "/opt/{name}/*/bin",
)
_NAMES = ("openmpi", "mpich", "mvapich2", "mvapich")
_ALSO_USUAL = ("/opt/intel/oneapi/mpi/latest/bin", "/usr/local/bin")


class Candidate(Frozen):
    """A compiler wrapper, or a prefix without one. `found`: how it was found, as text.

    `environment` and `launcher` are those of the site file, if it comes from there.
    """

    path: Path
    found: str
    environment: SiteEnvironment | None = None
    launcher: str | None = None

    @property
    def family(self) -> MpiFamily | None:
        """The family that the site file states."""
        return None if self.environment is None else self.environment.family


def candidates(
    variables: Mapping[str, str], environments: Iterable[SiteEnvironment] = (), place: Place | None = None
) -> Iterator[Candidate]:
    """Everything that may be an MPI library, best first; a library may appear more than once."""
    for environment in environments:
        if environment.mpi is not None:
            launcher = environment.launcher or (place.partition.launcher if place is not None else None)
            found = f"the site file, environment {environment.name}"
            for path in within(environment.mpi):
                yield Candidate(path, found, environment, None if launcher == "mpirun" else launcher)
    for name in ROOTS:
        value = variables.get(name, "")
        if value.startswith("/"):
            yield from (Candidate(path, name) for path in within(Path(value)))
    searched = _folders(variables.get("PATH", ""))
    if any(map(variables.get, _CRAY)):
        programs = [folder / name for name in ("cc", "CC") for folder in searched]
        yield from (Candidate(path, "PATH") for path in filter(_is_program, programs))
    for folder in searched:
        yield from (Candidate(path, "PATH") for path in _wrappers(folder))
    for folder in _usual_folders():
        yield from (Candidate(path, str(folder)) for path in _wrappers(folder))
    for prefix, found in (*mpis_of_spack(variables), *mpis_of_modules(variables)):
        yield from (Candidate(path, found) for path in within(prefix))
    for prefix in wheel_prefixes():
        yield from (Candidate(path, "a wheel from PyPI") for path in within(prefix))


def within(path: Path) -> list[Path]:
    """The wrapper in a prefix; the path itself if it is a wrapper or has none."""
    if is_file(path):
        return [path]
    return [next((wrapper for below in _BELOW_PREFIX for wrapper in _wrappers(path / below)), path)]


def wheel_prefixes() -> list[Path]:
    """The prefixes of installed wheels, the newest first. Raises CacheError if others can change one."""
    found: list[Path] = []
    try:
        for cache in caches():
            for name in cache.names("mpi"):
                if re.fullmatch(r"[^.].*-[0-9].*", name):
                    cache.check_tree("mpi", name)
                    found.append(cache.path / "mpi" / name)
    except (BuildError, OSError):
        return []
    newest = {path: tuple(-int(number) for number in re.findall(r"[0-9]{1,9}", path.name)) for path in found}
    return sorted(found, key=lambda path: (path.name.partition("-")[0] != "openmpi", newest[path]))


def _wrappers(folder: Path) -> Iterator[Path]:
    """The wrappers in a folder: the first without a suffix (these belong to one library), and all with a suffix."""
    plain = next((path for name in _WRAPPERS if _is_program(path := folder / name)), None)
    if plain is not None:
        yield plain
    try:
        names = sorted(path.name for path in folder.glob("mpicc.*"))
    except OSError:
        return
    yield from (folder / name for name in names if _SUFFIXED.fullmatch(name) and _is_program(folder / name))


def _folders(search: str) -> list[Path]:
    """The absolute folders of a search path, each once after resolving links such as /bin."""
    found: dict[Path, Path] = {}
    for text in search.split(":"):
        if text.startswith("/"):
            found.setdefault(_real(Path(text)), Path(text))
    return list(found.values())


def _usual_folders() -> Iterator[Path]:
    for name in _NAMES:
        for pattern in _USUAL:
            yield from sorted(Path("/").glob(pattern.format(name=name).removeprefix("/")))
    yield from map(Path, _ALSO_USUAL)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path


def _is_program(path: Path) -> bool:
    return os.access(path, os.X_OK) and is_file(path)
