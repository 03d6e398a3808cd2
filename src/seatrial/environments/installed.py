"""Installed applications and tools, which are run but not built by seatrial, and Python interpreters with the libraries
that they can import.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.asking import Reply, ask, ask_once, related, remembered, state_of
from seatrial.environments.compiler import variables_with
from seatrial.environments.modules import Changes, load_modules, module_with
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.environment.site import LOAD
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.plan.site_in_force import site_in_force
from seatrial.processes.working_folder import on_path, without_working_folder


class NotInstalledError(BuildError):
    """The program is not on this machine."""

    need = "program"


class NotLoadedError(NotInstalledError):
    """The program is in a module that is not loaded."""


class Installed(Frozen):
    """An installed program: its path, the version that it reports, the hash of its file, and its companions. `image` is
    the digest of the container image that it belongs to, and by which it is known, with its path; "" for a program of
    this machine. `modules` are those that it needs, `changes` the variables that they set (None: unset). `answer` is
    all that its version command printed."""

    path: Path
    version: str
    sha256: str
    companions: Mapping[str, Path] = {}
    image: str = ""
    modules: tuple[str, ...] = ()
    changes: Changes = ()
    answer: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON document of `environments/<key>.json`."""
        known_by = {"image": self.image} if self.image else {"sha256": self.sha256}
        loaded = {"modules": list(self.modules)} if self.modules else {}
        return {
            "name": self.version,
            "program": {"path": str(self.path), "version": self.version, **known_by, **loaded},
        }

    @property
    def key(self) -> str:
        """The content key, which does not depend on the path on this machine."""
        if self.image:
            return content_key({"version": self.version, "image": self.image, "path": str(self.path)})
        loaded = {"modules": list(self.modules)} if self.modules else {}
        return content_key({"version": self.version, "sha256": self.sha256, **loaded})


def find_installed(program: External) -> Installed:
    """The program, which the site file names, or which is on PATH by its name (that of the modules that the site file
    names for it), and its companions: those that the site file names, beside it, or else on PATH. Raises
    NotInstalledError, NoModuleError, or BuildError if its version command fails."""
    modules = site_in_force().modules.get(program.name, ())
    changes = load_modules(modules) if modules else ()
    variables = variables_with(changes)
    command = _command(program.name)
    try:
        found = find_command(command, program.install, program.version, variables)
    except NotInstalledError as error:
        raise _in_a_module(program.name, modules) or error from None
    companions: dict[str, Path] = {}
    for name in program.companions:
        command = _command(name)
        path = shutil.which(command, path=str(found.path.parent)) or shutil.which(command, path=variables.get("PATH"))
        if path is None:
            raise NotInstalledError(f"{name} is neither beside {found.path} nor on PATH", program.install)
        companions[name] = Path(path)
    return replace(found, companions=companions, modules=modules, changes=changes)


def _in_a_module(name: str, loaded: Sequence[str]) -> NotInstalledError | None:
    """The error that names the module which has a program; None if none has."""
    where = f"{name} is not on PATH" + (f" after {LOAD} {' '.join(loaded)}" if loaded else "")
    if (found := module_with(name, os.environ)) is None:
        return NotInstalledError(where, f"correct it in {site_in_force().file}") if loaded else None
    module, path = found
    todo = f"{LOAD} {module}, or write `programs: {{{name}: {LOAD} {module}}}` in the site file"
    return NotLoadedError(f"{where}; the module {module} has {path}", todo)


def _command(name: str) -> str:
    """The path that the site file gives for a command, else the command. Raises NotInstalledError if no program is
    there."""
    site = site_in_force()
    path = site.programs.get(name)
    if path is not None and shutil.which(path) is None:
        raise NotInstalledError(f"{site.file} says that {name} is {path}, which is not a program", "correct it there")
    return name if path is None else str(path)


def version_in(answer: Reply) -> str:
    """The first line of what a version command prints."""
    lines = (line.strip(" \t:-()") for line in (answer.stdout.strip() or answer.stderr).splitlines())
    return next(filter(None, lines), "")[:200]  # GROMACS puts `:-)` around its name


def find_command(
    name: str, install: str, ask_version: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Installed:
    """A program by its path or its name on PATH. `install`: how to get it; `ask_version`: the arguments that make it
    print its version; `variables`: those that it runs with (None: those of this process). Raises NotInstalledError, or
    BuildError if its version command fails."""
    found = shutil.which(name, path=None if variables is None else variables.get("PATH"))
    if found is None:
        raise NotInstalledError(f"{name}: not found" if "/" in name else f"{name} is not on PATH", install)
    path = Path(found)
    version = answer = ""
    if ask_version:
        reply = ask_once([found, *ask_version], variables)
        version, answer = version_in(reply), reply.stdout or reply.stderr
    try:
        digest = str(remembered(["sha256"], [path], lambda: hashlib.sha256(path.resolve().read_bytes()).hexdigest()))
    except OSError as error:
        raise BuildError(f"{found} cannot be read: {error.strerror or error}") from error
    return Installed(path, version or Path(name).name, digest, answer=answer)


INTERPRETERS = ("python3", "python")
_ASKED = (
    ("openmm", "openmm"),
    ("neuron", "neuron"),
    ("torch", "torch"),
    ("jax", "jax"),
    ("tensorflow", "tensorflow"),
    ("PIL", "pillow"),
)
"""Modules and their packages: an interpreter is asked once for all of them."""
_QUESTION = """
import sys
sys.path[:] = filter(None, sys.path)  # before modules are loaded that the working folder may have
import importlib.metadata, importlib.util, json, platform
found = {"": platform.python_version()}
for pair in sys.argv[1:]:
    module, package = pair.split("=")
    if importlib.util.find_spec(module) is not None:
        try:
            found[module] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[module] = ""
print(json.dumps({"modules": found, "folders": sys.path}))
"""


def find_interpreter(module: str, install: str, path: str | None = None, name: str = "") -> Installed:
    """The interpreter `path`, else that which the site file names for the library `name`, else the first one on PATH
    (that of the modules that the site file names for it), that can import `module`. Raises NotInstalledError,
    NoModuleError."""
    site = site_in_force()
    loaded = site.modules.get(name, ())
    changes = load_modules(loaded) if loaded else ()
    if path is None and name in site.programs:
        path = str(site.programs[name])
    tried: list[str] = []
    for candidate in _on_path(variables_with(changes).get("PATH", "")) if path is None else (path,):
        tried.append(candidate)
        modules = _modules_of(candidate, changes)
        if module in modules:
            found = find_command(candidate, install)
            version = version_with(module, modules)
            return Installed(found.path, version, found.sha256, modules=loaded, changes=changes)
    where = f"{path} cannot" if path is not None else f"none of {len(tried)} Python interpreters on PATH can"
    after = f" after {LOAD} {' '.join(loaded)}" if loaded else ""
    raise NotInstalledError(f"{where} import {module}{after}", install)


def _on_path(path: str) -> Iterator[str]:
    """Each interpreter once, in the order of PATH."""
    seen: set[Path] = set()
    for folder in filter(None, path.split(os.pathsep)):
        for name in INTERPRETERS:
            found = on_path(name, folder)
            if found is None:
                continue
            # A virtual environment's link leads to its base, which has other libraries: the folder tells them apart.
            identity = Path(folder).resolve() / Path(found).resolve().name
            if identity not in seen:
                seen.add(identity)
                yield found


def module_question() -> list[str]:
    """The arguments with which an interpreter prints what it has of the asked modules."""
    return ["-c", _QUESTION, *(f"{module}={package}" for module, package in _ASKED)]


def version_with(module: str, modules: Mapping[str, str]) -> str:
    """How an interpreter with this module is named, by what it answered."""
    return f"{module} {modules[module]}, Python {modules['']}".replace("  ", " ")


def modules_in(answer: str) -> tuple[Mapping[str, str], list[str]]:
    """What an interpreter answered: module -> version, with "" -> its own; and the folders that it searches. Raises
    ValueError, KeyError, TypeError for anything else."""
    found = json.loads(answer)
    return {str(name): str(version) for name, version in found["modules"].items()}, list(map(str, found["folders"]))


@cache
def _modules_of(interpreter: str, changes: Changes = ()) -> Mapping[str, str]:
    """Module -> version, of those that are asked for; "" -> that of the interpreter, with these changes of variables.
    Empty if it does not answer."""
    words = [interpreter, *module_question()]
    variables = without_working_folder(variables_with(changes))

    def asked() -> dict[str, Any]:
        modules, folders = modules_in(ask(words, variables, runs_in=None).stdout)
        return {"modules": dict(modules), "folders": folders, "states": _states(folders)}

    with suppress(BuildError, OSError, ValueError, KeyError, TypeError):
        found = remembered(
            [*words, *related(variables), *_where_it_matters(interpreter)],
            [Path(interpreter)],
            asked,
            still_true=lambda value: value["states"] == _states(value["folders"]),
        )
        return {str(name): str(version) for name, version in found["modules"].items()}
    return {}


def _states(folders: Iterable[str]) -> list[list[str | int]]:
    """What changes when a package is installed in one of these folders."""
    return [state_of(Path(folder)) for folder in folders]


def _where_it_matters(interpreter: str) -> list[str]:
    """The current folder for a script, which may choose the interpreter by it, as pyenv does."""
    with Path(interpreter).open("rb") as file:
        return [str(Path.cwd())] if file.read(2) == b"#!" else []
