"""The MPI libraries of modules that are not loaded: of the full paths in module files, those that contain a compiler
wrapper are used. For other libraries load the module, or state the prefix in the site file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from seatrial.environments.module_files import folders_of_modules, listed, name_of, paths_in

_NAMES = frozenset({"openmpi", "mpich", "impi", "intel-mpi", "intelmpi", "intel-oneapi-mpi", "mvapich2", "mvapich"})
_NAMES_LIKE = re.compile(r"(openmpi|mpich|mvapich2?|psmpi|cray-mpich)(-[\w.-]{1,60})?", re.ASCII)
_MOST_MODULES = 100


def mpis_of_modules(variables: Mapping[str, str]) -> list[tuple[Path, str]]:
    """(prefix, how it was found) of each, in the order of MODULEPATH; [] without modules."""
    found: dict[Path, str] = {}
    for folder in folders_of_modules(variables):
        for file in islice(_module_files(folder), _MOST_MODULES):
            for prefix in _prefixes(file):
                found.setdefault(prefix, f"the module {name_of(file, folder)}, which is not loaded")
    return list(found.items())


def _module_files(folder: Path) -> Iterator[Path]:
    """The modules whose name is that of an MPI library."""
    for package in listed(folder):
        if package.name.lower() in _NAMES or _NAMES_LIKE.fullmatch(package.name.lower()):
            yield from listed(package) if package.is_dir() else ()


def _prefixes(file: Path) -> Iterator[Path]:
    """The prefixes that a module file names: folders with a wrapper in `bin`."""
    for path in paths_in(file):
        prefix = path.parent if path.name == "bin" else path
        if os.access(prefix / "bin" / "mpicc", os.X_OK):
            yield prefix
