"""The MPI libraries of modules that are not loaded. Module files are programs (Tcl, Lua) and are not run: of the full
paths in them, those that contain a compiler wrapper are used.

That is how EasyBuild and Spack write them (`local root = "/apps/OpenMPI/4.1.6"`, `setenv EBROOTOPENMPI /apps/...`).
Paths that a module computes, or gets by loading others, are not found: load it, or state the prefix in the site file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

_NAMES = frozenset({"openmpi", "mpich", "impi", "intel-mpi", "intelmpi", "intel-oneapi-mpi", "mvapich2", "mvapich"})
_NAMES_LIKE = re.compile(r"(openmpi|mpich|mvapich2?|psmpi|cray-mpich)(-[\w.-]{1,60})?", re.ASCII)
_LARGEST_MODULE_B = 64 << 10
_MOST_MODULES = 100
_MOST_FOLDERS = 64
_PATH = re.compile(r"/[A-Za-z0-9_.+@~-]{1,255}(?:/[A-Za-z0-9_.+@~-]{1,255}){0,40}")


def mpis_of_modules(variables: Mapping[str, str]) -> list[tuple[Path, str]]:
    """(prefix, how it was found) of each, in the order of MODULEPATH; [] without modules."""
    found: dict[Path, str] = {}
    for text in islice((text for text in variables.get("MODULEPATH", "").split(":") if text), _MOST_FOLDERS):
        for file, name in islice(_module_files(Path(text)), _MOST_MODULES):
            for prefix in _prefixes(file):
                found.setdefault(prefix, f"the module {name}, which is not loaded")
    return list(found.items())


def _module_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """(file, NAME/VERSION) of the modules whose name is that of an MPI library."""
    for package in _listed(folder):
        if package.name.lower() in _NAMES or _NAMES_LIKE.fullmatch(package.name.lower()):
            files = _listed(package) if package.is_dir() else []
            for file in files:
                if not file.name.startswith("."):
                    yield file, f"{package.name}/{file.name.removesuffix('.lua')}"


def _listed(folder: Path) -> list[Path]:
    """The entries of a folder, the last names (the newest versions) first; [] if it cannot be read."""
    try:
        return sorted(folder.iterdir(), reverse=True)
    except OSError:
        return []


def _prefixes(file: Path) -> Iterator[Path]:
    """The prefixes that a module file names: folders with a wrapper in `bin`."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_MODULE_B:
            return
        text = file.read_text("utf-8", "replace")
    except OSError:
        return
    for path in dict.fromkeys(map(Path, _PATH.findall(text))):
        prefix = path.parent if path.name == "bin" else path
        if os.access(prefix / "bin" / "mpicc", os.X_OK):
            yield prefix
