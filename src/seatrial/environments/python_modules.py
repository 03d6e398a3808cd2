"""Python interpreters on this machine, and the libraries that they can import."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.asking import ask
from seatrial.environments.installed import Installed, NotInstalledError, find_command
from seatrial.environments.remembered import related, remembered, state_of
from seatrial.errors import BuildError

_NAMES = ("python3", "python")
_ASKED = (("openmm", "openmm"), ("neuron", "neuron"))
"""Modules and their packages: an interpreter is asked once for all of them."""
_QUESTION = """
import importlib.metadata, importlib.util, json, platform, sys
sys.path[:] = filter(None, sys.path)
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


def find_interpreter(module: str, install: str, path: str | None = None) -> Installed:
    """The interpreter `path`, or the first one on PATH, that can import `module`. Raises NotInstalledError."""
    tried: list[str] = []
    for candidate in _on_path(os.environ.get("PATH", "")) if path is None else (path,):
        tried.append(candidate)
        modules = _modules_of(candidate)
        if module in modules:
            found = find_command(candidate, install)
            version = f"{module} {modules[module]}".strip()
            return Installed(found.path, f"{version}, Python {modules['']}", found.sha256)
    where = f"{path} cannot" if path is not None else f"none of {len(tried)} Python interpreters on PATH can"
    raise NotInstalledError(f"{where} import {module}", install)


def _on_path(path: str) -> Iterator[str]:
    """Each interpreter once, in the order of PATH."""
    seen: set[Path] = set()
    for folder in filter(None, path.split(os.pathsep)):
        for name in _NAMES:
            found = shutil.which(name, path=folder)
            if found is None:
                continue
            # A virtual environment's link leads to its base, which has other libraries: the folder tells them apart.
            identity = Path(folder).resolve() / Path(found).resolve().name
            if identity not in seen:
                seen.add(identity)
                yield found


@cache
def _modules_of(interpreter: str) -> Mapping[str, str]:
    """Module -> version, of those that are asked for; "" -> that of the interpreter. Empty if it does not answer."""
    words = [interpreter, "-c", _QUESTION, *(f"{module}={package}" for module, package in _ASKED)]

    def asked() -> dict[str, Any]:
        answer = json.loads(ask(words).stdout)
        return {**answer, "states": _states(answer["folders"])}

    with suppress(BuildError, OSError, ValueError, KeyError, TypeError):
        found = remembered(
            [*words, *related(os.environ), *_where_it_matters(interpreter)],
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
