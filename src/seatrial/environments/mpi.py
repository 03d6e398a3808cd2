"""The MPI libraries of a machine."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from seatrial.environments.compiler import ask
from seatrial.environments.loader import libraries_of
from seatrial.errors import BuildError, UnknownNameError
from seatrial.model.mpi import Mpi, MpiFamily


class NoMpiError(BuildError):
    """There is no MPI, or not the one that was asked for."""


HOW_TO_GET_ONE = (
    "install one (Debian: apt install openmpi-bin libopenmpi-dev or mpich libmpich-dev; RHEL: dnf install "
    "openmpi-devel), load its module, or name its prefix in the site file"
)


def find_mpis(variables: Mapping[str, str] | None = None) -> tuple[Mpi, ...]:
    """Every MPI of this machine, the one to use first."""
    return tuple(_candidates())


def choose_mpi(name: str | None, variables: Mapping[str, str] | None = None) -> Mpi:
    """The library of that name, the first one for None. Raises NoMpiError, UnknownNameError."""
    found = find_mpis(variables)
    if not found:
        raise NoMpiError("there is no MPI on this machine", HOW_TO_GET_ONE)
    if name is None:
        return found[0]
    for mpi in found:
        if mpi.name == name:
            return mpi
    raise UnknownNameError("MPI", name, (mpi.name for mpi in found))


def mpi_of(program: Path, variables: Mapping[str, str]) -> Mpi | None:
    """The library that the loader gives an installed program, or None where it is linked with none that is known."""
    loaded = {Path(path).resolve() for path in libraries_of(program, variables).values()}
    return next((mpi for mpi in find_mpis(variables) if mpi.library in loaded), None)


def _candidates() -> Iterator[Mpi]:
    for family in (MpiFamily.OPENMPI, MpiFamily.MPICH):
        wrapper, launcher = shutil.which(f"mpicc.{family}"), shutil.which(f"mpirun.{family}")
        if wrapper is None:
            continue
        words = shlex.split(ask([wrapper, "-show"]).stdout)
        includes = tuple(word for word in words if word.startswith("-I"))
        links = tuple(word for word in words if word.startswith(("-L", "-l")))
        folder = next(Path(word[2:]) for word in links if word.startswith("-L"))
        library = (folder / ("libmpi.so" if family is MpiFamily.OPENMPI else "libmpich.so")).resolve()
        yield Mpi(family.value, family, "", library, "", includes, links, Path(launcher) if launcher else None)
