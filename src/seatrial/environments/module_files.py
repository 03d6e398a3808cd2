"""The files of environment modules. They are programs (Tcl, Lua) and are not run here: their text is searched for full
paths.

That is how EasyBuild and Spack write them (`local root = "/apps/OpenMPI/4.1.6"`, `setenv EBROOTOPENMPI /apps/...`).
Paths that a module computes, or gets by loading others, are not found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path

_LARGEST_B = 64 << 10
_MOST_FOLDERS = 64
_MOST_PACKAGES = 2000
_MOST_VERSIONS = 4
_DEEPEST = 3
_OF_THE_SYSTEM = frozenset(map(Path, ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")))
_PATH = re.compile(r"(?<![\w.+@~})\]$-])/[A-Za-z0-9_.+@~-]{1,255}(?:/[A-Za-z0-9_.+@~-]{1,255}){0,40}")
"""Not the end of a path whose beginning is computed: `$root/bin`."""


def folders_of_modules(variables: Mapping[str, str]) -> Iterator[Path]:
    """The folders of MODULEPATH, in its order."""
    texts = (text for text in variables.get("MODULEPATH", "").split(":") if text)
    return map(Path, islice(texts, _MOST_FOLDERS))


def listed(folder: Path) -> list[Path]:
    """The entries of a folder that are not hidden, the last names (the newest versions) first; [] if it cannot be
    read."""
    try:
        return sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), reverse=True)
    except OSError:
        return []


def name_of(file: Path, folder: Path) -> str:
    """What `module load` calls a module file: its path below the folder of MODULEPATH."""
    return file.relative_to(folder).as_posix().removesuffix(".lua")


def paths_in(file: Path) -> list[Path]:
    """The full paths in the text of a module file; [] if it cannot be read or is too large."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_B:
            return []
        return list(dict.fromkeys(map(Path, _PATH.findall(file.read_text("utf-8", "replace")))))
    except OSError:
        return []


def module_with(program: str, variables: Mapping[str, str]) -> tuple[str, Path] | None:
    """The first module that names a folder with this program, and the program there; None if no module does. Of a
    package, the newest versions are searched."""
    for name, folders in _programs_of_modules(variables.get("MODULEPATH", "")):
        for folder in folders:
            if os.access(path := folder / program, os.X_OK) and path.is_file():
                return name, path
    return None


@cache
def _programs_of_modules(text: str) -> tuple[tuple[str, tuple[Path, ...]], ...]:
    """(module, the folders that it names and may have programs) of all modules of this MODULEPATH: read once, since
    many programs are looked for."""
    return tuple(
        (name_of(file, folder), tuple(_with_programs(paths_in(file))))
        for folder in folders_of_modules({"MODULEPATH": text})
        for package in listed(folder)[:_MOST_PACKAGES]
        for file in _files_below(package, _DEEPEST)
    )


def _with_programs(paths: Iterable[Path]) -> Iterator[Path]:
    """The folders among these paths that may have programs. Those of the system are on PATH anyway, and `/bin` may be
    the end of a path that a module computes (`root .. "/bin"`)."""
    return (inner for path in paths for inner in (path / "bin", path) if inner not in _OF_THE_SYSTEM)


def _files_below(entry: Path, depth: int) -> Iterator[Path]:
    """The module files of a package, or of a category of packages."""
    if entry.is_file():
        yield entry
    elif depth > 0:
        entries = listed(entry)
        versions = [one for one in entries if one.is_file()][:_MOST_VERSIONS]
        yield from versions
        for inner in entries:
            if inner.is_dir():
                yield from _files_below(inner, depth - 1)
