"""Finds the libmpi that linker options refer to, the MPI libraries in a folder, and their launchers."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.environments.mpi_identity import is_file, is_for_this_machine
from seatrial.model.mpi import MpiFamily

_MULTIARCH = f"{platform.machine()}-linux-gnu"
LOADER_FOLDERS = tuple(
    map(Path, (f"/lib/{_MULTIARCH}", f"/usr/lib/{_MULTIARCH}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"))
)
"""The loader's default folders (ld.so(8)), with Debian's."""

HEADER_FOLDERS = (Path("/usr/include"), Path(f"/usr/include/{_MULTIARCH}"))
LIBRARY_FOLDERS = ("lib", "lib64", "lib/release", "intel64/lib/release", "intel64/lib")
"""Below a prefix."""

_LINKED = re.compile(r"-l(mpi(?:ch)?(?:_(?!gtl)[a-z0-9_]{1,30})?)")
_FILE = re.compile(r"libmpi(?:ch)?(?:_(?:cray|gnu|intel|amd|aocc|nvidia|ibm)[a-z0-9_]{0,30})?\.so\.[0-9.]{1,30}")
_SCRIPT = re.compile(rb"(?:INPUT|GROUP)[ \t]{0,10}\([ \t]{0,10}([A-Za-z0-9_./+-]{1,255})")
_LARGEST_SCRIPT_B = 4096

_STARTERS = {
    MpiFamily.OPENMPI: ("mpirun", "mpiexec", "orterun", "prterun"),
    MpiFamily.CRAY: ("mpiexec", "srun", "aprun"),
}
_HYDRA = ("mpiexec.hydra", "mpirun", "mpiexec")
_OF_OPENMPI = frozenset({"orterun", "prterun", "prte", "prun", "ompirun_wrapper"})
_OF_HYDRA = frozenset({"mpiexec.hydra", "mpiexec.gforker", "hydra_pmi_proxy"})
"""Files that launchers link to, each of which starts only ranks of its own library."""


def linked_library(words: Iterable[str], folders: Sequence[Path]) -> Path | None:
    """The MPI library of the first -l option for one, searched in these and the default folders; links and linker
    scripts are followed. None if there is no shared library for this machine."""
    for word in words:
        if match := _LINKED.fullmatch(word):
            for folder in (*folders, *LOADER_FOLDERS):
                path = folder / f"lib{match[1]}.so"
                if is_file(path) and (library := _followed(path)) is not None:
                    return library
    return None


def is_mpi_library(name: str) -> bool:
    """Whether a file is an MPI library by its name: libmpi.so.40, libmpich.so.12, not libmpi_cxx.so.40."""
    return _FILE.fullmatch(name) is not None


def library_words(folder: Path) -> tuple[str, ...]:
    """The -l option for the MPI library in a folder, for prefixes without a wrapper; () if there is none."""
    for name in ("mpi", "mpich"):
        if is_file(folder / f"lib{name}.so"):
            return (f"-l{name}",)
    stems = (path.name.removeprefix("lib").removesuffix(".so") for path in sorted(_globbed(folder, "libmpi_*.so")))
    return next(((f"-l{stem}",) for stem in stems if _FILE.fullmatch(f"lib{stem}.so.0")), ())


def libraries_in(folder: Path) -> Iterator[Path]:
    """The files of MPI libraries in a folder, links resolved."""
    for path in sorted(_globbed(folder, "libmpi*.so.*")):
        if _FILE.fullmatch(path.name) and is_file(path) and is_for_this_machine(path):
            yield path.resolve()


def _globbed(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _followed(path: Path) -> Path | None:
    """The library that a link or a linker script (`INPUT(libmpi.so.40)`, as in wheels) refers to."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_LARGEST_SCRIPT_B)
        if not start.startswith(b"\x7fELF"):
            script = _SCRIPT.search(start)
            if script is None:
                return None
            path = path.parent / os.fsdecode(script[1])
        return path.resolve() if is_for_this_machine(path) else None
    except (OSError, RuntimeError):
        return None


def launcher_of(family: MpiFamily, wrapper: Path | None, prefix: Path, variables: Mapping[str, str]) -> Path | None:
    """The launcher of a library: beside its wrapper with the same suffix, in its prefix, or (for libraries without
    their own, such as Cray's) on PATH. None if no suitable one is found."""
    names = _STARTERS.get(family, _HYDRA)
    suffix = wrapper_suffix(wrapper) if wrapper is not None else ""
    folders = [*([wrapper.parent] if wrapper is not None else []), *(prefix / below for below in ("bin", "bin64"))]
    if family is MpiFamily.CRAY or wrapper is None:
        folders += [Path(folder) for folder in variables.get("PATH", "").split(":") if folder.startswith("/")]
    suffixes = dict.fromkeys((suffix, f".{family}", ""))
    for folder in folders:
        for name in (f"{name}{suffix}" for suffix in suffixes for name in names):
            path = folder / name
            if os.access(path, os.X_OK) and is_file(path) and _can_be_of(family, path):
                return path
    return None


def wrapper_suffix(wrapper: Path) -> str:
    """Debian's suffix for a library's programs: ".openmpi" for mpicc.openmpi, and for mpicc if it links to that; else
    ""."""
    for _ in range(8):
        if wrapper.name.startswith(("mpicc.", "mpicxx.")):
            return wrapper.suffix
        if not wrapper.is_symlink():
            break
        wrapper = wrapper.parent / wrapper.readlink()
    return ""


def named_launcher(name: str, variables: Mapping[str, str]) -> Path | None:
    """The launcher that the site file states, a command or a path; None if it is not found."""
    found = shutil.which(name, path=variables.get("PATH", ""))
    return None if found is None else Path(found)


def _can_be_of(family: MpiFamily, launcher: Path) -> bool:
    real = {launcher.name, launcher.resolve().name}
    if family is MpiFamily.OPENMPI:
        return not real & _OF_HYDRA
    return not real & _OF_OPENMPI
