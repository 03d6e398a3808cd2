"""Environment modules: their files are searched, and loaded by the module command of this machine.

The files of environment modules. They are programs (Tcl, Lua) and are not run here: their text is searched for full
paths.

That is how EasyBuild and Spack write them (`local root = "/apps/OpenMPI/4.1.6"`, `setenv EBROOTOPENMPI /apps/...`).
Paths that a module computes, or gets by loading others, are not found.

Loads environment modules, by the module command of this machine (Lmod or Environment Modules).

A login shell finds the command in LMOD_CMD or MODULES_CMD. Asked for Python, it prints assignments to `os.environ`;
they are read, not run.

The MPI libraries of modules that are not loaded: of the full paths in module files, those that contain a compiler
wrapper are used. For other libraries load the module, or state the prefix in the site file.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from seatrial.environments.asking import ask
from seatrial.errors import BuildError

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
        yield from [one for one in entries if one.is_file()][:_MOST_VERSIONS]
        for inner in entries:
            if inner.is_dir():
                yield from _files_below(inner, depth - 1)


_COMMANDS = ("LMOD_CMD", "MODULES_CMD")
_LIMIT_S = 60.0

Changes = tuple[tuple[str, str | None], ...]


class NoModuleError(BuildError):
    """A module cannot be loaded."""

    need = "module"


def load_modules(names: Sequence[str], variables: Mapping[str, str] | None = None) -> Changes:
    """The variables that loading these modules sets (None: unsets), without the module command's own. Raises
    NoModuleError."""
    variables = os.environ if variables is None else variables
    command = next((found for name in _COMMANDS if (found := variables.get(name))), None)
    asked = f"module load {' '.join(names)}"
    if command is None:
        todo = f"run seatrial from a login shell, in which `module` works (it sets {' or '.join(_COMMANDS)})"
        raise NoModuleError(f"{asked}: there is no module command here", todo)
    try:
        answer = ask([command, "python", "load", *names], variables, _LIMIT_S)
    except BuildError as error:
        raise NoModuleError(f"{asked} fails: {_said(error.output) or error.message}", "try it in a shell") from error
    try:
        changes = dict(_changes(ast.parse(answer.stdout)))
    except (SyntaxError, ValueError) as error:
        why = f"{asked}: the answer of {command} is not understood ({error})"
        raise NoModuleError(why, "load it in the shell that starts seatrial") from error
    if not changes:
        raise NoModuleError(f"{asked} changes nothing: {_said(answer.stderr)}", "try it in a shell")
    return tuple((name, value) for name, value in changes.items() if not name.startswith("_"))


def _changes(answer: ast.Module) -> Iterator[tuple[str, str | None]]:
    """The assignments and deletions of an answer. Raises ValueError for anything else."""
    for statement in answer.body:
        match statement:
            case ast.Assign(targets=[target], value=ast.Constant(value=str() as value)) if name := _variable(target):
                yield name, value
            case ast.Delete(targets=[target]) if name := _variable(target):
                yield name, None
            case ast.Import(names=[ast.alias(name="os")]):
                continue
            case ast.Assign(targets=[ast.Name(id="_mlstatus")], value=ast.Constant(value=True)):
                continue
            case _:
                raise ValueError(f"line {statement.lineno} is not an assignment to a variable")


def _variable(target: ast.expr) -> str | None:
    """The name in `os.environ["NAME"]`; None for anything else."""
    match target:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="os"), attr="environ"), slice=ast.Constant(value=str() as name)
        ):
            return name
    return None


def _said(text: str) -> str:
    return " ".join(text.split())[:300]


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
