"""Python interpreters on this machine, and the libraries that they can import."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from seatrial.environments.compiler import ask
from seatrial.environments.installed import Installed, NotInstalledError, find_command
from seatrial.errors import BuildError

_NAMES = ("python3", "python")
_ASKED = (("openmm", "openmm"), ("neuron", "neuron"))
"""Modules and their packages: an interpreter is asked once for all of them."""
_QUESTION = """
import importlib.metadata, importlib.util, json, platform, sys
found = {"": platform.python_version()}
for pair in sys.argv[1:]:
    module, package = pair.split("=")
    if importlib.util.find_spec(module) is not None:
        try:
            found[module] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[module] = ""
print(json.dumps(found))
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
    with suppress(BuildError, ValueError):
        pairs = (f"{module}={package}" for module, package in _ASKED)
        answer = json.loads(ask([interpreter, "-c", _QUESTION, *pairs]).stdout)
        if isinstance(answer, dict):
            return {str(name): str(version) for name, version in answer.items()}
    return {}
